//! What came out: each mix under each policy beside fair sharing and its bound, and the bars.

use serde::Serialize;

use super::definition::{Bars, FAIR, Mix, Mixes, Models, SEPARATE, Set};
use super::rows::{Learned, Row, rows};
use super::runs::{Known, Run};
use super::statistics::{Interval, mean};

/// The start of reference runs.
pub(super) const REFERENCE: u64 = 0;

/// The mean iteration times that a simulation of a run says, by place of the job; none where it says nothing.
pub(super) type Simulated<'a> = dyn Fn(&Set, &Mix, &Run, &Run) -> Option<Vec<f64>> + 'a;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetReport {
    pub(super) set: String,
    pub(super) mixes: Vec<MixReport>,
    pub(super) verdicts: Vec<Verdict>,
    /// Runs without a result.
    pub(super) missing: usize,
    /// Runs that ended without one.
    pub(super) failed: usize,
    /// Fingerprints of the programs that ran.
    pub(super) builds: usize,
}

/// A bar and how far it is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub(super) met: bool,
    pub(super) says: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MixReport {
    pub(super) mix: String,
    pub(super) models: Models,
    pub(super) jobs: Vec<Alone>,
    /// The sum of the parts of the time that the jobs send when alone.
    pub(super) duty: f64,
    /// Iteration times under fair sharing over their bound, on average over jobs and starts.
    pub(super) fair_over_bound: Option<f64>,
    pub(super) policies: Vec<PolicyReport>,
    pub(super) rows: Vec<Row>,
    /// Gains and gaps of each start under our policy, for sums over mixes.
    #[serde(skip)]
    gains: Vec<(u64, f64, f64)>,
}

