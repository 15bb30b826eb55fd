//! Binding: a gang's intent first, then all of its members at once.

use std::sync::Arc;

use futures::future::join_all;
use serde::Serialize;
use tokio::time::Instant;

use super::hands::{Hands, Stop, Tries};
use super::intent::Recording;
use super::promise::Result as Became;
use super::seen::{Seen, path};
use crate::deed::{Bound, Intent, PodRef, Seat};
use crate::metrics::Ended;
use crate::request::{Answer, Call, Verb};

const BINDING: &str = "pods/binding";

impl Hands {
    pub(super) async fn bind(&self, members: Vec<Seat>, intent: Option<Intent>) -> Became {
        if let Some(intent) = &intent {
            match self.record(intent).await {
                Ok(Recording::Ours) => {}
                Ok(Recording::Taken) => return Became::IntentTaken,
                Err(stop) => return stop.into(),
            }
        }
        if !self.lead.is_held() {
            return Stop::LeadLost.into();
        }
        let bound = join_all(members.iter().map(|seat| self.seat(seat))).await;
        self.count_gang(intent.is_some(), &bound);
        Became::Bound(members.into_iter().zip(bound).collect())
    }

    /// Binds one pod, whatever it takes, and says where it is in the end.
    async fn seat(&self, seat: &Seat) -> Bound {
        let began = Instant::now();
        let bound = self.bind_until_known(seat).await.unwrap_or(Bound::Unknown);
        self.metrics().bind_seconds.observe(began.elapsed().as_secs_f64());
        self.metrics().binds.get_or_create(&Ended { result: bound.name() }).inc();
        bound
    }

    async fn bind_until_known(&self, seat: &Seat) -> Result<Bound, Stop> {
        let mut tries = self.tries(BINDING, &seat.pod.uid);
        let mut version = seat.pod.version.clone();
        loop {
            let answer = self.once(&self.urgent, &binding(seat, &version)).await?;
            match self.weigh(seat, answer, &mut tries).await? {
                Next::Known(bound) => return Ok(bound),
                Next::Again(None) => {}
                Next::Again(Some(fresh)) => version = fresh,
            }
        }
    }

    /// What an answer says about the pod. Where it leaves a doubt, the pod is looked at before anything is sent again.
    async fn weigh(&self, seat: &Seat, answer: Answer, tries: &mut Tries<'_>) -> Result<Next, Stop> {
        match answer {
            Answer::Done(_) => Ok(Next::Known(Bound::Here)),
            Answer::Absent => Ok(Next::Known(Bound::Gone)),
            Answer::Refused(_) | Answer::Guarded(_) => Ok(Next::Known(Bound::Refused)),
            Answer::Busy { after } => {
                tries.pause(after, "the API server is busy").await?;
                Ok(Next::Again(None))
            }
            Answer::Conflict => {
                tries.count("the pod keeps changing")?;
                self.look(seat).await
            }
            Answer::Lost(why) => {
                tries.pause(None, &why).await?;
                self.look(seat).await
            }
        }
    }

    async fn look(&self, seat: &Seat) -> Result<Next, Stop> {
        Ok(next(self.see(&self.urgent, &seat.pod).await?, seat))
    }

    fn count_gang(&self, is_gang: bool, bound: &[Bound]) {
        let whole = bound.iter().all(|bound| *bound == Bound::Here);
        if is_gang {
            let result = if whole { "bound" } else { "abandoned" };
            self.metrics().gangs.get_or_create(&Ended { result }).inc();
        }
    }
}

enum Next {
    Known(Bound),
    /// Bind again, as of this version if the pod has another now.
    Again(Option<Arc<str>>),
}

fn next(seen: Option<Seen>, seat: &Seat) -> Next {
    let Some(seen) = seen else { return Next::Known(Bound::Gone) };
    match seen.node() {
        Some(node) if *node == *seat.node => Next::Known(Bound::Here),
        Some(_) => Next::Known(Bound::Elsewhere),
        None if seen.is_leaving() => Next::Known(Bound::Gone),
        None if seen.is_gated() => Next::Known(Bound::Refused),
        None => Next::Again(Some(seen.version().into())),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Preconditions<'a>,
    target: Target<'a>,
}

/// The API server binds only what still is this very pod, in the state that was decided on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

#[derive(Debug, Serialize)]
struct Target<'a> {
    kind: &'static str,
    name: &'a str,
}

fn binding(seat: &Seat, version: &str) -> Call {
    let PodRef { name, uid, .. } = &seat.pod;
    let body = Binding {
        api_version: "v1",
        kind: "Binding",
        metadata: Preconditions { name, uid, resource_version: version },
        target: Target { kind: "Node", name: &seat.node },
    };
    Call::with(Verb::Create, BINDING, format!("{}/binding", path(&seat.pod)), &body)
}

impl Bound {
    fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Elsewhere => "elsewhere",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}
