//! Jobs whose size may be chosen, as schedulers see them: by deadlines, at least as large as was asked for, or as was asked
//! for. Work is told at the least size that is left.

use std::sync::Arc;

use metronome_core::job::{Capabilities, Gang, JobSpec, Role, Work};
use metronome_core::policy::Deadlines;
use metronome_core::progress::Pace;
use metronome_core::scaling::{Scaling, Speed};

use crate::model::TrainingModel;
use crate::scenario::{Arrival, Asks};

/// As a policy sees it. Who ignores deadlines gives everybody what was asked for; who looks at them, no less than that to
/// jobs that have none.
pub(super) fn seen_by(deadlines: Deadlines, arrival: Arrival) -> Arrival {
    match deadlines {
        Deadlines::Ignored => as_asked(arrival),
        _ if arrival.spec.deadline.is_some() => arrival,
        _ => asked_or_more(arrival),
    }
}

/// Up to the fastest size.
fn asked_or_more(arrival: Arrival) -> Arrival {
    let (Some(asks), Some(scaling)) = (arrival.asks, arrival.spec.scaling.clone()) else { return arrival };
    let fastest = scaling.useful().last().map_or(asks.members, |(members, _)| *members);
    if fastest <= asks.members {
        return as_asked(arrival);
    }
    let pace = pace(&arrival.spec, asks.members);
    let mut spec = (*arrival.spec).clone();
    for role in spec.roles.iter_mut().filter(|role| role.gang.is_elastic()) {
        let gang = Gang::elastic(u64::from(asks.members), u64::from(fastest));
        role.gang = gang.expect("the fastest size is above what is asked for");
    }
    spec.work.alone = spec.work.alone.map(|alone| pace.time(alone));
    spec.scaling = Some(Arc::new(from_on(&scaling, asks.members)));
    Arrival { spec: Arc::new(spec), ..arrival }
}

/// The useful sizes from one on.
fn from_on(scaling: &Scaling, least: u32) -> Scaling {
    let base = scaling.speed(least).0.max(1);
    let larger = scaling.useful().iter().filter(|(members, _)| *members > least);
    let larger = larger.map(|(members, speed)| (*members, Speed(speed.0 * Speed::PLAIN.0 / base)));
    let sizes = std::iter::once((least, Speed::PLAIN)).chain(larger).collect();
    Scaling::new(sizes).expect("sizes rise, and each is of use")
}

fn as_asked(arrival: Arrival) -> Arrival {
    let Some(asks) = arrival.asks else { return arrival };
    let pace = pace(&arrival.spec, asks.members);
    let training = arrival.training.map(|model| {
        let least = least(&arrival.spec).max(1);
        let iterations = (model.iterations * u64::from(least)).div_ceil(u64::from(asks.members.max(1)));
        Arc::new(TrainingModel { iterations: iterations.max(1), ..(*model).clone() })
    });
    Arrival { spec: Arc::new(rigid(&arrival.spec, asks, pace)), training, ..arrival }
}

fn rigid(spec: &JobSpec, asks: Asks, pace: Pace) -> JobSpec {
    let roles =
        spec.roles.iter().map(|role| if role.gang.is_elastic() { fixed(role, asks) } else { role.clone() });
    JobSpec {
        roles: roles.collect(),
        work: Work { alone: spec.work.alone.map(|alone| pace.time(alone)), ..spec.work },
        scaling: None,
        capabilities: Capabilities { resize_in_place: false, ..spec.capabilities },
        ..spec.clone()
    }
}

/// So many members; the cores of one process are one member.
fn fixed(role: &Role, asks: Asks) -> Role {
    let (gang, each) = match asks.serial {
        Some(_) => (Gang::rigid(1), role.shape.each.times(u64::from(asks.members))),
        None => (Gang::rigid(u64::from(asks.members)), role.shape.each),
    };
    let mut role = role.clone();
    role.gang = gang.expect("what is asked for is among the sizes");
    role.shape.each = each;
    role
}

/// How fast it is with so many members.
fn pace(spec: &JobSpec, members: u32) -> Pace {
    let least = u64::from(least(spec).max(1));
    let in_proportion = Speed(u64::from(members) * Speed::PLAIN.0 / least);
    Pace::at(spec.scaling.as_ref().map_or(in_proportion, |scaling| scaling.speed(members)))
}

fn least(spec: &JobSpec) -> u32 {
    spec.roles.iter().filter(|role| role.gang.is_elastic()).map(|role| role.gang.min()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::units::{Cpu, Duration, Instant, Resources, Share};

    fn elastic(serial: Option<Share>) -> Arrival {
        let core = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
        let mut spec = JobSpec::workers("it", Gang::elastic(1, 8).unwrap(), core);
        let sizes = [(1, 1_000_000), (4, 2_000_000), (8, 3_000_000)];
        let sizes = sizes.map(|(members, speed)| (members, Speed(speed)));
        spec.scaling = Some(Arc::new(Scaling::new(sizes.to_vec()).unwrap()));
        spec.work.alone = Some(Duration::from_secs(60));
        let asks = Some(Asks { members: 4, serial });
        Arrival { at: Instant::START, spec: Arc::new(spec), training: None, asks }
    }

    #[test]
    fn a_job_has_the_size_that_was_asked_for_and_takes_as_long_as_with_that() {
        let spec = as_asked(elastic(None)).spec;
        assert_eq!((spec.members(), spec.roles[0].gang.is_elastic()), (4, false));
        assert_eq!(spec.work.alone, Some(Duration::from_secs(30)));
        assert_eq!(spec.scaling, None);
    }

    #[test]
    fn the_cores_of_one_process_are_one_member() {
        let spec = as_asked(elastic(Some(Share::NONE))).spec;
        assert_eq!((spec.members(), spec.least().cpu), (1, Cpu::cores(4)));
        assert_eq!(spec.work.alone, Some(Duration::from_secs(30)));
    }

    #[test]
    fn without_a_deadline_it_has_no_less_than_was_asked_for() {
        let spec = seen_by(Deadlines::Promised, elastic(None)).spec;
        assert_eq!(spec.roles[0].gang, Gang::elastic(4, 8).unwrap());
        assert_eq!(spec.work.alone, Some(Duration::from_secs(30)));
        assert_eq!(spec.scaling.as_ref().unwrap().sizes(), [(4, Speed::PLAIN), (8, Speed(1_500_000))]);
        let mut due = (*elastic(None).spec).clone();
        due.deadline = Some(metronome_core::job::Deadline::soft(Instant::from_secs(99)));
        let due = Arrival { spec: Arc::new(due), ..elastic(None) };
        assert_eq!(seen_by(Deadlines::Promised, due.clone()), due, "by its deadline it may have any size");
        assert_eq!(seen_by(Deadlines::Ignored, due).spec.members(), 4);
    }

    #[test]
    fn who_asks_for_nothing_is_left_as_it_is() {
        let plain = Arrival { asks: None, ..elastic(None) };
        assert_eq!(as_asked(plain.clone()), plain);
    }
}