/// A job on links of its own.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Alone {
    pub(super) job: String,
    pub(super) model: String,
    pub(super) batch: u64,
    pub(super) mean_ms: f64,
    pub(super) simulated_ms: Option<f64>,
    /// What each member sends in an iteration, by the size of its gradients.
    pub(super) bytes: u64,
    pub(super) duty: f64,
    /// No order of sending lets iterations of all jobs be shorter by more.
    pub(super) bound_ms: f64,
    pub(super) learned: Option<Learned>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyReport {
    pub(super) policy: String,
    /// The part of the gap between fair sharing and the bound that is gained.
    pub(super) gain: Option<Interval>,
    pub(super) jobs: Vec<JobReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobReport {
    pub(super) job: String,
    pub(super) mean_ms: f64,
    pub(super) second_half_ms: f64,
    /// Iteration times over those under fair sharing from the same start.
    pub(super) over_fair: Option<Interval>,
    pub(super) simulated_ms: Option<f64>,
    pub(super) simulated_over_fair: Option<f64>,
}

impl JobReport {
    pub(super) fn simulated_error(&self) -> Option<f64> {
        Some(self.mean_ms / self.simulated_ms? - 1.0)
    }

    /// Whether the simulator says the same of who is faster; none where the measured difference may be none.
    fn sign_agrees(&self) -> Option<bool> {
        let (measured, simulated) = (self.over_fair?, self.simulated_over_fair?);
        match (measured.is_above(1.0), measured.is_below(1.0)) {
            (true, _) => Some(simulated > 1.0),
            (_, true) => Some(simulated < 1.0),
            _ => None,
        }
    }
}

/// Reports on a set; none where it has no results.
pub(super) fn report(
    mixes: &Mixes,
    set: &Set,
    known: &Known,
    simulated: &Simulated<'_>,
) -> Option<SetReport> {
    let reports: Vec<MixReport> =
        set.mixes.iter().filter_map(|mix| mix_report(mixes, set, mix, known, simulated)).collect();
    let mut builds: Vec<&str> = known.runs.iter().map(|run| run.build.as_str()).collect();
    builds.sort_unstable();
    builds.dedup();
    let verdicts = verdicts(&mixes.bars, &mixes.ours, &reports);
    let report = SetReport {
        set: set.name.clone(),
        verdicts,
        missing: missing(set, &set.mixes.iter().collect::<Vec<_>>(), known, set.starts).len(),
        failed: known.runs.iter().filter(|run| run.failed.is_some()).count(),
        builds: builds.len(),
        mixes: reports,
    };
    (!report.mixes.is_empty()).then_some(report)
}

/// Runs that have no result yet, round by round: every mix once before any comes again.
pub(super) fn missing<'a>(
    set: &'a Set,
    mixes: &[&'a Mix],
    known: &Known,
    starts: u64,
) -> Vec<(&'a Mix, u64, &'a str)> {
    let mut runs: Vec<(&Mix, u64, &str)> = Vec::new();
    for start in 1..=starts {
        for mix in mixes {
            if start == 1 {
                runs.push((mix, REFERENCE, SEPARATE));
            }
            runs.extend(set.order(start).map(|policy| (*mix, start, policy)));
        }
    }
    runs.retain(|(mix, start, policy)| known.result(&mix.name, *start, policy).is_none());
    runs
}

fn mix_report(
    mixes: &Mixes,
    set: &Set,
    mix: &Mix,
    known: &Known,
    simulated: &Simulated<'_>,
) -> Option<MixReport> {
    let separate = known.result(&mix.name, REFERENCE, SEPARATE)?;
    let jobs = alone(set, mix, separate, simulated)?;
    let of = |policy: &str| Measured::of(set, mix, known, policy, separate, simulated);
    let fair = of(FAIR);
    let policies = set.policies.iter().map(|policy| of(policy)).filter(|measured| !measured.runs.is_empty());
    let measured: Vec<Measured> = policies.collect();
    let fair_over_bound: Vec<f64> =
        fair.rows().zip(jobs.iter().cycle()).map(|(row, alone)| row.mean_ms / alone.bound_ms).collect();
    let ours = measured.iter().find(|measured| measured.policy == mixes.ours);
    Some(MixReport {
        mix: mix.name.clone(),
        models: mix.models,
        duty: jobs.iter().map(|job| job.duty).sum(),
        fair_over_bound: mean(&fair_over_bound),
        policies: measured.iter().map(|measured| measured.report(&fair, &jobs)).collect(),
        rows: measured.iter().flat_map(Measured::rows).cloned().collect(),
        gains: ours.map(|ours| ours.gains(&fair, &jobs)).unwrap_or_default(),
        jobs,
    })
}

fn alone(set: &Set, mix: &Mix, separate: &Run, simulated: &Simulated<'_>) -> Option<Vec<Alone>> {
    let rows = rows(separate, None);
    let simulated = simulated(set, mix, separate, separate);
    let sent = |place: usize| {
        let facts = separate.jobs[place].facts.as_ref()?;
        let load = metronome_core::model::profile::ring_load(facts.members);
        Some(((facts.bytes as f64 * load) as u64, facts.batch))
    };
    let sent: Vec<(u64, u64)> = (0..separate.jobs.len()).map(sent).collect::<Option<_>>()?;
    let duty = |place: usize| sent[place].0 as f64 / set.bytes_per_ms() / rows[place].mean_ms;
    let factor = (0..rows.len()).map(duty).sum::<f64>().max(1.0);
    let alone = |(place, row): (usize, &Row)| Alone {
        job: row.job.clone(),
        model: mix.jobs[place].model.clone(),
        batch: sent[place].1,
        mean_ms: row.mean_ms,
        simulated_ms: simulated.as_ref().map(|simulated| simulated[place]),
        bytes: sent[place].0,
        duty: duty(place),
        bound_ms: row.mean_ms * factor,
        learned: row.learned,
    };
    Some(rows.iter().enumerate().map(alone).collect())
}

/// The runs of a mix under one policy, by start.
struct Measured {
    policy: String,
    /// The rows of each start.
    runs: Vec<(u64, Vec<Row>)>,
}

impl Measured {
    fn of(
        set: &Set,
        mix: &Mix,
        known: &Known,
        policy: &str,
        separate: &Run,
        simulated: &Simulated<'_>,
    ) -> Self {
        let result = |start: u64| known.result(&mix.name, start, policy);
        let runs = (1..=known.runs.iter().map(|run| run.start).max().unwrap_or(0)).filter_map(|start| {
            let run = result(start)?;
            let mut rows = rows(run, known.result(&mix.name, start, FAIR));
            let simulated = simulated(set, mix, run, separate).unwrap_or_default();
            rows.iter_mut().zip(simulated).for_each(|(row, simulated)| row.simulated_ms = Some(simulated));
            (rows.len() == mix.jobs.len()).then_some((start, rows))
        });
        Self { policy: policy.to_owned(), runs: runs.collect() }
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.runs.iter().flat_map(|(_, rows)| rows)
    }

    /// The runs of both with the same start.
    fn paired<'a>(&'a self, fair: &'a Self) -> impl Iterator<Item = (u64, &'a [Row], &'a [Row])> {
        self.runs.iter().filter_map(|(start, own)| {
            let (_, of_fair) = fair.runs.iter().find(|(other, _)| other == start)?;
            Some((*start, own.as_slice(), of_fair.as_slice()))
        })
    }

    /// For each start, in iterations on separate links: what is gained over fair sharing, and what could be.
    fn gains(&self, fair: &Self, jobs: &[Alone]) -> Vec<(u64, f64, f64)> {
        let gain = |(start, own, fair): (u64, &[Row], &[Row])| {
            let each = own.iter().zip(fair).zip(jobs);
            let gain =
                each.clone().map(|((own, fair), alone)| (fair.mean_ms - own.mean_ms) / alone.mean_ms).sum();
            let gap = each.map(|((_, fair), alone)| (fair.mean_ms - alone.bound_ms) / alone.mean_ms).sum();
            (start, gain, gap)
        };
        self.paired(fair).map(gain).collect()
    }

    fn report(&self, fair: &Self, jobs: &[Alone]) -> PolicyReport {
        let gain = (self.policy != FAIR).then(|| ratio(&self.gains(fair, jobs))).flatten();
        let job = |place: usize| {
            let of = |figure: fn(&Row) -> f64| {
                let figures: Vec<f64> = self.runs.iter().map(|(_, rows)| figure(&rows[place])).collect();
                mean(&figures).unwrap_or_default()
            };
            let ratios: Vec<f64> =
                self.paired(fair).map(|(_, own, fair)| own[place].mean_ms / fair[place].mean_ms).collect();
            let simulated_ms = self.simulated(place);
            let over_fair = simulated_ms.zip(fair.simulated(place)).map(|(own, fair)| own / fair);
            JobReport {
                job: jobs[place].job.clone(),
                mean_ms: of(|row| row.mean_ms),
                second_half_ms: of(|row| row.second_half_ms),
                over_fair: Interval::of(&ratios).filter(|_| self.policy != FAIR),
                simulated_ms,
                simulated_over_fair: over_fair.filter(|_| self.policy != FAIR),
            }
        };
        PolicyReport { policy: self.policy.clone(), gain, jobs: (0..jobs.len()).map(job).collect() }
    }

    fn simulated(&self, place: usize) -> Option<f64> {
        let all: Option<Vec<f64>> = self.runs.iter().map(|(_, rows)| rows[place].simulated_ms).collect();
        mean(&all?)
    }
}

