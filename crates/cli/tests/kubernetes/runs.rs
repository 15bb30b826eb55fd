//! Which members of jobs have run, at which attempt of their job: seen by a watch, however briefly they were there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::watcher::{self, Event, watcher};
use metronome_kubernetes::objects::{ATTEMPT, JOB_LABEL, ROLE_LABEL};
use metronome_testcluster::Corner;

/// A pod that has run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) job: String,
    pub(crate) attempt: u64,
    pub(crate) role: String,
    pub(crate) pod: String,
    /// It has ended well.
    pub(crate) is_done: bool,
}

pub(crate) struct Runs {
    /// By the uid of the pod.
    seen: Arc<Mutex<BTreeMap<String, Run>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Runs {
    pub(crate) fn watch(corner: &Corner) -> Self {
        let seen = Arc::<Mutex<BTreeMap<String, Run>>>::default();
        let mut events = watcher(corner.pods(), watcher::Config::default()).boxed();
        let noted = seen.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                // The watcher goes on by itself after an error.
                if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event {
                    note(&mut noted.lock().unwrap(), &pod);
                }
            }
        });
        Self { seen, task }
    }

    pub(crate) fn all(&self) -> Vec<Run> {
        self.seen.lock().unwrap().values().cloned().collect()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn note(seen: &mut BTreeMap<String, Run>, pod: &Pod) {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let label = |name: &str| pod.labels().get(name).cloned().unwrap_or_default();
    let uid = pod.uid().unwrap();
    if phase == Some("Running") {
        let attempt = pod.annotations().get(ATTEMPT).and_then(|attempt| attempt.parse().ok());
        seen.entry(uid).or_insert_with(|| Run {
            job: label(JOB_LABEL),
            attempt: attempt.expect("members say at which attempt they were made"),
            role: label(ROLE_LABEL),
            pod: pod.name_any(),
            is_done: false,
        });
    } else if phase == Some("Succeeded")
        && let Some(run) = seen.get_mut(&uid)
    {
        run.is_done = true;
    }
}
