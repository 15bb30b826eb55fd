//! The medians of each scenario, and how they relate to those of the others.

use clap::ValueEnum;

use crate::figures::Figure;
use crate::options::Sizes;
use crate::results::Results;
use crate::scenarios::Scenario;
use crate::schedulers::Scheduler;

pub(crate) fn print(results: &Results, sizes: &Sizes) {
    for scenario in Scenario::value_variants() {
        let schedulers = present(results, *scenario);
        if schedulers.is_empty() {
            continue;
        }
        println!("\n{}", scenario.describe(sizes));
        print_cells("", scenario.figures().iter().map(|figure| figure.heading().to_owned()));
        for scheduler in schedulers {
            print_scheduler(results, *scenario, scheduler);
        }
    }
}

fn present(results: &Results, scenario: Scenario) -> Vec<Scheduler> {
    let all = Scheduler::value_variants().iter().copied();
    all.filter(|scheduler| results.tried(scenario, *scheduler).0 > 0).collect()
}

fn print_scheduler(results: &Results, scenario: Scenario, scheduler: Scheduler) {
    let median = |figure: &Figure| results.median(scenario, scheduler, *figure);
    let cell = |figure: &Figure| shown(median(figure), figure.decimals());
    print_cells(&scheduler.to_string(), scenario.figures().iter().map(cell));
    for rival in scheduler.rivals() {
        let ratio = |figure: &Figure| results.ratio(scenario, scheduler, rival, *figure);
        if scenario.figures().iter().any(|figure| ratio(figure).is_some()) {
            let cells = scenario.figures().iter().map(|figure| shown(ratio(figure), 2));
            print_cells(&format!("  of {rival}'s"), cells);
        }
    }
    match results.tried(scenario, scheduler) {
        (tried, 0) => println!("  median of {tried}"),
        (tried, failed) => println!("  median of {}: {failed} of {tried} failed", tried - failed),
    }
}

fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn print_cells(name: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!(" {cell:>11}")).collect();
    println!("{name:<20}{cells}");
}