fn ratio(gains: &[(u64, f64, f64)]) -> Option<Interval> {
    let of = |which: fn(&(u64, f64, f64)) -> f64| gains.iter().map(which).collect::<Vec<f64>>();
    Interval::of_ratio(&of(|(_, gain, _)| *gain), &of(|(.., gap)| *gap))
}

fn verdicts(bars: &Bars, ours: &str, mixes: &[MixReport]) -> Vec<Verdict> {
    let gains = [(Models::Same, bars.same_model), (Models::Different, bars.different_models)];
    let gains = gains.iter().filter_map(|(models, least)| gain(bars, ours, mixes, *models, *least));
    let of_ours = slowdown(bars, ours, mixes);
    gains.chain([of_ours]).chain(simulation(bars, mixes)).collect()
}

/// The gain over all mixes of a kind in which fair sharing is far enough from the bound; none if there are none.
fn gain(bars: &Bars, ours: &str, mixes: &[MixReport], models: Models, least: f64) -> Option<Verdict> {
    let contended = |mix: &&MixReport| {
        mix.models == models
            && mix.fair_over_bound.is_some_and(|ratio| ratio >= bars.contended)
            && !mix.gains.is_empty()
    };
    let mixes: Vec<&MixReport> = mixes.iter().filter(contended).collect();
    let gained = ratio(&sums(&mixes))?;
    let says = format!(
        "{ours} gains {} of the gap between fair sharing and the bound in {} mixes of {} (asked for: at least {least})",
        gained.text(),
        mixes.len(),
        models.words()
    );
    Some(Verdict { met: gained.mean >= least, says })
}

