//! The guide, followed: every command on its pages about Kubernetes is run in order, with the real kubectl and Helm
//! against a real API server, and prints what the page shows.

mod desk;
mod page;

use std::fs;
use std::path::Path;

use desk::Desk;
use page::steps;

/// The pages for people with a cluster. Each is followed from the beginning, in a cluster of its own.
fn pages() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pages =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        });
    let mut pages: Vec<_> = pages.filter(|(_, text)| text.contains("kubectl ")).collect();
    pages.sort();
    pages
}

/// `METRONOME_GUIDE=first-job.md` follows one page alone.
#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_guide_does_what_its_page_says() {
    let chosen = std::env::var("METRONOME_GUIDE").ok();
    let mut commands = 0;
    for (name, text) in pages() {
        if chosen.as_ref().is_some_and(|chosen| *chosen != name) {
            continue;
        }
        let steps = steps(&text);
        commands += steps.len();
        let Some(mut desk) = Desk::new(&name).await else { return };
        tokio::task::block_in_place(|| desk.follow(steps));
        eprintln!("{name} goes as it says");
    }
    assert!(commands > 0, "somebody who follows the guide does something");
}
