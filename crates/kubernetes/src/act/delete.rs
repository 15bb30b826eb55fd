//! Deleting pods that cannot be unbound, so that their owners make them anew.

use futures::future::join_all;
use serde::Serialize;

use super::explain::Condition;
use super::hands::{Hands, Stop};
use super::promise::Result as Became;
use super::seen::path;
use crate::deed::PodRef;
use crate::request::{Answer, Call, Verb};

impl Hands {
    pub(super) async fn delete(&self, pods: &[PodRef], why: &str) -> Became {
        let deleted = join_all(pods.iter().map(|pod| self.delete_one(pod, why))).await;
        match deleted.into_iter().collect::<Result<(), Stop>>() {
            Ok(()) => Became::Deleted,
            Err(stop) => stop.into(),
        }
    }

    async fn delete_one(&self, pod: &PodRef, why: &str) -> Result<(), Stop> {
        // Owners that tell disruptions from failures read it off this condition. They can live without.
        let mark = Condition::disruption(why).patch(pod);
        if let Answer::Absent | Answer::Conflict = self.settle(&self.urgent, &mark).await? {
            return Ok(());
        }
        let options = DeleteOptions::for_pod(pod);
        let call = Call::with(Verb::Delete, "pods", path(pod), &options);
        match self.settle(&self.urgent, &call).await? {
            // A conflict means that another of its name is there by now.
            Answer::Done(_) | Answer::Absent | Answer::Conflict => Ok(()),
            other => {
                Err(Stop::Unreachable(format!("{}/{} cannot be deleted: {other:?}", pod.namespace, pod.name)))
            }
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteOptions<'a> {
    preconditions: Identity<'a>,
}

#[derive(Debug, Serialize)]
struct Identity<'a> {
    uid: &'a str,
}

impl<'a> DeleteOptions<'a> {
    pub(super) fn for_pod(pod: &'a PodRef) -> Self {
        Self { preconditions: Identity { uid: &pod.uid } }
    }
}