/// Gains and gaps of the starts that all mixes have, added up.
fn sums(mixes: &[&MixReport]) -> Vec<(u64, f64, f64)> {
    let Some(first) = mixes.first() else { return Vec::new() };
    let sum = |start: u64| {
        let of = |mix: &&MixReport| mix.gains.iter().find(|(other, ..)| *other == start).copied();
        let all: Vec<(u64, f64, f64)> = mixes.iter().map(of).collect::<Option<_>>()?;
        Some((start, all.iter().map(|(_, gain, _)| gain).sum(), all.iter().map(|(.., gap)| gap).sum()))
    };
    first.gains.iter().filter_map(|(start, ..)| sum(*start)).collect()
}

fn slowdown(bars: &Bars, ours: &str, mixes: &[MixReport]) -> Verdict {
    let jobs = mixes.iter().flat_map(|mix| {
        let own = mix.policies.iter().filter(|policy| policy.policy == ours);
        own.flat_map(move |policy| policy.jobs.iter().map(move |job| (mix, job)))
    });
    let slower = jobs.filter_map(|(mix, job)| {
        let ratio = job.over_fair.filter(|ratio| ratio.is_above(bars.most_slowdown))?;
        Some(format!("{} of {} takes {}", job.job, mix.mix, ratio.text()))
    });
    let slower: Vec<String> = slower.collect();
    let which = if slower.is_empty() { String::new() } else { format!(": {}", slower.join(", ")) };
    let says = format!(
        "{} jobs have a 95 % interval of iteration times over fair sharing wholly above {} under {ours}{which}",
        slower.len(),
        bars.most_slowdown
    );
    Verdict { met: slower.is_empty(), says }
}

