//! How well starts are foreseen, on random scenarios. `--example forecast` prints the whole table.

use metronome_sim::world::Estimates;
use metronome_testkit::build::policy;
use metronome_testkit::foresight::{Figures, Later, case, figures, told};

/// Half of those that the example looks at.
const SCENARIOS: u64 = 100;

fn measured(name: &str, estimates: Estimates, later: Later) -> Figures {
    let policy = policy(name);
    let told: Vec<_> =
        (1..=SCENARIOS).flat_map(|seed| told(&case(seed), &policy, estimates, later)).collect();
    figures(&told)
}

#[test]
fn where_everything_goes_as_foreseen_every_start_is_foreseen_to_the_second() {
    for name in ["metronome", "fifo", "fifo-skip", "volcano", "srtf", "srsf", "tiresias"] {
        let figures = measured(name, Estimates::Exact, Later::Nobody);
        assert!(figures.jobs > 50, "{name}: {figures:?}");
        assert_eq!((figures.unmatched, figures.exact), (0, 1.0), "{name}: {figures:?}");
    }
}

#[test]
fn where_owners_misjudge_or_others_come_starts_are_missed() {
    let misjudged = measured("metronome", Estimates::Lognormal { sigma: 0.3 }, Later::Nobody);
    let disturbed = measured("metronome", Estimates::Exact, Later::AsDrawn);
    for figures in [misjudged, disturbed] {
        assert!(figures.exact < 1.0, "the measure can tell: {figures:?}");
    }
    assert!(misjudged.p50 < 0.5, "the median start is missed by less than half the wait: {misjudged:?}");
}
