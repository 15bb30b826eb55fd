//! How a job goes on, as a function of its object, its pods and the time.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use metronome_core::model::units::{Duration, Instant};

use super::failure::{Whose, blame};
use super::places::Place;
use super::status::{self, Standing, instant, text};
use super::{Asked, reference};
use crate::deed::ObjectRef;
use crate::objects::{
    LastFailure, Member, OnMiss, Phase, Restart, RoleOf, TrainingJob, TrainingJobSpec, TrainingJobStatus,
    is_chief, is_server,
};
use crate::world::Foreseen;

/// What is to be done about a job.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) status: TrainingJobStatus,
    pub(super) make: Vec<Place>,
    pub(super) remove: Vec<ObjectRef>,
    /// It is over for long enough.
    pub(super) removes_itself: bool,
    /// When to look again, if nothing happens before.
    pub(super) wake: Option<Instant>,
}

/// The pause before a job that has failed is started again: none at first, then longer each time.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration(5 * Duration::MINUTE.0);

/// What is known of a job.
pub(super) struct Look<'a> {
    pub(super) job: &'a TrainingJob,
    /// All pods with the job's label, whoever made them.
    pub(super) members: &'a BTreeMap<Arc<str>, Member>,
    /// What was made or removed and has not been seen to be.
    pub(super) asked: &'a BTreeMap<Arc<str>, Asked>,
    /// What the API server would not take.
    pub(super) refusal: Option<&'a str>,
    /// How many members of the role that may have more the scheduler has room for, where it says so.
    pub(super) room_for: Option<u32>,
    pub(super) now: Instant,
}

pub(super) fn course(look: &Look<'_>, foreseen: Option<&Foreseen>) -> Course {
    let Look { job, now, .. } = look;
    let spec = match &job.spec {
        Ok(spec) => spec,
        Err(why) => return Course { status: status::refused(job, why, *now), ..Course::default() },
    };
    let of = Of { look, spec };
    let mut course = match job.status.phase {
        Some(phase) if phase.is_over() => return of.after_the_end(),
        _ if spec.suspend => of.suspended("it is suspended by its spec"),
        _ => of.go_on(),
    };
    course.status.foretell(foreseen);
    course
}

/// A job whose spec makes sense.
pub(super) struct Of<'a> {
    look: &'a Look<'a>,
    pub(super) spec: &'a TrainingJobSpec,
}

impl<'a> Deref for Of<'a> {
    type Target = Look<'a>;
    fn deref(&self) -> &Look<'a> {
        self.look
    }
}

