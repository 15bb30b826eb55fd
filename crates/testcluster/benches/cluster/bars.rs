//! What Metronome is to reach, and whether it did.

use std::fmt;

use crate::figures::Figure;
use crate::results::Results;
use crate::scenarios::Scenario;
use crate::schedulers::Scheduler;

struct Bar {
    scenario: Scenario,
    figure: Figure,
    than: Than,
    limit: Limit,
}

/// What a figure is held against.
#[derive(Clone, Copy)]
enum Than {
    /// The same figure of another, measured in the same run.
    Rival(Scheduler),
    Nothing,
}

#[derive(Clone, Copy)]
enum Limit {
    AtLeast(f64),
    Below(f64),
}

const fn bar(scenario: Scenario, figure: Figure, than: Than, limit: Limit) -> Bar {
    Bar { scenario, figure, than, limit }
}

const KUBE: Than = Than::Rival(Scheduler::Kube);
const VOLCANO: Than = Than::Rival(Scheduler::Volcano);
const LESS: Limit = Limit::Below(1.0);

const BARS: [Bar; 16] = [
    bar(Scenario::Singles, Figure::Rate, KUBE, Limit::AtLeast(0.95)),
    bar(Scenario::Singles, Figure::CpuPerPod, KUBE, LESS),
    bar(Scenario::Singles, Figure::PeakMemory, KUBE, LESS),
    bar(Scenario::Gangs, Figure::Rate, KUBE, Limit::AtLeast(0.95)),
    bar(Scenario::Gangs, Figure::All, VOLCANO, LESS),
    bar(Scenario::Gangs, Figure::CpuPerPod, KUBE, LESS),
    bar(Scenario::Gangs, Figure::CpuPerPod, VOLCANO, LESS),
    bar(Scenario::Gangs, Figure::PeakMemory, KUBE, LESS),
    bar(Scenario::LargeGang, Figure::All, KUBE, LESS),
    bar(Scenario::LargeGang, Figure::All, VOLCANO, LESS),
    // The bar is a second of the scheduler's own time; how long the API server takes for the binds is not its doing.
    bar(Scenario::LargeGang, Figure::Cpu, Than::Nothing, Limit::Below(1.0)),
    bar(Scenario::Unschedulable, Figure::CpuPerPod, KUBE, LESS),
    bar(Scenario::Unschedulable, Figure::IdleCpu, KUBE, LESS),
    bar(Scenario::Restart, Figure::All, Than::Nothing, Limit::Below(10.0)),
    bar(Scenario::Restart, Figure::All, KUBE, LESS),
    bar(Scenario::Restart, Figure::PeakMemory, KUBE, LESS),
];

pub(crate) fn print(results: &Results) {
    println!("\n{:<13} {:<11} {:<19} {:>8}  {:<8} verdict", "bar", "figure", "", "measured", "wanted");
    for bar in BARS {
        let measured = bar.measured(results);
        let shown = measured.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let verdict = match measured {
            None => "not measured",
            Some(value) if bar.limit.is_met_by(value) => "met",
            Some(_) => "missed",
        };
        let (scenario, figure, than, limit) = (bar.scenario, bar.figure.heading(), bar.than, bar.limit);
        println!("{scenario:<13} {figure:<11} {than:<19} {shown:>8}  {limit:<8} {verdict}");
    }
}

impl Bar {
    fn measured(&self, results: &Results) -> Option<f64> {
        let ours = Scheduler::Metronome;
        match self.than {
            Than::Nothing => results.median(self.scenario, ours, self.figure),
            Than::Rival(rival) => results.ratio(self.scenario, ours, rival, self.figure),
        }
    }
}

impl Limit {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(limit) => value >= limit,
            Self::Below(limit) => value < limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::AtLeast(limit) => format!("≥ {limit}"),
            Self::Below(limit) => format!("< {limit}"),
        })
    }
}

impl fmt::Display for Than {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Rival(rival) => format!("of {rival}'s"),
            Self::Nothing => String::new(),
        })
    }
}
