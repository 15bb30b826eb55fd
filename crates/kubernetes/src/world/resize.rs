//! More cores or fewer for a pod that runs: asked for at the API server, and done once its kubelet says so.

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::plan::{Assignment, StepId};
use metronome_core::model::report::Failure;
use metronome_core::model::units::Instant;

use super::crew::{Given, Stage};
use super::pods::{Known, Uid};
use super::steps::Errand;
use super::wishes::{Wishes, Words, whole_cores};
use super::{Mode, World};
use crate::deed::{Kind, Resized, Ticket};
use crate::objects::Pod;
use crate::rules::request::resize_is_infeasible;

/// What a kubelet has been asked for and has not said yet that it has done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    job: JobId,
    step: Option<StepId>,
    cores: u32,
}

/// How a pod stands to the cores that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    HasThem,
    Waits,
    /// Its node will never have them.
    WillNot,
}

impl World {
    pub(super) fn resize(&mut self, now: Instant, job: JobId, step: StepId, to: &Assignment) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.sit_down(to);
        if self.settings.mode == Mode::Observe {
            return self.engine.observe(now, Event::StepDone { job, step });
        }
        self.ask_for_cores(job, Some(step));
    }

    /// Whether a pod requests another number of cores than it is to have.
    pub(super) fn lacks_cores(&self, job: JobId) -> bool {
        let given = self.crews.get(&job).and_then(|crew| crew.cores.as_ref());
        given.is_some_and(|given| given.cores.now != given.planned)
    }

    pub(super) fn ask_for_cores(&mut self, job: JobId, step: Option<StepId>) {
        let Some(crew) = self.crews.get(&job) else { return };
        let (Some(Given { cores, planned }), Some(member)) = (&crew.cores, crew.members().next()) else {
            return;
        };
        let Some(known) = self.pods.get(&member.uid) else { return };
        let to = Resized { container: cores.container.clone(), cores: *planned, limited: cores.limited };
        let ticket = self.do_it(Kind::Resize { pod: known.reference(), to });
        self.errands.insert(ticket, Errand::Resize { job, step });
        let crew = self.crews.get_mut(&job).expect("it was just there");
        if crew.stage != Stage::Running {
            crew.stage = Stage::Binding(ticket);
        }
    }

    /// The API server has it. Until the kubelet has done it, a pod holds the greater of both.
    pub(super) fn resized(&mut self, now: Instant, ticket: Ticket) {
        let Some(Errand::Resize { job, step }) = self.errands.remove(&ticket) else { return };
        let Some(crew) = self.crews.get(&job) else { return };
        let (Some(given), Some(member)) = (&crew.cores, crew.members().next()) else { return };
        let (cores, uid) = (given.planned, member.uid.clone());
        self.awaited.insert(uid.clone(), Awaited { job, step, cores });
        self.look_at_cores(now, &uid);
    }

    /// A pod has changed: perhaps its kubelet has done what it was asked for.
    pub(super) fn look_at_cores(&mut self, now: Instant, uid: &Uid) {
        let Some(awaited) = self.awaited.get(uid).copied() else { return self.note_another_hand(now, uid) };
        let Some(known) = self.pods.get(uid).filter(|known| known.job == Some(awaited.job)) else {
            self.awaited.remove(uid);
            return;
        };
        match standing(known, awaited.cores) {
            Standing::Waits => {}
            Standing::HasThem => {
                self.awaited.remove(uid);
                self.cores_are_there(now, awaited);
            }
            Standing::WillNot => {
                self.awaited.remove(uid);
                self.take_back_what_was_asked(now, awaited);
            }
        }
    }

    fn cores_are_there(&mut self, now: Instant, Awaited { job, step, cores }: Awaited) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        if let Some(given) = &mut crew.cores {
            given.cores.now = cores;
        }
        match (crew.stage, step) {
            (Stage::Binding(_), _) => self.has_started(now, job, step),
            (_, Some(step)) => self.engine.observe(now, Event::StepDone { job, step }),
            (_, None) => {}
        }
    }

    /// Somebody else has changed what a running pod asks for: it is looked at anew.
    fn note_another_hand(&mut self, now: Instant, uid: &Uid) {
        let Some(known) = self.pods.get(uid) else { return };
        let Some(job) = known.job.filter(|job| !self.is_being_resized(*job)) else { return };
        let Some(crew) = self.crews.get(&job).filter(|crew| crew.stage == Stage::Running) else { return };
        let was = crew.cores.as_ref().map(|given| given.cores.now);
        if was.is_some() && was != asked(&known.pod) {
            self.dissolve(now, job);
        }
    }

    fn is_being_resized(&self, job: JobId) -> bool {
        self.errands.values().any(|errand| matches!(errand, Errand::Resize { job: of, .. } if *of == job))
    }

    /// The pod goes on with what it has, and asks for no more than that.
    fn take_back_what_was_asked(&mut self, now: Instant, Awaited { job, step, .. }: Awaited) {
        self.stays_as_it_is(job);
        self.ask_for_cores(job, None);
        self.resize_failed(now, job, step);
    }

    pub(super) fn not_resized(&mut self, now: Instant, ticket: Ticket, refusal: &str) {
        let Some(Errand::Resize { job, step }) = self.errands.remove(&ticket) else { return };
        tracing::warn!(job = job.0, refusal, "a pod was not given other cores");
        self.stays_as_it_is(job);
        self.resize_failed(now, job, step);
    }

    /// Who was about to start is bound, and runs as it is: it is taken in anew.
    fn resize_failed(&mut self, now: Instant, job: JobId, step: Option<StepId>) {
        match (self.crews.get(&job).map(|crew| crew.stage), step) {
            (Some(Stage::Binding(_)), _) => self.dissolve(now, job),
            (_, Some(step)) => {
                self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
            }
            (_, None) => {}
        }
    }

    fn stays_as_it_is(&mut self, job: JobId) {
        if let Some(given) = self.crews.get_mut(&job).and_then(|crew| crew.cores.as_mut()) {
            given.planned = given.cores.now;
        }
    }
}

/// Who says nothing of what containers have is taken by the word of the API server.
fn standing(known: &Known, wanted: u32) -> Standing {
    if asked(&known.pod) != Some(wanted) {
        return Standing::Waits;
    }
    match said_by_the_kubelet(&known.pod) {
        _ if resize_is_infeasible(&known.pod) => Standing::WillNot,
        Some(cores) if cores != wanted => Standing::Waits,
        _ => Standing::HasThem,
    }
}

/// The cores that a pod asks for by its object.
fn asked(pod: &Pod) -> Option<u32> {
    Wishes::of(Words::of(pod), true).ok()?.cores.map(|cores| cores.now)
}

fn said_by_the_kubelet(pod: &Pod) -> Option<u32> {
    let status = pod.status.container_statuses.iter().flatten().next()?;
    let requests = status.resources.as_ref()?.requests.as_ref()?;
    whole_cores(&requests.get("cpu")?.0)
}
