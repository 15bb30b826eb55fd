//! Jobs whose size may be chosen, as schedulers see them that give everybody what was asked for. Work is told at that size.

use std::sync::Arc;

use metronome_core::model::job::{Capabilities, Gang, JobSpec, Role, Work};
use metronome_core::model::policy::Deadlines;
use metronome_core::observe::progress::WorkPace;
use metronome_core::observe::scaling::Speed;

use crate::model::TrainingModel;
use crate::scenario::{Arrival, Asks};

/// As a policy sees it: who ignores deadlines chooses no sizes either, and gives everybody what was asked for.
pub(super) fn seen_by(deadlines: Deadlines, arrival: Arrival) -> Arrival {
    match deadlines {
        Deadlines::Ignored => as_asked(arrival),
        Deadlines::Earliest | Deadlines::Filled | Deadlines::Promised => arrival,
    }
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

fn rigid(spec: &JobSpec, asks: Asks, pace: WorkPace) -> JobSpec {
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
fn pace(spec: &JobSpec, members: u32) -> WorkPace {
    let least = u64::from(least(spec).max(1));
    let in_proportion = Speed(u64::from(members) * Speed::PLAIN.0 / least);
    WorkPace::at(spec.scaling.as_ref().map_or(in_proportion, |scaling| scaling.speed(members)))
}

fn least(spec: &JobSpec) -> u32 {
    spec.roles.iter().filter(|role| role.gang.is_elastic()).map(|role| role.gang.min()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::model::units::{Cpu, Duration, Instant, Resources, Share};
    use metronome_core::observe::scaling::Scaling;

    fn elastic(serial: Option<Share>) -> Arrival {
        let core = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
        let mut spec = JobSpec::workers("it", Gang::elastic(1, 8).unwrap(), core);
        let sizes = [(1, 1_000_000), (4, 2_000_000), (8, 3_000_000)];
        let sizes = sizes.map(|(members, speed)| (members, Speed(speed)));
        spec.scaling = Some(Arc::new(Scaling::new(sizes.to_vec()).unwrap()));
        spec.work.alone = Some(Duration::from_secs(60));
        let asks = Some(Asks { members: 4, serial });
        Arrival {
            at: Instant::START,
            spec: Arc::new(spec),
            training: None,
            asks,
            learning: None,
            quality: None,
        }
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
    fn who_looks_at_deadlines_may_choose_any_size() {
        let any = elastic(None);
        assert_eq!(seen_by(Deadlines::Promised, any.clone()), any);
        assert_eq!(seen_by(Deadlines::Ignored, any).spec.members(), 4);
    }

    #[test]
    fn who_asks_for_nothing_is_left_as_it_is() {
        let plain = Arrival { asks: None, ..elastic(None) };
        assert_eq!(as_asked(plain.clone()), plain);
    }
}
