//! The election: look, take or renew, wait, again.

use bytes::Bytes;
use tokio::time::Instant;

use super::lease::{self, Claim, Lease};
use super::{Lead, Settings, Standing};
use crate::request::{Answer, Call, Server};

/// What is known about the lead that could be taken now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub previous_holder: Option<String>,
    /// What the last leader said its version was.
    pub previous_version: Option<String>,
}

/// Runs for the lead until `stop` completes, then gives up what it holds. `may_take` is asked each time the lead
/// could be taken; whoever declines is asked again.
pub async fn elect(
    server: Server,
    settings: Settings,
    lead: Lead,
    may_take: impl Fn(&Candidate) -> bool + Send,
    stop: impl Future<Output = ()> + Send,
) {
    let mut election = Election { server, settings, lead, seen: None };
    tokio::select! {
        () = stop => {}
        () = election.run(may_take) => {}
    }
    election.release().await;
}

struct Election {
    server: Server,
    settings: Settings,
    lead: Lead,
    seen: Option<Sighting>,
}

/// The lease as it was when we first saw it so.
struct Sighting {
    lease: Lease,
    at: Instant,
}

impl Election {
    async fn run(&mut self, may_take: impl Fn(&Candidate) -> bool) {
        loop {
            let began = Instant::now();
            match self.lead.held_until() {
                Some(until) => self.renew_before(until).await,
                None => self.follow(&may_take).await,
            }
            self.server.metrics().leader.set(self.lead.held_until().is_some().into());
            self.pause(began).await;
        }
    }

    /// Until the next turn. Where the lead runs out before, its loss is said on time.
    async fn pause(&self, began: Instant) {
        let next = began + self.settings.retry;
        if let Some(until) = self.lead.held_until().filter(|until| *until < next) {
            tokio::time::sleep_until(until).await;
            self.lead.let_go(Standing::Lost);
        }
        tokio::time::sleep_until(next).await;
    }

    async fn renew_before(&mut self, until: Instant) {
        if tokio::time::timeout_at(until, self.renew()).await.is_err() {
            self.lead.let_go(Standing::Lost);
        }
    }

    /// Renews what we hold, as it was when we last wrote it.
    async fn renew(&mut self) {
        let Some(seen) = &self.seen else { return self.lead.let_go(Standing::Lost) };
        let call = lease::write(&self.settings, Claim::Renew(&seen.lease));
        let began = Instant::now();
        match self.ask(&call).await {
            Answer::Done(body) => self.won(began, &body),
            // Somebody wrote it: perhaps only an annotation, perhaps to take over. Or nobody knows whether we did.
            Answer::Conflict | Answer::Lost(_) => self.look_who_leads().await,
            Answer::Absent => self.lead.let_go(Standing::Lost),
            Answer::Busy { .. } | Answer::Guarded(_) | Answer::Refused(_) => {}
        }
    }

    /// Learns the lease's present state while we believe that we lead.
    async fn look_who_leads(&mut self) {
        let Some(lease) = self.look().await else { return };
        if lease.holder() != Some(&self.settings.identity) {
            self.lead.let_go(Standing::Lost);
        }
        self.saw(lease);
    }

    /// Watches the lease, and takes it where it is free and we may.
    async fn follow(&mut self, may_take: &impl Fn(&Candidate) -> bool) {
        match self.ask(&lease::look(&self.settings)).await {
            Answer::Done(body) => self.consider(&body, may_take).await,
            Answer::Absent => self.claim_first(may_take).await,
            _ => {}
        }
    }

    async fn consider(&mut self, body: &Bytes, may_take: &impl Fn(&Candidate) -> bool) {
        let Ok(lease) = Lease::read(body) else { return };
        self.saw(lease);
        let Some(seen) = &self.seen else { return };
        if seen.is_free(&self.settings) && may_take(&seen.candidate()) {
            let call = lease::write(&self.settings, seen.claim(self));
            self.claim(&call).await;
        } else {
            self.lead.say(Standing::Following { holder: seen.lease.holder().map(str::to_owned) });
        }
    }

    async fn claim_first(&mut self, may_take: &impl Fn(&Candidate) -> bool) {
        self.seen = None;
        if may_take(&Candidate { previous_holder: None, previous_version: None }) {
            let epoch = self.lead.next_epoch(0);
            self.claim(&lease::write(&self.settings, Claim::Create { epoch })).await;
        }
    }

    async fn claim(&mut self, call: &Call) {
        let began = Instant::now();
        if let Answer::Done(body) = self.ask(call).await {
            self.won(began, &body);
        }
    }

    /// The lease says that we lead, since a request that we began then.
    fn won(&mut self, began: Instant, body: &Bytes) {
        let Ok(lease) = Lease::read(body) else { return };
        self.lead.hold(began + self.settings.renew_deadline, lease.transitions());
        self.saw(lease);
    }

    async fn look(&self) -> Option<Lease> {
        match self.ask(&lease::look(&self.settings)).await {
            Answer::Done(body) => Lease::read(&body).ok(),
            _ => None,
        }
    }

    /// A request that outlives the renewal it belongs to is of no use.
    async fn ask(&self, call: &Call) -> Answer {
        match tokio::time::timeout(self.settings.renew_deadline / 2, self.server.ask(call)).await {
            Ok(answer) => answer,
            Err(_) => Answer::Lost("no answer in time".into()),
        }
    }

    /// A lease that has not changed keeps the time of its first sighting.
    fn saw(&mut self, lease: Lease) {
        if self.seen.as_ref().is_none_or(|seen| seen.lease != lease) {
            self.seen = Some(Sighting { lease, at: Instant::now() });
        }
    }

    /// Clears the holder, so that the next need not wait; a lost answer is theirs to wait out.
    async fn release(&mut self) {
        if self.lead.held_until().is_none() {
            return;
        }
        self.lead.let_go(Standing::Lost);
        self.server.metrics().leader.set(0);
        let Some(lease) = self.look().await else { return };
        if lease.holder() == Some(&self.settings.identity) {
            self.ask(&lease::write(&self.settings, Claim::Release(&lease))).await;
        }
    }
}

impl Sighting {
    /// Free where nobody holds it, where it was ours to begin with (an answer to us was lost), or where its holder has not renewed for as long as it promised to, by our own
    /// clock since we saw it do so. A lease that says no duration gets ours.
    fn is_free(&self, settings: &Settings) -> bool {
        let promised = self.lease.duration().unwrap_or(settings.duration);
        self.lease.holder().is_none_or(|holder| holder == settings.identity) || self.at.elapsed() > promised
    }

    fn claim<'a>(&'a self, election: &Election) -> Claim<'a> {
        match self.lease.holder() == Some(&election.settings.identity) {
            true => Claim::Renew(&self.lease),
            false => {
                Claim::Take { lease: &self.lease, epoch: election.lead.next_epoch(self.lease.transitions()) }
            }
        }
    }

    fn candidate(&self) -> Candidate {
        Candidate {
            previous_holder: self.lease.holder().map(str::to_owned),
            previous_version: self.lease.version().map(str::to_owned),
        }
    }
}
