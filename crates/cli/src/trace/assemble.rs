//! From what was recorded, told and decided to one document: names in place of numbers, and one clock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use metronome_agent::members::Port;
use metronome_core::model::id::LinkId;
use metronome_core::model::units::{Duration, Instant, Moment};
use metronome_local::world::{JobOutcome, Outcome, Setup};
use serde_json::Value;

use super::decisions::Log;
use super::document::{
    Counter, Directive, Held, Iteration, Iterations, Job, Link, Member, Part, Profile, Standing, Trace,
    VERSION,
};
use super::link_end::Standings;
use super::recorder::Recording;
use super::samples::{Counted, Series};
use super::{figures, words};

/// What was said while the world ran, with the moment at which it was heard.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Moment,
    pub(crate) what: Value,
}

/// All that a trace is made of.
#[derive(Debug)]
pub(crate) struct Material<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    pub(crate) setup: &'a Setup,
    /// The folder of the world.
    pub(crate) folder: PathBuf,
    pub(crate) outcome: &'a Outcome,
    pub(crate) recording: Recording,
    pub(crate) log: &'a Log,
    pub(crate) heard: &'a [Heard],
}

impl Trace {
    pub(crate) fn of(material: Material<'_>) -> Self {
        let Material { scenario, seed, setup, folder, outcome, mut recording, log, heard } = material;
        let began = outcome.began;
        let clock = Clock(began);
        recording.at.iter_mut().for_each(|at| *at = clock.since(*at));
        let profiles: Vec<Profile> = heard.iter().filter_map(|heard| clock.profile(heard)).collect();
        let jobs = setup.jobs.iter().zip(&outcome.jobs);
        let jobs = jobs.map(|(job, became)| {
            let (key, record) = (job.key(), folder.join(job.record()));
            let recorded = figures::read_record(&record, began);
            clock.job(&key, became, recorded, &mut recording, (log, setup))
        });
        let jobs: Vec<Job> = jobs.collect();
        let links = clock.links(&mut recording, setup);
        let Recording { at: at_ns, sampling, .. } = recording;
        let (scenario, policy, scale) = (scenario.to_owned(), setup.policy.name.clone(), setup.scale.0.get());
        let mut trace = Self {
            version: VERSION,
            scenario,
            policy,
            scale,
            seed,
            began,
            sampling,
            jobs,
            links,
            profiles,
            at_ns,
        };
        trace.count_iterations();
        trace
    }

    fn count_iterations(&mut self) {
        for index in 0..self.jobs.len() {
            let volume = figures::bytes_per_iteration(self, index);
            self.jobs[index].bytes_per_iteration = volume;
            self.jobs[index].iterations = figures::iterations(self, index);
        }
    }
}

/// A series as the document has it.
fn counter(series: Series) -> Counter {
    Counter { before: series.before, first_sample: series.first, sent: series.sent }
}

/// Moments of all machines to times of this world.
#[derive(Clone, Copy, Debug)]
struct Clock(Moment);

impl Clock {
    fn since(self, at: u64) -> u64 {
        Moment(at).since(self.0).0
    }

    fn job(
        self,
        key: &str,
        became: &JobOutcome,
        recorded: Vec<Iteration>,
        recording: &mut Recording,
        (log, setup): (&Log, &Setup),
    ) -> Job {
        let members = recording.members.iter().filter(|(job, ..)| job == key);
        let counted = |(job, name, leads): &(String, String, bool)| {
            let of = Counted::Member { job: job.clone(), member: name.clone() };
            let bytes = recording.series.remove(&of).map(counter).unwrap_or_default();
            Member { name: name.clone(), leads: *leads, bytes }
        };
        let members = members.map(counted).collect();
        let by_agent = recording.held.iter().filter(|held| held.job == key).map(|held| {
            let (from_ns, to_ns) = (self.since(held.from_ns), self.since(held.to_ns));
            Held { from_ns, to_ns, ..held.clone() }
        });
        let by_itself = recorded.iter().filter(|iteration| iteration.held_ns > 0).map(|iteration| Held {
            job: key.to_owned(),
            member: None,
            from_ns: iteration.began_ns.saturating_sub(iteration.held_ns),
            to_ns: iteration.began_ns,
        });
        let used = log.profiles.iter().find(|(_, job)| log.name(*job) == became.name);
        Job {
            name: became.name.clone(),
            fate: became.fate,
            started_ns: became.started.map(|at| at.0),
            ended_ns: became.ended.map(|at| at.0),
            members,
            directives: directives(became, log, setup),
            profile_used_ns: used.map(|(at, _)| at.0),
            bytes_per_iteration: None,
            iterations: Iterations::default(),
            held: by_agent.chain(by_itself).collect(),
            recorded,
        }
    }

