//! Evicting all of these or none: counted against their budgets, tried out one by one, then done.

use futures::future::join_all;
use serde::Serialize;

use super::delete::DeleteOptions;
use super::hands::{Hands, Stop};
use super::intent::Recording;
use super::promise::Result as Became;
use super::seen::path;
use crate::deed::{About, EventReason, Intent, PodRef, Telling};
use crate::metrics::Ended;
use crate::request::{Answer, Call, Verb};

const EVICTION: &str = "pods/eviction";

/// What the API server makes of one eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    /// On its way out, or gone already.
    Leaving,
    Refused(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    TryOut,
    Do,
}

impl Hands {
    pub(super) async fn evict(&self, victims: Vec<PodRef>, why: &str, intent: Option<Intent>) -> Became {
        let became =
            self.evict_all_or_none(&victims, why, intent.as_ref()).await.unwrap_or_else(Became::from);
        self.metrics().evictions.get_or_create(&Ended { result: name(&became) }).inc();
        became
    }

    async fn evict_all_or_none(
        &self,
        victims: &[PodRef],
        why: &str,
        intent: Option<&Intent>,
    ) -> Result<Became, Stop> {
        if let Some(refusal) = self.forbidden_by_a_budget(victims).await? {
            return Ok(Became::NotEvicted(refusal));
        }
        let tried = self.each(victims, Mode::TryOut).await?;
        if let Some(refusal) = tried.into_iter().find_map(Reply::refusal) {
            return Ok(Became::NotEvicted(refusal));
        }
        if let Some(intent) = intent
            && self.record(intent).await? == Recording::Taken
        {
            return Ok(Became::IntentTaken);
        }
        let reason = if intent.is_some() { EventReason::Moved } else { EventReason::Preempted };
        let replies = self.each(victims, Mode::Do).await?;
        for (victim, _) in victims.iter().zip(&replies).filter(|(_, reply)| **reply == Reply::Leaving) {
            let about = About::Pod(victim.clone());
            self.tell(Telling { about, reason, message: why.to_owned() });
        }
        Ok(sum(replies))
    }

    async fn each(&self, victims: &[PodRef], mode: Mode) -> Result<Vec<Reply>, Stop> {
        join_all(victims.iter().map(|victim| self.evict_one(victim, mode))).await.into_iter().collect()
    }

    async fn evict_one(&self, victim: &PodRef, mode: Mode) -> Result<Reply, Stop> {
        let mut tries = self.tries(EVICTION, &victim.uid);
        loop {
            match self.once(&self.urgent, &eviction(victim, mode)).await? {
                Answer::Done(_) | Answer::Absent => return Ok(Reply::Leaving),
                Answer::Guarded(why) | Answer::Refused(why) => return Ok(Reply::Refused(why)),
                Answer::Busy { after } => tries.pause(after, "the API server is busy").await?,
                Answer::Lost(why) => tries.pause(None, &why).await?,
                Answer::Conflict => tries.count("the pod keeps changing")?,
            }
            // Another of its name answers with a conflict, and only after the API server has tried for long.
            if self.see(&self.urgent, victim).await?.is_none_or(|seen| seen.is_leaving()) {
                return Ok(Reply::Leaving);
            }
        }
    }
}

impl Reply {
    fn refusal(self) -> Option<String> {
        match self {
            Self::Leaving => None,
            Self::Refused(why) => Some(why),
        }
    }
}

fn sum(replies: Vec<Reply>) -> Became {
    let some_leave = replies.contains(&Reply::Leaving);
    match replies.into_iter().find_map(Reply::refusal) {
        None => Became::Evicted,
        Some(refusal) if some_leave => Became::EvictedInPart(refusal),
        Some(refusal) => Became::NotEvicted(refusal),
    }
}

fn name(became: &Became) -> &'static str {
    match became {
        Became::Evicted => "evicted",
        Became::EvictedInPart(_) => "partial",
        Became::NotEvicted(_) => "refused",
        _ => "given_up",
    }
}

/// The API server marks what it evicts with the condition `DisruptionTarget` itself, and would overwrite ours.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Eviction<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Named<'a>,
    delete_options: DeleteOptions<'a>,
}

#[derive(Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
    namespace: &'a str,
}

fn eviction(victim: &PodRef, mode: Mode) -> Call {
    let query = if mode == Mode::TryOut { "?dryRun=All" } else { "" };
    let body = Eviction {
        api_version: "policy/v1",
        kind: "Eviction",
        metadata: Named { name: &victim.name, namespace: &victim.namespace },
        delete_options: DeleteOptions::for_pod(victim),
    };
    Call::with(Verb::Create, EVICTION, format!("{}/eviction{query}", path(victim)), &body)
}
