//! A gang's intent, recorded by compare-and-swap: of two who mean different things, one gets its way and the other
//! hears so before it has bound anybody.

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use super::hands::{Hands, Stop};
use crate::deed::{Intent, IntentName, Seat};
use crate::request::{Answer, Call, Verb};
use crate::watch::Recorded;

const RESOURCE: &str = "configmaps";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recording {
    Ours,
    /// Somebody has recorded something else.
    Taken,
}

impl Hands {
    /// Makes the API server say what we intend, or finds out that it says otherwise.
    pub(super) async fn record(&self, intent: &Intent) -> Result<Recording, Stop> {
        let name = intent.name.as_ref().ok_or_else(|| Stop::Unreachable("the intent has no name".into()))?;
        let mut tries = self.tries(RESOURCE, &name.0);
        loop {
            let swap = match self.settle(&self.urgent, &self.write(name, intent, None)).await? {
                Answer::Done(_) => return Ok(Recording::Ours),
                Answer::Conflict => self.claim(name, intent).await?,
                other => return Err(Stop::Unreachable(format!("the intent cannot be recorded: {other:?}"))),
            };
            if let Some(recording) = swap {
                return Ok(recording);
            }
            tries.count("the intent keeps changing")?;
        }
    }

    /// One exists already. Nothing where it changed or vanished while we looked.
    async fn claim(&self, name: &IntentName, ours: &Intent) -> Result<Option<Recording>, Stop> {
        let Some(recorded) = self.recorded(name).await? else { return Ok(None) };
        let Ok(theirs) = &recorded.intent else { return Ok(Some(Recording::Taken)) };
        match weigh(theirs, ours) {
            Weight::Same => Ok(Some(Recording::Ours)),
            Weight::Theirs => Ok(Some(Recording::Taken)),
            Weight::Ours => {
                let swap = self.write(name, ours, Some(&recorded.version));
                let swapped = self.settle(&self.urgent, &swap).await?;
                Ok(matches!(swapped, Answer::Done(_)).then_some(Recording::Ours))
            }
        }
    }

    /// Removes an intent that has served, unless a later leader has made it its own.
    pub(super) async fn forget(&self, name: &IntentName, generation: Option<u64>) {
        if let Ok(Some(recorded)) = self.recorded(name).await
            && recorded.intent.as_ref().map_or(0, |intent| intent.epoch) <= self.lead.epoch()
            && recorded.intent.as_ref().ok().map(|intent| intent.generation) == generation
        {
            let preconditions =
                DeleteOptions { preconditions: AsSeen { resource_version: &recorded.version } };
            let call = Call::with(Verb::Delete, RESOURCE, self.path(name), &preconditions);
            // Whatever remains is seen by the watch, and forgotten again.
            let _ = self.settle(&self.quiet, &call).await;
        }
    }

    async fn recorded(&self, name: &IntentName) -> Result<Option<Recorded>, Stop> {
        match self.settle(&self.urgent, &Call::get(RESOURCE, self.path(name))).await? {
            Answer::Done(body) => match serde_json::from_slice::<ConfigMap>(&body) {
                Ok(map) => Ok(Some(Recorded::read(map))),
                Err(error) => Err(Stop::Unreachable(error.to_string())),
            },
            Answer::Absent => Ok(None),
            other => Err(Stop::Unreachable(format!("the intent cannot be read: {other:?}"))),
        }
    }

    fn write(&self, name: &IntentName, intent: &Intent, version: Option<&str>) -> Call {
        let text = serde_json::to_string(intent).expect("an intent is plain data");
        let body = Written {
            api_version: "v1",
            kind: "ConfigMap",
            metadata: Metadata { name: &name.0, resource_version: version, labels: Labels { intent: "" } },
            data: Data { intent: &text },
        };
        match version {
            None => Call::with(Verb::Create, RESOURCE, self.collection(), &body),
            Some(_) => Call::with(Verb::Update, RESOURCE, self.path(name), &body),
        }
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.settings.namespace)
    }

    fn path(&self, name: &IntentName) -> String {
        format!("{}/{}", self.collection(), name.0)
    }
}

/// Whose word stands where two intents meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// It is ours already: an answer to us was lost.
    Same,
    Ours,
    Theirs,
}

/// A later leader's word stands. Of the same leader's, the first stands until it is forgotten, but for a new plan
/// that places everybody the same. An earlier leader's is known to us by now, and ours takes its place.
fn weigh(theirs: &Intent, ours: &Intent) -> Weight {
    let same_seats = sorted(&theirs.seats) == sorted(&ours.seats);
    match theirs.epoch.cmp(&ours.epoch) {
        std::cmp::Ordering::Greater => Weight::Theirs,
        std::cmp::Ordering::Less => Weight::Ours,
        std::cmp::Ordering::Equal if !same_seats => Weight::Theirs,
        std::cmp::Ordering::Equal if theirs.generation == ours.generation => Weight::Same,
        std::cmp::Ordering::Equal => Weight::Ours,
    }
}

/// Who goes where, whatever the order and version they were written in.
fn sorted(seats: &[Seat]) -> Vec<(&str, &str)> {
    let mut seats: Vec<_> = seats.iter().map(|seat| (&*seat.pod.uid, &*seat.node)).collect();
    seats.sort_unstable();
    seats
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    data: Data<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    labels: Labels,
}

#[derive(Debug, Serialize)]
struct Labels {
    #[serde(rename = "metronome.dev/intent")]
    intent: &'static str,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    #[serde(rename = "intent.json")]
    intent: &'a str,
}

#[derive(Debug, Serialize)]
struct DeleteOptions<'a> {
    preconditions: AsSeen<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AsSeen<'a> {
    resource_version: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deed::PodRef;

    fn intent(epoch: u64, generation: u64, seats: &[(&str, &str)]) -> Intent {
        let seat = |(uid, node): &(&str, &str)| {
            let name = |text: &str| text.into();
            let pod = PodRef { namespace: name("a"), name: name("p"), uid: name(uid), version: name("1") };
            Seat { pod, node: name(node) }
        };
        let seats = seats.iter().map(seat).collect();
        Intent { name: None, gang: "g".into(), generation, epoch, seats, leaves: Vec::new() }
    }

    #[test]
    fn a_later_leader_stands_and_an_earlier_one_yields() {
        let (here, there) = ([("u", "n1")], [("u", "n2")]);
        for seats in [here, there] {
            assert_eq!(weigh(&intent(2, 1, &seats), &intent(1, 1, &here)), Weight::Theirs);
            assert_eq!(weigh(&intent(1, 1, &seats), &intent(2, 1, &here)), Weight::Ours);
        }
    }

    #[test]
    fn one_leader_keeps_to_its_first_word_unless_it_means_the_same() {
        let (here, there) = ([("u", "n1"), ("v", "n1")], [("u", "n2"), ("v", "n1")]);
        assert_eq!(weigh(&intent(1, 1, &there), &intent(1, 2, &here)), Weight::Theirs);
        assert_eq!(weigh(&intent(1, 1, &here), &intent(1, 2, &here)), Weight::Ours);
        let turned = [("v", "n1"), ("u", "n1")];
        assert_eq!(weigh(&intent(1, 1, &turned), &intent(1, 1, &here)), Weight::Same);
    }
}