    fn links(self, recording: &mut Recording, setup: &Setup) -> Vec<Link> {
        let mut ports = std::mem::take(&mut recording.ports);
        ports.sort_by_key(|port| port.link);
        let name_of = |key: &String| {
            let job = setup.jobs.iter().find(|job| job.key() == *key);
            job.map_or_else(|| key.clone(), |job| job.spec.name.to_string())
        };
        let link = |port: Port| {
            let number = port.link?;
            let bytes = recording.series.remove(&Counted::Link { link: number })?;
            Some(Link {
                name: words::link_name(&setup.cluster, LinkId(number)),
                rate_bps: port.rate_bps,
                crossed_by: port.crossed_by.iter().map(name_of).collect(),
                bytes: counter(bytes),
                parts: self.parts(number, &mut recording.series, &recording.standings, &name_of),
            })
        };
        ports.into_iter().filter_map(link).collect()
    }

    fn parts(
        self,
        number: u32,
        series: &mut BTreeMap<Counted, Series>,
        standings: &Standings,
        name_of: &impl Fn(&String) -> String,
    ) -> Vec<Part> {
        let is_part = |of: &Counted| matches!(of, Counted::Part { link, .. } if *link == number);
        let all: Vec<Counted> = series.keys().filter(|of| is_part(of)).cloned().collect();
        let part = |of: Counted| {
            let bytes = counter(series.remove(&of)?);
            let Counted::Part { job, .. } = of else { return None };
            let changes = job.as_ref().and_then(|job| standings.get(&(number, job.clone())));
            let here = |standing: &Standing| Standing { at_ns: self.since(standing.at_ns), ..*standing };
            let standings = changes.into_iter().flatten().map(here).collect();
            Some(Part { job: job.as_ref().map(name_of), bytes, standings })
        };
        all.into_iter().filter_map(part).collect()
    }

    fn profile(self, heard: &Heard) -> Option<Profile> {
        let traffic = heard.what.get("traffic")?;
        let text = |name: &str| Some(traffic[name].as_str()?.to_owned());
        let job = text("job")?;
        Some(Profile {
            at_ns: self.since(heard.at.0),
            job: job.strip_prefix("default/").unwrap_or(&job).to_owned(),
            member: text("member")?,
            period_ms: traffic["period_ns"].as_f64()? / 1e6,
            confidence: traffic["confidence"].as_f64()?,
            iterations: traffic["iterations"].as_u64()?,
            is_alone: traffic["while"] == "alone",
            bytes: learned_bytes(traffic),
            uncontended_ms: traffic["uncontended"]["period_ns"].as_f64().map(|nanos| nanos / 1e6),
        })
    }
}

/// Bytes of an iteration as the agent says them, or as they follow from the phases that it says.
fn learned_bytes(traffic: &Value) -> Option<f64> {
    let said = traffic["uncontended"]["bytes"].as_f64();
    let phase = |phase: &Value| Some(phase["length_ns"].as_f64()? * phase["rate_bps"].as_f64()? / 8e9);
    let phases = || traffic["phases"].as_array()?.iter().map(phase).sum::<Option<f64>>();
    said.or_else(phases).filter(|bytes| *bytes > 0.0)
}

fn directives(became: &JobOutcome, log: &Log, setup: &Setup) -> Vec<Directive> {
    let directive = |(at, directive): &(Duration, Option<Value>)| {
        let change = log.why(&became.name, Instant(at.0));
        let in_words = directive.as_ref().map(|directive| words::Directive::of(directive).in_words());
        let reason = change.map(|change| words::reason(&change.why, log, &setup.cluster));
        Directive {
            at_ns: at.0,
            directive: directive.clone(),
            in_words: in_words.unwrap_or_else(|| "shares fairly".to_owned()),
            reason: reason.unwrap_or_else(|| "the job started".to_owned()),
            saves_ns: change.map(|change| change.saves.0),
        }
    };
    became.directives.iter().map(directive).collect()
}