impl Of<'_> {
    fn go_on(&self) -> Course {
        let deadline = self.deadline();
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            match self.spec.on_miss {
                OnMiss::Fail => return self.ended(Phase::Failed, "DeadlineMissed", "its deadline is over"),
                OnMiss::Suspend => return self.suspended("its deadline is over"),
                OnMiss::Run => {}
            }
        }
        if self.is_done() {
            return self.ended(Phase::Succeeded, "Done", "its members are done");
        }
        if let Some(failed) = self.current().find(|member| member.is("Failed") && !member.is_leaving()) {
            return self.has_failed(failed);
        }
        if let Some(course) = self.has_lost_members().or_else(|| self.has_another_size()) {
            return course;
        }
        let wake = deadline.filter(|deadline| *deadline > self.now && self.spec.on_miss != OnMiss::Run);
        self.keep_its_members(wake)
    }

    /// Those of an earlier attempt leave; once their names are free, the others are made.
    fn keep_its_members(&self, wake: Option<Instant>) -> Course {
        let old = self.former().filter(|member| !member.is_leaving());
        let pause = self.pause();
        let remove = old.chain(self.beyond_its_size()).map(reference).collect();
        let mut course = Course { status: self.standing(), remove, ..Course::default() };
        course.wake = [wake, pause].into_iter().flatten().min();
        if pause.is_none() {
            course.make = self.places().filter(|place| !self.members.contains_key(&place.name)).collect();
        }
        course
    }

    /// Until when no members are made.
    fn pause(&self) -> Option<Instant> {
        let not_before = self.job.status.not_before.as_deref().and_then(instant);
        not_before.filter(|at| self.now < *at)
    }

    fn standing(&self) -> TrainingJobStatus {
        let is_restarting = self.pause().is_some() || self.former().next().is_some();
        let standing = Standing { members: self.current().collect(), is_restarting, refusal: self.refusal };
        status::going_on(self.job, self.spec, &standing, self.now)
    }

    /// A member has failed: the job is started again, or has failed as a whole.
    fn has_failed(&self, failed: &Member) -> Course {
        let before = &self.job.status;
        let blame = blame(self.spec, failed);
        let failure = LastFailure {
            pod: failed.name().to_owned(),
            uid: failed.metadata.uid.clone().unwrap_or_default(),
            node: failed.spec.node_name.clone(),
            exit_code: failed.failure().map(|ended| ended.exit_code),
            reason: blame.reason.clone(),
            at: text(self.now),
        };
        let is_counted = before.last_failure.as_ref().is_some_and(|known| known.uid == failure.uid);
        let restarts = before.restarts + u32::from(blame.whose == Whose::ItsOwn && !is_counted);
        let message = format!("{} has failed: {}", failed.name(), blame.reason);
        let is_final = blame.whose == Whose::Final
            || blame.whose == Whose::ItsOwn
                && (self.spec.restart == Restart::Never || restarts > self.spec.backoff_limit);
        if is_final {
            let why = match blame.whose {
                Whose::Final => "a rule of its own says that this is its end",
                _ if self.spec.restart == Restart::Never => "it is not to be started again",
                _ => "it has failed too often",
            };
            let mut course = self.ended(Phase::Failed, "Failed", &format!("{message}; {why}"));
            course.status.last_failure = Some(failure);
            return course;
        }
        if self.spec.restart == Restart::Member {
            return if is_counted {
                self.remove_one(failed)
            } else {
                self.count_one(failure, restarts, &message)
            };
        }
        let mut course = self.start_again(restarts, &message);
        course.status.last_failure = Some(failure);
        course
    }

    /// One failed, and the others go on: it is recorded first.
    fn count_one(&self, failure: LastFailure, restarts: u32, message: &str) -> Course {
        let mut status = self.standing();
        status.restarts = restarts;
        status.last_failure = Some(failure);
        message.clone_into(&mut status.message);
        Course { status, ..Course::default() }
    }

    /// It is made anew when it is gone.
    fn remove_one(&self, failed: &Member) -> Course {
        Course { status: self.standing(), remove: vec![reference(failed)], ..Course::default() }
    }

    /// All members are made anew, once that is recorded.
    fn start_again(&self, restarts: u32, message: &str) -> Course {
        let before = &self.job.status;
        let mut status = status::restarting(self.job, self.spec, message, self.now);
        status.attempt = before.attempt + 1;
        if let Some(members) = self.room_for {
            status.resize(self.spec, members);
        }
        status.restarts = restarts;
        // What was not the job's fault is made good at once.
        let pause = if restarts > before.restarts { back_off(restarts) } else { Duration::ZERO };
        status.not_before = (pause > Duration::ZERO).then(|| text(self.now + pause));
        Course { status, ..Course::default() }
    }

    /// Gangs start whole: where some run and another is gone, it was taken away, and the others wait for it in vain.
    fn has_lost_members(&self) -> Option<Course> {
        if self.spec.restart == Restart::Member
            || !self.current().any(|member| member.is("Running") && !member.is_leaving())
        {
            return None;
        }
        let is_gone = |name: &Arc<str>| !self.members.contains_key(name) && !self.asked.contains_key(name);
        let is_leaving = |name: &Arc<str>| self.members.get(name).is_some_and(Member::is_leaving);
        let waits_for = |place: &Place| self.come_and_go().is_none_or(|role| role.name != place.role);
        let mut waited_for = self.places().filter(waits_for);
        let lost = waited_for.find(|place| is_gone(&place.name) || is_leaving(&place.name))?;
        Some(self.start_again(self.job.status.restarts, &format!("{} was taken away", lost.name)))
    }

    /// There is room for more members than were made, or for fewer. Those on nodes are left to the scheduler, which has
    /// them save their work first.
    fn has_another_size(&self) -> Option<Course> {
        let (members, role) = (self.room_for?, self.spec.elastic_role()?);
        let stays = |member: &Member| member.is_placed() && !member.is_leaving() && !member.is_over();
        if members == self.job.status.size_of(&role) {
            return None;
        }
        if self.come_and_go().is_some() {
            let mut status = self.standing();
            status.resize(self.spec, members);
            return Some(Course { status, ..Course::default() });
        }
        if self.current().any(stays) {
            return None;
        }
        let message = format!("it goes on with {members} of {}", role.name);
        Some(self.start_again(self.job.status.restarts, &message))
    }

    fn is_done(&self) -> bool {
        let roles = self.spec.all_roles();
        let has_chief = roles.iter().any(|role| is_chief(role.name));
        let decides = |role: &RoleOf<'_>| if has_chief { is_chief(role.name) } else { !is_server(role.name) };
        roles.iter().filter(|role| decides(role)).all(|role| {
            let done = self.current().filter(|member| member.role() == Some(role.name));
            done.filter(|member| member.is("Succeeded")).count() >= self.job.status.size_of(role) as usize
        })
    }

    fn ended(&self, phase: Phase, reason: &str, message: &str) -> Course {
        let members: Vec<&Member> = self.current().collect();
        let status = status::ended(self.job, self.spec, &members, (phase, reason, message), self.now);
        Course { status, ..Course::default() }
    }

    /// What still runs is of no more use; what has ended is kept, so that people can look at it.
    fn after_the_end(&self) -> Course {
        let status = self.job.status.clone();
        let living = self.own().filter(|member| !member.is_over() && !member.is_leaving());
        let ended = status.completion_time.as_deref().and_then(instant).unwrap_or(self.now);
        let kept = self.spec.ttl_seconds_after_finished;
        let until = kept.map(|seconds| ended + Duration::from_secs(seconds.into()));
        Course {
            remove: living.map(reference).collect(),
            removes_itself: until.is_some_and(|until| until <= self.now),
            wake: until.filter(|until| self.now < *until),
            status,
            ..Course::default()
        }
    }

    fn suspended(&self, why: &str) -> Course {
        let remove = self.own().filter(|member| !member.is_leaving()).map(reference).collect();
        Course { status: status::suspended(self.job, self.spec, why, self.now), remove, ..Course::default() }
    }

    fn deadline(&self) -> Option<Instant> {
        let deadline = self.spec.deadline.as_ref()?;
        if let Some(at) = &deadline.at {
            return instant(at);
        }
        let made = self.job.metadata.creation_timestamp.as_ref()?.0.as_nanosecond();
        let after = deadline.after.as_ref()?.0.parse::<Duration>().ok()?;
        Some(Instant(u64::try_from(made).ok()?) + after)
    }
}

fn back_off(restarts: u32) -> Duration {
    match restarts {
        0 | 1 => Duration::ZERO,
        more => FIRST_BACK_OFF.times(1 << (more - 2).min(10)).min(LONGEST_BACK_OFF),
    }
}
