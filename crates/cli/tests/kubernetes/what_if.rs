//! `metronome what-if` asks a running scheduler when one more job would start.

use std::process::Command;

use metronome_testcluster::{Corner, shared};

use crate::replica::Replica;

const JOB: &str = "
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: one-more}
spec: {members: 1, resources: {nvidia.com/gpu: 1}, work: {duration: 10m}, deadline: {after: 1h}}
";

/// Whatever it says, to people and about trouble.
fn what_if(corner: &Corner, server: &str, job: &str) -> String {
    let file = std::env::temp_dir().join(format!("{}.yaml", corner.namespace));
    std::fs::write(&file, job).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_metronome"))
        .args(["what-if", "--server", server, "-f"])
        .arg(&file)
        .output()
        .unwrap();
    std::fs::remove_file(file).unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_job_is_asked_about_before_it_is_submitted() {
    let Some(plane) = shared().await else { return };
    let corner = Corner::new(plane, "what-if", 1).await;
    let replica = Replica::start(&plane.kubeconfig_path(), &corner.namespace, "only");
    corner.create([corner.pod("there", 1)]).await;
    corner.until_bound(1).await;
    let server = format!("http://{}", replica.address().unwrap());
    corner
        .until("it says that the job would start at once", async |corner| {
            let told = what_if(corner, &server, JOB);
            told.contains("submitted  now\nstarts     at once\nends       in 10m").then_some(())
        })
        .await;
    let wide = JOB.replace("members: 1", "members: 100000");
    let told = what_if(&corner, &server, &wide);
    assert!(told.contains("can never run"), "{told}");
    let told = what_if(&corner, "http://127.0.0.1:1", JOB);
    assert!(told.contains("reach the scheduler"), "{told}");
}
