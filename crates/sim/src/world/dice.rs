//! Chance, seeded, one stream per purpose: what befalls steps on their way.

use metronome_core::model::units::{Duration, Share};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::scenario::Fault;

/// What befalls a step on its way to the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fortune {
    Comes,
    ComesLate(Duration),
    IsLost,
    Fails,
}

#[derive(Debug)]
pub(super) struct Dice {
    chances: Option<Chances>,
    steps: Pcg64,
    reports: Pcg64,
}

#[derive(Clone, Copy, Debug)]
struct Chances {
    fail: Share,
    late: Share,
    lost: Share,
    delay: Duration,
}

const STEPS: u128 = 1;
const REPORTS: u128 = 2;

impl Dice {
    pub(super) fn new(seed: u64, faults: &[Fault]) -> Self {
        let chances = faults.iter().rev().find_map(|fault| match *fault {
            Fault::Steps { fail, late, lost, delay } => Some(Chances { fail, late, lost, delay }),
            Fault::Node { .. }
            | Fault::Spoilt { .. }
            | Fault::Slow { .. }
            | Fault::Link { .. }
            | Fault::Hang { .. }
            | Fault::Agent { .. } => None,
        });
        let stream = |purpose| Pcg64::new(u128::from(seed), purpose);
        Self { chances, steps: stream(STEPS), reports: stream(REPORTS) }
    }

    pub(super) fn fortune(&mut self) -> Fortune {
        let Some(chances) = self.chances else { return Fortune::Comes };
        let drawn = self.steps.random_range(0..Share::WHOLE.0);
        let (fail, late) = (chances.fail.0, chances.fail.0.saturating_add(chances.late.0));
        let lost = late.saturating_add(chances.lost.0);
        match drawn {
            _ if drawn < fail => Fortune::Fails,
            _ if drawn < late => Fortune::ComesLate(Duration(self.steps.random_range(0..=chances.delay.0))),
            _ if drawn < lost => Fortune::IsLost,
            _ => Fortune::Comes,
        }
    }

    /// How long the engine waits for word of a step that took effect; for ever, if the word is lost.
    pub(super) fn report_delay(&mut self) -> Option<Duration> {
        let Some(chances) = self.chances else { return Some(Duration::ZERO) };
        let drawn = self.reports.random_range(0..Share::WHOLE.0);
        match drawn {
            _ if drawn < chances.lost.0 => None,
            _ if drawn < chances.lost.0.saturating_add(chances.late.0) => {
                Some(Duration(self.reports.random_range(0..=chances.delay.0)))
            }
            _ => Some(Duration::ZERO),
        }
    }
}
