//! A word on a pod, for its training code or for whoever runs on its node.

use serde_json::json;

use super::hands::Hands;
use super::seen::path;
use crate::deed::PodRef;
use crate::request::{Answer, Call, Verb};

impl Hands {
    /// Without a value the annotation is taken away. Whoever asked looks at the pod to see whether it is there.
    pub(super) async fn annotate(&self, pod: &PodRef, key: &str, value: Option<&str>) {
        // Only this pod is meant, and none that took its name.
        let patch = json!({ "metadata": { "uid": &*pod.uid, "annotations": { key: value } } });
        let call = Call::with(Verb::MergePatch, "pods", path(pod), &patch);
        match self.settle(&self.urgent, &call).await {
            Ok(Answer::Done(_) | Answer::Absent) => {}
            other => tracing::debug!(pod = %pod.name, key, ?other, "an annotation was not written"),
        }
    }
}
