//! Deadlines: cores are given and taken back while pods run, and pods say whether they will be in time.

use serde_json::{Value, json};

use crate::scheduler::Scheduled;
use metronome_testcluster::{Corner, shared};

/// A pod that asks for so many cores and says something about time.
fn timed(corner: &Corner, name: &str, cores: u32, wishes: &[(&str, &str)]) -> Value {
    let mut pod = corner.pod(name, 0);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cores.to_string()}});
    for (key, value) in wishes {
        pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    }
    pod
}

/// The cores that a pod asks for, and those that its kubelet says it has.
async fn cores(corner: &Corner, name: &str) -> Option<(String, String)> {
    let pod = corner.pods().get(name).await.unwrap();
    let asked = pod.spec?.containers[0].resources.clone()?.requests?["cpu"].0.clone();
    let has = pod.status?.container_statuses?[0].resources.clone()?.requests?["cpu"].0.clone();
    Some((asked, has))
}

/// Status, reason and message of the condition `metronome.dev/InTime`.
async fn in_time(corner: &Corner, name: &str) -> Option<(String, String, String)> {
    let status = corner.pods().get(name).await.unwrap().status?;
    let condition = status.conditions?.into_iter().find(|one| one.type_ == "metronome.dev/InTime")?;
    Some((condition.status, condition.reason?, condition.message?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_given_the_cores_it_needs_and_gives_back_what_others_need() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "deadlines", 1).await;
    let strict = ("deadline-binding", "Strict");
    let late = timed(&corner, "late", 2, &[("deadline", "2h"), ("duration", "3h"), ("cpu", "2-8"), strict]);
    corner.create([late]).await;
    corner
        .until("it has the cores that make it be in time", async |corner| {
            cores(corner, "late").await.filter(|(asked, has)| asked == "8" && has == "8")
        })
        .await;
    let (status, reason, message) =
        corner.until("it says that it will be in time", async |corner| in_time(corner, "late").await).await;
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Promised"), "{message}");
    let other = [("deadline", "1h"), ("duration", "40m"), strict];
    let other = timed(&corner, "other", 4, &other);
    corner.create([other]).await;
    corner.until_bound(2).await;
    let (asked, has) = cores(&corner, "late").await.unwrap();
    assert_eq!((asked.as_str(), has.as_str()), ("4", "4"));
    let (_, reason, message) =
        corner.until("the other says so, too", async |corner| in_time(corner, "other").await).await;
    assert_eq!(reason, "Promised", "{message}");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_cannot_be_in_time_says_so_and_runs() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "too-late", 1).await;
    corner.create([timed(&corner, "p", 1, &[("deadline", "10m"), ("duration", "1h")])]).await;
    corner.until_bound(1).await;
    let (status, reason, message) =
        corner.until("it says that it will be late", async |corner| in_time(corner, "p").await).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TooLate"), "{message}");
    corner.judge();
}
