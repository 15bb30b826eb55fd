//! What queues have held lately. It fades: what was held one half-life ago counts half as much as what is held now.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Holdings, Queue};
use crate::model::id::{IdVec, QueueId};
use crate::model::units::{Cpu, Duration, Gpus, Instant, Memory, Resources};

/// Time is counted in steps of which a half-life has so many: whole steps fade by whole numbers, the same everywhere.
const STEPS: u64 = 64;

/// What is left after one step, in parts of 2³²: the 64th root of a half.
const LEFT_AFTER_A_STEP: u64 = 4_248_701_965;

/// The mean of what one queue has held, the later the more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Past {
    mean: Resources,
    /// Up to when it is counted in.
    until: Instant,
}

/// What queues have held, of those whose past counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pasts(BTreeMap<QueueId, Past>);

impl Pasts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What counts of a queue that holds so much: the middle between that and what it has held lately, where its past
    /// counts. Who always held as much counts with just that.
    pub fn counted(&self, queue: QueueId, held: Resources) -> Resources {
        let Some(Past { mean, .. }) = self.0.get(&queue) else { return held };
        Resources {
            cpu: Cpu(held.cpu.0.midpoint(mean.cpu.0)),
            memory: Memory(held.memory.0.midpoint(mean.memory.0)),
            gpus: Gpus(held.gpus.0.midpoint(mean.gpus.0)),
        }
    }

    /// Time has gone on to `now` while queues held this.
    pub(crate) fn go_on(&mut self, queues: &IdVec<QueueId, Queue>, held: &Holdings, now: Instant) {
        for (id, half_life) in queues.iter().filter_map(|(id, queue)| Some((id, queue.history?))) {
            let past = self.0.entry(id).or_insert(Past { mean: Resources::NONE, until: now });
            past.go_on(held.by_queue()[id], half_life, now);
        }
        self.0.retain(|id, _| queues.get(*id).is_some_and(|queue| queue.history.is_some()));
    }
}

impl Past {
    fn go_on(&mut self, held: Resources, half_life: Duration, now: Instant) {
        let step = (half_life.0 / STEPS).max(1);
        let steps = now.since(self.until).0 / step;
        if steps == 0 {
            return;
        }
        let left = left_after(steps);
        let faded = |mean: u64, held: u64| {
            let sum = u128::from(mean) * u128::from(left) + u128::from(held) * u128::from((1 << 32) - left);
            (sum >> 32) as u64
        };
        self.mean = Resources {
            cpu: Cpu(faded(self.mean.cpu.0, held.cpu.0)),
            memory: Memory(faded(self.mean.memory.0, held.memory.0)),
            gpus: Gpus(faded(self.mean.gpus.0, held.gpus.0)),
        };
        self.until = self.until + Duration(steps * step);
    }
}

/// What is left after so many steps, in parts of 2³².
fn left_after(mut steps: u64) -> u64 {
    let (mut left, mut factor) = (1u128 << 32, u128::from(LEFT_AFTER_A_STEP));
    while steps > 0 && left > 0 {
        if steps % 2 == 1 {
            left = (left * factor) >> 32;
        }
        factor = (factor * factor) >> 32;
        steps /= 2;
    }
    left as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(count: u64) -> Resources {
        Resources { gpus: Gpus::whole(count), ..Resources::NONE }
    }

    #[test]
    fn what_was_held_a_half_life_ago_counts_half() {
        let mut past = Past { mean: gpus(8), until: Instant::START };
        past.go_on(Resources::NONE, Duration::HOUR, Instant::START + Duration::HOUR);
        let left = past.mean.gpus.0 as f64 / gpus(8).gpus.0 as f64;
        assert!((left - 0.5).abs() < 1e-3, "{left}");
        past.go_on(gpus(8), Duration::HOUR, Instant::START + Duration::HOUR.times(100));
        assert!(past.mean.gpus.0 >= gpus(8).gpus.0 - 1, "who always holds as much is known to");
    }

    #[test]
    fn it_does_not_matter_how_often_somebody_looks() {
        let end = Instant::START + Duration::HOUR.times(3);
        let mut often = Past { mean: gpus(8), until: Instant::START };
        for minute in 1..=180 {
            often.go_on(gpus(2), Duration::HOUR, Instant::START + Duration::MINUTE.times(minute));
        }
        let mut once = Past { mean: gpus(8), until: Instant::START };
        once.go_on(gpus(2), Duration::HOUR, end);
        assert!(once.mean.gpus.0.abs_diff(often.mean.gpus.0) <= 200, "{once:?} {often:?}");
    }
}