/// Nothing is said where nothing was simulated.
fn simulation(bars: &Bars, mixes: &[MixReport]) -> Vec<Verdict> {
    let jobs = || mixes.iter().flat_map(|mix| &mix.policies).flat_map(|policy| &policy.jobs);
    let errors: Vec<f64> = jobs().filter_map(JobReport::simulated_error).collect();
    if errors.is_empty() {
        return Vec::new();
    }
    let near = errors.iter().filter(|error| error.abs() <= bars.simulated_within).count();
    let largest = errors.iter().fold(0.0f64, |largest, error| largest.max(error.abs()));
    let within = format!(
        "{near} of {} mean iteration times are within {:.0} % of the simulated ones; the largest error is {:.1} %",
        errors.len(),
        bars.simulated_within * 100.0,
        largest * 100.0
    );
    let signs: Vec<bool> = jobs().filter_map(JobReport::sign_agrees).collect();
    let agree = signs.iter().filter(|agrees| **agrees).count();
    let says = format!(
        "{agree} of {} differences to fair sharing that exclude zero have the simulated sign",
        signs.len()
    );
    vec![Verdict { met: near == errors.len(), says: within }, Verdict { met: agree == signs.len(), says }]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::definition::tests::mixes;
    use super::super::rows::tests::job;
    use super::super::runs::tests::run;
    use super::super::runs::{Facts, JobRun, Line};
    use super::*;

    fn facts(place: usize, bytes: u64, each: f64) -> JobRun {
        let facts =
            Facts { torch: "2".into(), members: 2, nodes: 2, threads: 1, batch: 1, bytes, r#loop: None };
        JobRun { facts: Some(facts), ..job(place, 40, each) }
    }

    /// Two jobs that send for half of 100 ms, over links of 25 MB/s; iteration times under `fair` and `metronome` by start.
    pub(in super::super) fn known(folder: &std::path::Path, times: &[[f64; 2]]) -> Known {
        let mixes = mixes();
        let mut known = Known::read(folder, &mixes.sets[0]).unwrap();
        let mut add = |start, policy: &str, each: f64| {
            let jobs = vec![facts(0, 1_250_000, each), facts(1, 1_250_000, each)];
            known.add(Line::Run(Run { jobs, ..run("twins", start, policy) })).unwrap();
        };
        add(REFERENCE, SEPARATE, 100.0);
        for (start, [fair, ours]) in times.iter().enumerate() {
            add(start as u64 + 1, FAIR, *fair);
            add(start as u64 + 1, "metronome", *ours);
        }
        known
    }

    /// Under every policy as under fair sharing from the first start, or so many times that.
    fn report_of(times: &[[f64; 2]], simulated: f64) -> SetReport {
        let folder = tempfile::tempdir().unwrap();
        let (mixes, known) = (mixes(), known(folder.path(), times));
        let says = |_: &Set, _: &Mix, run: &Run, _: &Run| {
            let fair = times[0][0];
            Some(vec![if run.policy == "metronome" { fair * simulated } else { fair }; 2])
        };
        report(&mixes, &mixes.sets[0], &known, &says).unwrap()
    }

    fn met(report: &SetReport) -> Vec<bool> {
        report.verdicts.iter().map(|verdict| verdict.met).collect()
    }

    #[test]
    fn gains_are_parts_of_the_gap_to_the_bound() {
        let report = report_of(&[[150.0, 120.0], [154.0, 122.0], [146.0, 118.0]], 0.8);
        let mix = &report.mixes[0];
        assert!((mix.duty - 1.0).abs() < 1e-9 && (mix.jobs[0].bound_ms - 100.0).abs() < 1e-9);
        assert!((mix.fair_over_bound.unwrap() - 1.5).abs() < 1e-9);
        let ours = &mix.policies[1];
        assert!((ours.gain.unwrap().mean - 0.6).abs() < 1e-9, "{:?}", ours.gain);
        let over_fair = ours.jobs[0].over_fair.unwrap();
        assert!((over_fair.mean - 0.8).abs() < 0.01 && over_fair.reach.unwrap() < 0.03);
        assert_eq!(met(&report), [true, true, true, true], "{:?}", report.verdicts);
        assert_eq!(report.missing, 2 + 7, "`shift` from two starts, and all of the other mix");
    }

    #[test]
    fn too_small_a_gain_and_a_slower_job_miss_their_bars() {
        let report = report_of(&[[150.0, 130.0], [154.0, 132.0], [146.0, 128.0]], 0.87);
        assert_eq!(met(&report), [false, true, true, true], "{:?}", report.verdicts);
        let report = report_of(&[[150.0, 158.0], [154.0, 162.0], [146.0, 154.0]], 0.99);
        assert_eq!(met(&report), [false, false, false, false], "{:?}", report.verdicts);
        assert!(report.verdicts[1].says.contains("job-0 of twins takes 1.05"), "{:?}", report.verdicts[1]);
        // One start says nothing about what is chance.
        let report = report_of(&[[150.0, 158.0]], 1.05);
        assert_eq!(met(&report), [false, true, true, true], "{:?}", report.verdicts);
    }

    #[test]
    fn a_mix_near_its_bound_is_not_asked_to_gain() {
        let report = report_of(&[[108.0, 107.0], [109.0, 109.0]], 1.0);
        assert_eq!(met(&report), [true, true, true], "{:?}", report.verdicts);
    }

    #[test]
    fn rounds_are_whole_and_reference_runs_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let (mixes, known) = (mixes(), known(folder.path(), &[[150.0, 120.0]]));
        let set = &mixes.sets[0];
        let all: Vec<&Mix> = set.mixes.iter().collect();
        let missing: Vec<(&str, u64, &str)> = missing(set, &all, &known, 2)
            .iter()
            .map(|(mix, start, policy)| (mix.name.as_str(), *start, *policy))
            .collect();
        let expected = [
            ("twins", 1, "shift"),
            ("crowd", REFERENCE, SEPARATE),
            ("crowd", 1, "fair"),
            ("crowd", 1, "shift"),
            ("crowd", 1, "metronome"),
            ("twins", 2, "shift"),
            ("twins", 2, "metronome"),
            ("twins", 2, "fair"),
        ];
        assert_eq!(missing[..expected.len()], expected);
    }
}
