//! Events, for people and for the tools they look through.

mod series;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use super::hands::Hands;
use crate::deed::{About, EventReason, Telling};
use crate::request::{Answer, Call, Verb};
pub(super) use series::Series;
use series::Write;

/// How often series that have ended are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// The API server's bound on a note.
const LONGEST_NOTE: usize = 1024;
/// Leaves room for the suffix that makes a name unique, within the API server's bound on names.
const LONGEST_NAME: usize = 230;

impl Hands {
    /// Says it when there is time; where too much is said, not at all.
    pub(super) fn tell(&self, telling: Telling) {
        if !self.later.tell(telling) {
            self.metrics().events_dropped.inc();
        }
    }

    pub(super) async fn write_telling(&self, telling: &Telling) {
        let name = unique_name(telling);
        let write =
            self.series.lock().expect("nobody panics while holding it").hear(telling, &name, Instant::now());
        match write {
            Write::New => self.write_event(telling, &name).await,
            Write::Count { name, count } => self.write_count(telling, &name, count).await,
            Write::Nothing => {}
            Write::TooMany => {
                self.metrics().events_dropped.inc();
            }
        }
    }

    async fn write_event(&self, telling: &Telling, name: &str) {
        let call = Call::with(Verb::Create, "events", collection(telling), &self.event(telling, name));
        // An event that cannot be written is not worth more than the patience of one request.
        let _ = self.settle(&self.quiet, &call).await;
    }

    /// Events live an hour; a count for one that is gone begins anew.
    async fn write_count(&self, telling: &Telling, name: &str, count: u32) {
        let patch = SeriesPatch { series: Counted { count, last_observed_time: now() } };
        let path = format!("{}/{name}", collection(telling));
        let call = Call::with(Verb::MergePatch, "events", path, &patch);
        if let Ok(Answer::Absent) = self.settle(&self.quiet, &call).await {
            self.write_event(telling, name).await;
        }
    }

    /// Writes the last count of series that have ended, for ever.
    pub(super) async fn close_series(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let ended = self.series.lock().expect("nobody panics while holding it").sweep(Instant::now());
            for (telling, name, count) in ended {
                self.write_count(&telling, &name, count).await;
            }
        }
    }

    fn event<'a>(&'a self, telling: &'a Telling, name: &'a str) -> Event<'a> {
        Event {
            api_version: "events.k8s.io/v1",
            kind: "Event",
            metadata: Named { name },
            event_time: now(),
            reporting_controller: "metronome",
            reporting_instance: &self.settings.instance,
            action: telling.reason.action(),
            reason: telling.reason.name(),
            regarding: Regarding::from(&telling.about),
            note: cut(&telling.message),
            kind_of_event: telling.reason.kind(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Named<'a>,
    event_time: String,
    reporting_controller: &'static str,
    reporting_instance: &'a str,
    action: &'static str,
    reason: &'static str,
    regarding: Regarding<'a>,
    note: String,
    #[serde(rename = "type")]
    kind_of_event: &'static str,
}

#[derive(Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Regarding<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

#[derive(Debug, Serialize)]
struct SeriesPatch {
    series: Counted,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    count: u32,
    last_observed_time: String,
}

impl<'a> From<&'a About> for Regarding<'a> {
    fn from(about: &'a About) -> Self {
        match about {
            About::Pod(pod) => Self {
                api_version: "v1",
                kind: "Pod",
                namespace: &pod.namespace,
                name: &pod.name,
                uid: &pod.uid,
            },
            About::Object(object) => Self {
                api_version: &object.api_version,
                kind: &object.kind,
                namespace: &object.namespace,
                name: &object.name,
                uid: &object.uid,
            },
        }
    }
}

/// Events about what belongs to the whole cluster are in the default namespace, where tools look for them.
fn collection(telling: &Telling) -> String {
    let namespace = match Regarding::from(&telling.about).namespace {
        "" => "default",
        namespace => namespace,
    };
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

fn unique_name(telling: &Telling) -> String {
    let name = Regarding::from(&telling.about).name;
    let kept = name.get(..LONGEST_NAME).unwrap_or(name).trim_end_matches(['.', '-']);
    format!("{kept}.{:x}", Timestamp::now().as_nanosecond())
}

/// Cut to what the API server takes, between characters.
fn cut(message: &str) -> String {
    const MORE: &str = " ...";
    if message.len() <= LONGEST_NOTE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_NOTE - MORE.len());
    format!("{}{MORE}", &message[..end])
}

fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

impl EventReason {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::FailedScheduling => "FailedScheduling",
            Self::Preempted => "Preempted",
            Self::QueueRefused => "QueueRefused",
            Self::ProgressIgnored => "ProgressIgnored",
            Self::Stalled => "Stalled",
            Self::NodeAvoided => "NodeAvoided",
            Self::AnnotationIgnored => "AnnotationIgnored",
            Self::Moved => "Moved",
            Self::NotMoved => "NotMoved",
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::Scheduled => "Binding",
            Self::FailedScheduling => "Scheduling",
            Self::Preempted => "Preempting",
            Self::QueueRefused => "Sharing",
            Self::ProgressIgnored | Self::AnnotationIgnored | Self::Stalled | Self::NodeAvoided => "Watching",
            Self::Moved | Self::NotMoved => "Moving",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Scheduled | Self::Preempted | Self::Moved => "Normal",
            Self::FailedScheduling
            | Self::QueueRefused
            | Self::ProgressIgnored
            | Self::AnnotationIgnored
            | Self::Stalled
            | Self::NodeAvoided
            | Self::NotMoved => "Warning",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_characters() {
        let long = "é".repeat(1_000);
        let note = cut(&long);
        assert!(note.len() <= LONGEST_NOTE && note.ends_with("é ..."), "{}", note.len());
        assert_eq!(cut("short"), "short");
    }
}
