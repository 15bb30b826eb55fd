//! What the figures come to, in words. Where Metronome is not better, that is what they say.

use super::text::{Unit, count, number, percent, tidy, time};
use crate::results::{Comparison, Figures, PolicySummary};

const OURS: &str = "metronome";
/// kube-scheduler's scores with gangs whole: the fair comparison.
const BASELINE: &str = "coscheduling";
/// The same pod by pod.
const POD_BY_POD: &str = "kubernetes";

/// Less than this is no difference worth a word.
const NOTABLE: f64 = 0.005;

pub(super) fn find<'a>(comparison: &'a Comparison, policy: &str) -> Option<&'a Figures<f64>> {
    let of = |summary: &&PolicySummary| summary.policy == policy;
    comparison.summary.iter().find(of).map(|summary| &summary.figures)
}

/// By which share ours is below the baseline in mean JCT; negative where it is above.
pub(super) fn gain(comparison: &Comparison) -> Option<f64> {
    let mean = |policy| find(comparison, policy)?.jct_s.mean;
    let (ours, baseline) = (mean(OURS)?, mean(BASELINE)?);
    (baseline > 0.0).then(|| 1.0 - ours / baseline)
}

/// One line above everything else.
pub fn headline(comparison: &Comparison) -> String {
    let abandons = |policy| find(comparison, policy).is_some_and(|figures| never_completed(figures) > 0.0);
    match gain(comparison) {
        Some(_) if abandons(OURS) || abandons(BASELINE) => {
            format!("Not every job completes under {OURS} and {BASELINE}: their times cannot be compared")
        }
        Some(gain) if gain >= NOTABLE => {
            format!("Jobs complete {} sooner under {OURS} than under {BASELINE}", percent(gain))
        }
        Some(gain) if gain <= -NOTABLE => {
            format!("Jobs complete {} later under {OURS} than under {BASELINE}", percent(-gain))
        }
        Some(_) => format!("{OURS} and {BASELINE} take jobs equally long"),
        None => best_of(comparison),
    }
}

fn best_of(comparison: &Comparison) -> String {
    let complete = comparison.summary.iter().filter(|summary| never_completed(&summary.figures) == 0.0);
    let timed = complete.filter_map(|summary| Some((summary.figures.jct_s.mean?, &summary.policy)));
    match timed.min_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((mean, policy)) if comparison.summary.len() > 1 => {
            format!("{policy} completes jobs soonest: in {} on average", time(mean))
        }
        Some((mean, policy)) => format!("{policy} completes jobs in {} on average", time(mean)),
        None => "No policy completes every job".to_owned(),
    }
}

fn never_completed(figures: &Figures<f64>) -> f64 {
    figures.jobs.unfinished + figures.jobs.failed
}

/// Two or three sentences for somebody who has seen neither the policies nor the figures before.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    [completion(comparison), contention(comparison), deadlock(comparison)].into_iter().flatten().collect()
}

fn completion(comparison: &Comparison) -> Option<String> {
    let (ours, baseline) = (find(comparison, OURS)?, find(comparison, BASELINE)?);
    let means = [ours.jct_s.mean?, baseline.jct_s.mean?];
    let [ours, baseline] = means.map(|mean| Unit::of_all(means).tell(mean));
    Some(format!(
        "From submission to completion a job takes {ours} on average under {OURS}, and {baseline} under \
         {BASELINE}, which scores nodes as kube-scheduler does and places gangs whole."
    ))
}

/// Only where jobs meet on links, or are slowed for another reason.
fn contention(comparison: &Comparison) -> Option<String> {
    let (ours, baseline) = (find(comparison, OURS)?, find(comparison, BASELINE)?);
    let (slower, by) = (ours.slowdown.mean?, baseline.slowdown.mean?);
    ((slower - 1.0).abs() >= NOTABLE || (by - 1.0).abs() >= NOTABLE).then(|| {
        format!(
            "Sharing links with others makes an iteration take {} times as long as alone at the same place \
             under {OURS}, and {} times under {BASELINE}.",
            tidy(slower),
            tidy(by),
        )
    })
}

fn deadlock(comparison: &Comparison) -> Option<String> {
    let jobs = &find(comparison, POD_BY_POD)?.jobs;
    let all = count(jobs.submitted, "job");
    if jobs.deadlocked == 0.0 {
        return Some(format!(
            "Pod by pod, as {POD_BY_POD} places them, none of the {all} deadlocked this time."
        ));
    }
    Some(format!(
        "Pod by pod, as {POD_BY_POD} places them, {} of {all} deadlocked: each holds GPUs while it waits for others \
         to give theirs; {} never completed. Times of {POD_BY_POD} count up to the end of the run only and are no merit.",
        number(jobs.deadlocked, 1),
        number(jobs.unfinished, 1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{JctSeconds, Jobs, Slowdown};

    fn row(policy: &str, mean: f64, deadlocked: f64) -> PolicySummary {
        let jobs = Jobs { submitted: 120.0, deadlocked, unfinished: 2.0 * deadlocked, ..Jobs::default() };
        let jct_s = JctSeconds { mean: Some(mean), ..JctSeconds::default() };
        PolicySummary { policy: policy.into(), figures: Figures { jobs, jct_s, ..Figures::default() } }
    }

    fn comparison(summary: Vec<PolicySummary>) -> Comparison {
        Comparison { version: 1, scenario: "sample".into(), results: Vec::new(), summary }
    }

    #[test]
    fn the_headline_says_who_wins_and_by_how_much() {
        let of = |ours| headline(&comparison(vec![row(BASELINE, 1000.0, 0.0), row(OURS, ours, 0.0)]));
        assert_eq!(of(766.0), "Jobs complete 23 % sooner under metronome than under coscheduling");
        assert_eq!(of(1050.0), "Jobs complete 5 % later under metronome than under coscheduling");
        assert_eq!(of(1001.0), "metronome and coscheduling take jobs equally long");
    }

    #[test]
    fn a_policy_that_leaves_jobs_behind_wins_nothing() {
        let text = headline(&comparison(vec![row(BASELINE, 1000.0, 0.0), row(OURS, 10.0, 3.0)]));
        assert_eq!(
            text,
            "Not every job completes under metronome and coscheduling: their times cannot be compared"
        );
        let others = comparison(vec![row("fifo", 50.0, 3.0), row("srtf", 60.0, 0.0)]);
        assert_eq!(headline(&others), "srtf completes jobs soonest: in 60 s on average");
    }

    #[test]
    fn deadlocks_are_told_and_so_is_that_there_are_none() {
        let stuck = sentences(&comparison(vec![row(POD_BY_POD, 10.0, 3.0)]));
        assert!(stuck[0].contains("3 of 120 jobs deadlocked") && stuck[0].contains("6 never completed"));
        let free = sentences(&comparison(vec![row(POD_BY_POD, 10.0, 0.0)]));
        assert!(free[0].contains("none of the 120 jobs deadlocked"), "{free:?}");
    }

    #[test]
    fn contention_is_told_where_there_is_any() {
        let slowed = |policy, mean| {
            let mut row = row(policy, 10.0, 0.0);
            row.figures.slowdown = Slowdown { mean: Some(mean), ..Slowdown::default() };
            row
        };
        let told = sentences(&comparison(vec![slowed(BASELINE, 1.31), slowed(OURS, 1.04)]));
        assert!(told[1].contains("1.04 times") && told[1].contains("1.31 times"), "{told:?}");
        assert_eq!(sentences(&comparison(vec![slowed(BASELINE, 1.0), slowed(OURS, 1.0)])).len(), 1);
    }
}
