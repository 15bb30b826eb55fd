//! The definition: sets of mixes, each for one class of machine.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;

/// The policy name of the reference run, in which every job of a mix has links of its own.
pub(super) const SEPARATE: &str = "separate";

/// What every ratio is taken to.
pub(super) const FAIR: &str = "fair";

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in super::super) struct Mixes {
    #[serde(rename = "version")]
    _version: u32,
    /// The training program, beside the definition.
    pub(super) program: String,
    /// The policy that the bars judge.
    pub(super) ours: String,
    pub(super) bars: Bars,
    pub(super) sets: Vec<Set>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Bars {
    /// A mix counts for the gain where iterations under `fair` take at least so many times their bound.
    pub(super) contended: f64,
    /// The least part of the gap between `fair` and the bound that is gained, in mixes of one model.
    pub(super) same_model: f64,
    pub(super) different_models: f64,
    /// No job's ratio to `fair` has an interval that lies wholly above this.
    pub(super) most_slowdown: f64,
    /// How far a mean iteration time may be from the simulated one, as a share of it.
    pub(super) simulated_within: f64,
}

/// Mixes for one class of machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) link_gbps: f64,
    /// Divides all rates.
    pub(super) scale: u64,
    pub(super) policies: Vec<String>,
    pub(super) starts: u64,
    /// A run that takes longer has failed.
    pub(super) limit_seconds: u64,
    pub(super) mixes: Vec<Mix>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Mix {
    pub(super) name: String,
    pub(super) models: Models,
    pub(super) shares: Shares,
    pub(super) jobs: Vec<Job>,
}

/// Which bar a mix is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Models {
    Same,
    Different,
}

impl Models {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Same => "one model",
            Self::Different => "different models",
        }
    }
}

/// Which links the jobs of a mix have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Shares {
    /// Two nodes, each with a member of every job: all share the link of each node. At most three jobs.
    Nodes,
    /// Two racks, each with a node for every job: all share the uplink of each rack.
    Racks,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Job {
    pub(super) model: String,
    pub(super) iterations: u64,
    /// About how long an iteration takes on links of its own: delays of starts are parts of it.
    pub(super) alone_ms: f64,
    /// Compute of an iteration, where the batch is chosen for it on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) calibrate_ms: Option<f64>,
    /// More options of the program.
    #[serde(default)]
    pub(super) options: Vec<String>,
}

/// Jobs of a mix are told apart by their place.
pub(super) fn job_name(place: usize) -> String {
    format!("job-{place}")
}

/// Each job of a mix has so many members, on as many nodes.
pub(super) const MEMBERS: u32 = 2;

impl Mixes {
    /// None where a definition is about something else.
    pub(in super::super) fn parse(text: &str) -> Option<Result<Self, serde_json::Error>> {
        let document: Value = serde_json::from_str(text).ok()?;
        document.get("sets").is_some().then(|| serde_json::from_value(document))
    }

    pub(super) fn set(&self, name: Option<&str>) -> Result<&Set, Failure> {
        let known: Vec<&str> = self.sets.iter().map(|set| set.name.as_str()).collect();
        let hint = format!("`--set` names the machine it runs on: {}", known.join(", "));
        let Some(name) = name else {
            return Err(Failure::input("run all sets of mixes on one machine").hint(hint));
        };
        let unknown = || Failure::input(format!("run `{name}`: there is no such set of mixes")).hint(hint);
        self.sets.iter().find(|set| set.name == name).ok_or_else(unknown)
    }
}

impl Set {
    /// What a link carries on this machine, in bytes per millisecond.
    pub(super) fn bytes_per_ms(&self) -> f64 {
        self.link_gbps * 1e9 / self.scale as f64 / 8e3
    }

    /// The mixes of these names; all, where none is named.
    pub(super) fn mixes(&self, only: &[String]) -> Result<Vec<&Mix>, Failure> {
        if only.is_empty() {
            return Ok(self.mixes.iter().collect());
        }
        let find = |name: &String| {
            let unknown = || {
                let known: Vec<&str> = self.mixes.iter().map(|mix| mix.name.as_str()).collect();
                Failure::input(format!("run `{name}`: there is no such mix in {}", self.name))
                    .hint(format!("there are {}", known.join(", ")))
            };
            self.mixes.iter().find(|mix| mix.name == *name).ok_or_else(unknown)
        };
        only.iter().map(find).collect()
    }

    /// Tells runs of this definition of a mix from runs of an earlier one.
    pub(super) fn fingerprint(&self, mix: &Mix) -> String {
        let text = serde_json::to_string(mix).expect("a definition is plain data");
        let all = format!("{} {} {text}", self.link_gbps, self.scale);
        format!("{:016x}", fnv(all.as_bytes()))
    }

