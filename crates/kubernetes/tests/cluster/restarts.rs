//! A scheduler that is stopped and started again knows what it knew.

use metronome_testcluster::shared;

use crate::scheduler::Scheduled;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_nothing_and_repeats_nothing() {
    let Some(plane) = shared().await else { return };
    let mut corner = Scheduled::new(plane, "again", 2).await;
    corner.create([corner.gang("runs", 5, 1), corner.gang("waits", 4, 1)].concat()).await;
    let before = corner.until_bound(4).await;
    corner.stop().await;
    corner.start().await;
    let waiting = if before.keys().any(|name| name.starts_with("runs")) { "waits" } else { "runs" };
    corner.until_verdict(&format!("{waiting}-0"), |reason, _| reason == "Unschedulable").await;
    let after = corner.seats().await;
    assert!(before.iter().all(|(pod, node)| after.get(pod) == Some(node)), "{before:?} {after:?}");
    for pod in before.keys() {
        corner.delete(pod).await;
    }
    corner
        .until("the waiting gang runs", async |corner| {
            corner.seats().await.keys().any(|name| name.starts_with(waiting)).then_some(())
        })
        .await;
    corner.judge();
}
