//! Policies by name: those of the scenario first, then the built-in ones.

use metronome_core::model::policy::Policy;
use metronome_sim::scenario::Scenario;

use crate::failure::Failure;
use metronome_sim::near::nearest;

/// What each built-in policy does, in one line.
pub(crate) const ABOUT: &[(&str, &str)] = &[
    (
        "metronome",
        "user, urgency, waiting, width and brevity as one priority; gangs whole, where all lose least on links, or later",
    ),
    ("kubernetes", "pod by pod, spread over the nodes: gangs may deadlock, and the result says so"),
    ("coscheduling", "scores nodes as `kubernetes` does, but places gangs whole"),
    ("volcano", "by priority; gangs whole, packed onto full nodes, workers beside their parameter servers"),
    ("fifo", "in order of submission; the head of the line blocks everybody behind it"),
    ("fifo-skip", "in order of submission; whoever fits goes ahead"),
    ("srtf", "shortest remaining time first, with preemption"),
    ("srsf", "smallest remaining service (time × GPUs) first, with preemption"),
    ("tiresias", "least attained service in three levels, with preemption; durations are not known to it"),
    (
        "edf",
        "whoever is due first has as many members as it can use, and takes them from whoever is due later",
    ),
    (
        "elasticflow",
        "takes newcomers on if all can be in time; each has the least that is enough, filled backwards from its deadline",
    ),
    ("fair", "as `coscheduling`, but close together by topology; nothing is done about the links"),
    ("shift", "as `fair`; on links, whoever meets others waits once, until its bursts fall between theirs"),
    ("weighted", "as `fair`; on links, whoever has sent more of its iteration gets more of them"),
    ("classes", "as `fair`; on links, whoever has least left to send goes first, in four classes"),
    (
        "exclusive",
        "as `fair`; a job starts only where each link has its peak bandwidth left, and has that for itself",
    ),
    (
        "diktyo",
        "as `coscheduling`, but member by member to where the network costs least towards those placed before",
    ),
    (
        "cassini",
        "as `fair`, but of places equally near the one whose links are most compatible; on links, shifts by an affinity graph",
    ),
    (
        "metronome-paper",
        "as `fair`, but where bursts can be kept apart; on links, shifts by priority with cushions between bursts",
    ),
    (
        "specon",
        "as `coscheduling`; whoever learns little for the CPU it uses is moved to where it is in the way least",
    ),
    ("solo", "as `metronome`, with every link to itself: a bound, not a policy one can have"),
];

pub(crate) fn about(name: &str) -> &'static str {
    ABOUT.iter().find(|(known, _)| *known == name).map_or("", |(_, about)| about)
}

/// The policy of that name.
pub(crate) fn find(name: &str, scenario: &Scenario) -> Result<Policy, Failure> {
    find_among(name, &scenario.policies)
}

/// Each of the policies named, in that order.
pub(crate) fn find_all(names: &[String], scenario: &Scenario) -> Result<Vec<Policy>, Failure> {
    if let Some(at) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return Err(Failure::input(format!("compare policy `{}` with itself", names[at]))
            .hint("name each policy once; `--seeds` runs it several times"));
    }
    names.iter().map(|name| find(name, scenario)).collect()
}

/// The built-in policy of that name.
#[cfg(feature = "kubernetes")]
pub(crate) fn built_in(name: &str) -> Result<Policy, Failure> {
    find_among(name, &[])
}

fn find_among(name: &str, own: &[Policy]) -> Result<Policy, Failure> {
    let found = own.iter().find(|policy| policy.name == name).cloned();
    found.or_else(|| Policy::named(name)).ok_or_else(|| unknown(name, own))
}

fn unknown(name: &str, own: &[Policy]) -> Failure {
    let mut known: Vec<&str> = own.iter().map(|policy| policy.name.as_str()).collect();
    for built_in in Policy::names() {
        known.push(built_in);
    }
    let list = format!("there are {}", known.join(", "));
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`? {list}"),
        None => list,
    };
    Failure::input(format!("find a policy called `{name}`")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_described_in_the_order_of_the_table() {
        let described: Vec<&str> = ABOUT.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, Policy::names().collect::<Vec<_>>());
    }
}