    /// The order of policies in a round: each comes first equally often.
    pub(super) fn order(&self, start: u64) -> impl Iterator<Item = &str> {
        let count = self.policies.len();
        let first = (start - 1) as usize % count.max(1);
        (0..count).map(move |place| self.policies[(first + place) % count].as_str())
    }
}

impl Job {
    /// Whether another job trains the same model in the same way.
    pub(super) fn trains_as(&self, other: &Self) -> bool {
        (&self.model, &self.options, self.calibrate_ms) == (&other.model, &other.options, other.calibrate_ms)
    }
}

impl Mix {
    /// How long each job waits before its first iteration, in milliseconds: the same under every policy.
    pub(super) fn delays(&self, start: u64) -> Vec<f64> {
        let seed = fnv(self.name.as_bytes()) ^ start.wrapping_mul(GOLDEN);
        let delay = |(place, job): (usize, &Job)| part(seed.wrapping_add(place as u64)) * job.alone_ms;
        self.jobs.iter().enumerate().map(delay).collect()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number between 0 and 1, by SplitMix64.
fn part(seed: u64) -> f64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(GOLDEN);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const DEFINITION: &str = r#"{"version": 1, "program": "train.py", "ours": "metronome",
        "bars": {"contended": 1.1, "sameModel": 0.5, "differentModels": 0.25, "mostSlowdown": 1.02, "simulatedWithin": 0.05},
        "sets": [{"name": "small", "linkGbps": 100, "scale": 500, "policies": ["fair", "shift", "metronome"], "starts": 2,
            "limitSeconds": 60, "mixes": [
            {"name": "twins", "models": "same", "shares": "nodes", "jobs": [
                {"model": "sleep", "iterations": 5, "aloneMs": 150, "options": ["--megabytes", "1.5"]},
                {"model": "sleep", "iterations": 5, "aloneMs": 150}]},
            {"name": "crowd", "models": "different", "shares": "racks", "jobs": [
                {"model": "mlp", "iterations": 5, "aloneMs": 150, "calibrateMs": 60},
                {"model": "sleep", "iterations": 5, "aloneMs": 100}]}]}]}"#;

    pub(in super::super) fn mixes() -> Mixes {
        Mixes::parse(DEFINITION).unwrap().unwrap()
    }

    #[test]
    fn every_policy_comes_first_in_a_round() {
        let mixes = mixes();
        let set = &mixes.sets[0];
        let orders: Vec<Vec<&str>> = (1..=3).map(|start| set.order(start).collect()).collect();
        assert_eq!(orders[0], ["fair", "shift", "metronome"]);
        assert_eq!(orders[1], ["shift", "metronome", "fair"]);
        assert_eq!(orders[2], ["metronome", "fair", "shift"]);
    }

    #[test]
    fn delays_are_parts_of_an_iteration_and_differ_by_job_and_start() {
        let mixes = mixes();
        let mix = &mixes.sets[0].mixes[0];
        let all: Vec<f64> = (1..=50).flat_map(|start| mix.delays(start)).collect();
        assert!(all.iter().all(|delay| (0.0..150.0).contains(delay)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((60.0..90.0).contains(&mean), "{mean}");
        assert_eq!(mix.delays(3), mix.delays(3));
        assert_ne!(mix.delays(3), mix.delays(4));
        assert!((mix.delays(3)[0] - mix.delays(3)[1]).abs() > 1.0);
    }

    #[test]
    fn a_changed_mix_has_another_fingerprint() {
        let mixes = mixes();
        let (set, mut mix) = (&mixes.sets[0], mixes.sets[0].mixes[0].clone());
        let before = set.fingerprint(&mix);
        mix.jobs[0].iterations = 6;
        assert_ne!(before, set.fingerprint(&mix));
        assert_ne!(before, Set { scale: 100, ..set.clone() }.fingerprint(&set.mixes[0]));
    }

    #[test]
    fn sets_and_mixes_are_chosen_by_name() {
        let mixes = mixes();
        assert!(mixes.set(None).is_err() && mixes.set(Some("large")).is_err());
        let set = mixes.set(Some("small")).unwrap();
        assert_eq!(set.bytes_per_ms(), 25_000.0);
        assert_eq!(set.mixes(&[]).unwrap().len(), 2);
        assert_eq!(set.mixes(&["crowd".into()]).unwrap()[0].name, "crowd");
        assert!(set.mixes(&["twin".into()]).is_err());
    }
}
