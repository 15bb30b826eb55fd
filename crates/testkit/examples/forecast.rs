//! Predicted starts against what then happens, on 200 random scenarios:
//! `cargo run --release -p metronome-testkit --example forecast [SCENARIOS]`

use metronome_sim::world::Estimates;
use metronome_testkit::build::policy;
use metronome_testkit::foresight::{Case, Figures, Later, case, figures, told};

const POLICIES: [&str; 4] = ["metronome", "fifo", "volcano", "srtf"];

/// Owners misjudge their jobs by 30 %.
const MISJUDGED: Estimates = Estimates::Lognormal { sigma: 0.3 };

fn main() {
    let scenarios = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    let cases: Vec<Case> = (1..=scenarios).map(case).collect();
    println!("{scenarios} random scenarios, one look ahead each; error of the predicted start\n");
    println!(
        "| policy | lengths | later arrivals | jobs | unmatched | to the second | p50 s | p90 s | p50 | p90 |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for name in POLICIES {
        for (lengths, estimates) in [("exact", Estimates::Exact), ("± 30 %", MISJUDGED)] {
            for (arrivals, later) in [("none", Later::Nobody), ("as drawn", Later::AsDrawn)] {
                let policy = policy(name);
                let all: Vec<_> =
                    cases.iter().flat_map(|case| told(case, &policy, estimates, later)).collect();
                println!("| {name} | {lengths} | {arrivals} | {} |", row(&figures(&all)));
            }
        }
    }
}

fn row(figures: &Figures) -> String {
    let Figures { jobs, unmatched, exact, p50_s, p90_s, p50, p90 } = figures;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let shares = [*p50, *p90].map(percent).join(" | ");
    format!("{jobs} | {unmatched} | {} | {p50_s:.1} | {p90_s:.1} | {shares}", percent(*exact))
}
