//! Giving a container of a running pod more cores, or fewer.

use serde_json::{Value, json};

use super::hands::{Hands, Stop};
use super::promise::Result as Became;
use super::seen::path;
use crate::deed::{PodRef, Resized};
use crate::request::{Answer, Call, Verb};

const RESIZE: &str = "pods/resize";

impl Hands {
    /// The same may be asked for twice, so a lost answer is no harm.
    pub(super) async fn resize(&self, pod: &PodRef, to: &Resized) -> Became {
        self.resize_once(pod, to).await.unwrap_or_else(Became::from)
    }

    async fn resize_once(&self, pod: &PodRef, to: &Resized) -> Result<Became, Stop> {
        let mut tries = self.tries(RESIZE, &pod.uid);
        loop {
            match self.settle(&self.urgent, &call(pod, to)).await? {
                Answer::Done(_) => return Ok(Became::Resized),
                Answer::Absent => return Ok(Became::NotResized("the pod is gone".into())),
                Answer::Guarded(why) | Answer::Refused(why) => return Ok(Became::NotResized(why)),
                Answer::Conflict => tries.count("the pod keeps changing")?,
                Answer::Busy { after } => tries.pause(after, "the API server is busy").await?,
                Answer::Lost(why) => tries.pause(None, &why).await?,
            }
        }
    }
}

/// Containers are merged by their names; only this pod is meant, and none that took its name.
fn call(pod: &PodRef, to: &Resized) -> Call {
    let cores = json!({ "cpu": to.cores.to_string() });
    let mut resources = json!({ "requests": cores });
    if to.limited {
        resources["limits"] = cores;
    }
    let patch: Value = json!({
        "metadata": { "uid": &*pod.uid },
        "spec": { "containers": [{ "name": &*to.container, "resources": resources }] },
    });
    Call::with(Verb::StrategicPatch, RESIZE, format!("{}/resize", path(pod)), &patch)
}
