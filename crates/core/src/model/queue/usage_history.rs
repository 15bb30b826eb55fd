//! Usage history of queues with exponential decay: usage one half-life ago counts half.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Holdings, Queue};
use crate::model::id::{IdVec, QueueId};
use crate::model::units::{Cpu, Duration, Gpus, Instant, Memory, Resources};

/// Steps per half-life: decay by whole steps is exact in integers, on every machine.
const STEPS_PER_HALF_LIFE: u64 = 64;

/// Decay per step in units of 2⁻³²: the 64th root of one half.
const DECAY_PER_STEP: u64 = 4_248_701_965;

/// Decaying mean of one queue's usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct UsageHistory {
    mean: Resources,
    /// Time up to which usage is included.
    until: Instant,
}

/// Usage histories of the queues that have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsageHistories(BTreeMap<QueueId, UsageHistory>);

impl UsageHistories {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Usage that counts when queues are compared: the midpoint of present usage and history. For constant usage,
    /// both are equal.
    pub fn counted(&self, queue: QueueId, held: Resources) -> Resources {
        let Some(UsageHistory { mean, .. }) = self.0.get(&queue) else { return held };
        Resources {
            cpu: Cpu(held.cpu.0.midpoint(mean.cpu.0)),
            memory: Memory(held.memory.0.midpoint(mean.memory.0)),
            gpus: Gpus(held.gpus.0.midpoint(mean.gpus.0)),
        }
    }

    /// Adds the usage up to `now`.
    pub(crate) fn go_on(&mut self, queues: &IdVec<QueueId, Queue>, held: &Holdings, now: Instant) {
        for (id, half_life) in queues.iter().filter_map(|(id, queue)| Some((id, queue.history?))) {
            let past = self.0.entry(id).or_insert(UsageHistory { mean: Resources::NONE, until: now });
            past.go_on(held.by_queue()[id], half_life, now);
        }
        self.0.retain(|id, _| queues.get(*id).is_some_and(|queue| queue.history.is_some()));
    }
}

impl UsageHistory {
    fn go_on(&mut self, held: Resources, half_life: Duration, now: Instant) {
        let step = (half_life.0 / STEPS_PER_HALF_LIFE).max(1);
        let steps = now.since(self.until).0 / step;
        if steps == 0 {
            return;
        }
        let left = decay_after(steps);
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

/// Decay after `steps` steps, in units of 2⁻³².
fn decay_after(mut steps: u64) -> u64 {
    let (mut left, mut factor) = (1u128 << 32, u128::from(DECAY_PER_STEP));
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
    fn usage_one_half_life_ago_counts_half() {
        let mut past = UsageHistory { mean: gpus(8), until: Instant::START };
        past.go_on(Resources::NONE, Duration::HOUR, Instant::START + Duration::HOUR);
        let left = past.mean.gpus.0 as f64 / gpus(8).gpus.0 as f64;
        assert!((left - 0.5).abs() < 1e-3, "{left}");
        past.go_on(gpus(8), Duration::HOUR, Instant::START + Duration::HOUR.times(100));
        assert!(past.mean.gpus.0 >= gpus(8).gpus.0 - 1, "the mean reaches constant usage");
    }

    #[test]
    fn usage_history_does_not_depend_on_the_number_of_updates() {
        let end = Instant::START + Duration::HOUR.times(3);
        let mut often = UsageHistory { mean: gpus(8), until: Instant::START };
        for minute in 1..=180 {
            often.go_on(gpus(2), Duration::HOUR, Instant::START + Duration::MINUTE.times(minute));
        }
        let mut once = UsageHistory { mean: gpus(8), until: Instant::START };
        once.go_on(gpus(2), Duration::HOUR, end);
        assert!(once.mean.gpus.0.abs_diff(often.mean.gpus.0) <= 200, "{once:?} {often:?}");
    }
}
