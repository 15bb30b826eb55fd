//! Means over seeds, key by key.

use super::figures::{
    Allocated, BestEffort, Bound, ByPriority, Class, CpuUtilisation, Deadlines, Decisions, ExchangeSeconds,
    Figures, JctSeconds, Jobs, LinkAnswerSeconds, QualitySeconds, QueueingSeconds, Reconfigurations,
    Slowdown, Utilisation,
};
use super::{PolicySummary, RunResult};

/// One summary for each policy, in the order in which the policies first appear.
pub(super) fn by_policy(results: &[RunResult]) -> Vec<PolicySummary> {
    let mut policies: Vec<&str> = Vec::new();
    for result in results {
        if !policies.contains(&result.policy.as_str()) {
            policies.push(&result.policy);
        }
    }
    let of = |policy: &str| -> Vec<&Figures<u64>> {
        results.iter().filter(|result| result.policy == policy).map(|result| &result.figures).collect()
    };
    policies
        .into_iter()
        .map(|policy| PolicySummary { policy: policy.to_owned(), figures: mean_figures(&of(policy)) })
        .collect()
}

/// The runs of one policy, of which there is at least one.
type Runs<'a> = [&'a Figures<u64>];

fn count(runs: &Runs, of: impl Fn(&Figures<u64>) -> u64) -> f64 {
    runs.iter().map(|figures| of(figures) as f64).sum::<f64>() / runs.len() as f64
}

/// The mean over the runs that measured it.
fn mean(runs: &Runs, of: impl Fn(&Figures<u64>) -> Option<f64>) -> Option<f64> {
    let measured: Vec<f64> = runs.iter().filter_map(|figures| of(figures)).collect();
    (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64)
}

fn mean_figures(runs: &Runs) -> Figures<f64> {
    Figures {
        jobs: jobs(runs),
        jct_s: JctSeconds {
            mean: mean(runs, |run| run.jct_s.mean),
            median: mean(runs, |run| run.jct_s.median),
            p90: mean(runs, |run| run.jct_s.p90),
            p99: mean(runs, |run| run.jct_s.p99),
        },
        makespan_s: mean(runs, |run| run.makespan_s),
        quality_s: QualitySeconds {
            to_90: mean(runs, |run| run.quality_s.to_90),
            to_95: mean(runs, |run| run.quality_s.to_95),
            to_99: mean(runs, |run| run.quality_s.to_99),
        },
        queueing_s: QueueingSeconds {
            mean: mean(runs, |run| run.queueing_s.mean),
            p99: mean(runs, |run| run.queueing_s.p99),
        },
        slowdown: Slowdown {
            mean: mean(runs, |run| run.slowdown.mean),
            p99: mean(runs, |run| run.slowdown.p99),
            max: mean(runs, |run| run.slowdown.max),
        },
        exchange_s: ExchangeSeconds {
            mean: mean(runs, |run| run.exchange_s.mean),
            p99: mean(runs, |run| run.exchange_s.p99),
        },
        link_utilisation: Utilisation { mean: mean(runs, |run| run.link_utilisation.mean) },
        gpu_utilisation: Utilisation { mean: mean(runs, |run| run.gpu_utilisation.mean) },
        gpu_allocated: Allocated { peak: mean(runs, |run| run.gpu_allocated.peak) },
        cpu_allocated_utilisation: CpuUtilisation {
            mean: mean(runs, |run| run.cpu_allocated_utilisation.mean),
            nearly_parallel: mean(runs, |run| run.cpu_allocated_utilisation.nearly_parallel),
        },
        deadlines: Deadlines {
            total: count(runs, |run| run.deadlines.total),
            met: count(runs, |run| run.deadlines.met),
            share: mean(runs, |run| run.deadlines.share),
            strict: bound(runs, |deadlines| &deadlines.strict),
            soft: bound(runs, |deadlines| &deadlines.soft),
            best_effort: bound(runs, |deadlines| &deadlines.best_effort),
            admitted: bound(runs, |deadlines| &deadlines.admitted),
            promised: bound(runs, |deadlines| &deadlines.promised),
        },
        best_effort: BestEffort {
            jobs: count(runs, |run| run.best_effort.jobs),
            jct_mean_s: mean(runs, |run| run.best_effort.jct_mean_s),
        },
        by_priority: ByPriority {
            high: class(runs, |by| &by.high),
            normal: class(runs, |by| &by.normal),
            low: class(runs, |by| &by.low),
        },
        moves: count(runs, |run| run.moves),
        resizes: count(runs, |run| run.resizes),
        resizes_in_place: count(runs, |run| run.resizes_in_place),
        preemptions: count(runs, |run| run.preemptions),
        reconfigurations: reconfigurations(runs),
        link_answer_s: LinkAnswerSeconds {
            mean: mean(runs, |run| run.link_answer_s.mean),
            max: mean(runs, |run| run.link_answer_s.max),
        },
        decisions: Decisions {
            count: count(runs, |run| run.decisions.count),
            p50_ms: mean(runs, |run| run.decisions.p50_ms),
            p99_ms: mean(runs, |run| run.decisions.p99_ms),
        },
    }
}

fn bound(runs: &Runs, of: fn(&Deadlines<u64>) -> &Bound<u64>) -> Bound<f64> {
    Bound {
        total: count(runs, |run| of(&run.deadlines).total),
        met: count(runs, |run| of(&run.deadlines).met),
        missed: count(runs, |run| of(&run.deadlines).missed),
    }
}

fn reconfigurations(runs: &Runs) -> Reconfigurations<f64> {
    Reconfigurations {
        arrival: count(runs, |run| run.reconfigurations.arrival),
        departure: count(runs, |run| run.reconfigurations.departure),
        link: count(runs, |run| run.reconfigurations.link),
        profile: count(runs, |run| run.reconfigurations.profile),
        drift: count(runs, |run| run.reconfigurations.drift),
        priorities: count(runs, |run| run.reconfigurations.priorities),
        room: count(runs, |run| run.reconfigurations.room),
        fragmentation: count(runs, |run| run.reconfigurations.fragmentation),
        slow_node: count(runs, |run| run.reconfigurations.slow_node),
        drained: count(runs, |run| run.reconfigurations.drained),
    }
}

fn jobs(runs: &Runs) -> Jobs<f64> {
    Jobs {
        submitted: count(runs, |run| run.jobs.submitted),
        completed: count(runs, |run| run.jobs.completed),
        refused: count(runs, |run| run.jobs.refused),
        failed: count(runs, |run| run.jobs.failed),
        deadlocked: count(runs, |run| run.jobs.deadlocked),
        unfinished: count(runs, |run| run.jobs.unfinished),
    }
}

fn class(runs: &Runs, of: fn(&ByPriority) -> &Class) -> Class {
    Class {
        jct_mean_s: mean(runs, |run| of(&run.by_priority).jct_mean_s),
        slowdown_mean: mean(runs, |run| of(&run.by_priority).slowdown_mean),
        slowdown_p99: mean(runs, |run| of(&run.by_priority).slowdown_p99),
    }
}
