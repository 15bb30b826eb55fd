//! `metronome explain` and the event of a pending gang say the same.

use std::process::Command;

use metronome_testcluster::{Corner, shared};

use crate::replica::Replica;

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_the_same_on_every_screen() {
    let Some(plane) = shared().await else { return };
    let corner = Corner::new(plane, "explain", 1).await;
    let replica = Replica::start(&plane.kubeconfig_path(), &corner.namespace, "only");
    corner.create(corner.gang("running", 3, 1)).await;
    corner.until_bound(3).await;
    corner.create(corner.gang("ahead", 8, 1)).await;
    corner.until_verdict("ahead-0", |reason, _| reason == "Unschedulable").await;
    corner.create(corner.gang("pending", 2, 1)).await;
    let (_, message) = corner.until_verdict("pending-0", |_, message| message.contains("behind")).await;
    let event = corner
        .until("the event", async |corner| {
            corner
                .told("pending-0")
                .await
                .into_iter()
                .find(|(reason, said)| reason == "FailedScheduling" && *said == message)
        })
        .await;
    let server = format!("http://{}", replica.address().unwrap());
    let job = format!("{}/pending", corner.namespace);
    let told = Command::new(env!("CARGO_BIN_EXE_metronome"))
        .args(["explain", &job, "--server", &server])
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    eprintln!("event: {}\n\n{told}", event.1);
    for fact in
        ["2 members of 1 GPU, 1 CPU each", "only 1 would fit", &format!("behind {}/ahead", corner.namespace)]
    {
        assert!(event.1.contains(fact), "the event does not say {fact:?}: {}", event.1);
        assert!(told.contains(fact), "explain does not say {fact:?}: {told}");
    }
}
