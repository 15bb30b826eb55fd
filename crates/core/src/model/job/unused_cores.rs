//! Cores that a job has and does not use.
//!
//! Who uses less than four fifths of what it has for two minutes has enough with what it used most of them meanwhile, and a
//! tenth beside; that holds until it uses nearly all of what it has. Between the two nothing changes: so nobody goes back
//! and forth.

use serde::{Deserialize, Serialize};

use super::{Job, Life};
use crate::model::units::{Cpu, Duration, Instant, Share};
use crate::observe::progress::Sample;

/// Less than this part of its cores is little.
const LITTLE: Share = Share(800_000);

/// Who uses more than this part of its cores might use more of them.
const NEARLY_ALL: Share = Share(950_000);

/// Of what is enough this part is used.
const ENOUGH: Share = Share(900_000);

/// It is a lull if it lasts so long.
const LASTS: Duration = Duration(2 * Duration::MINUTE.0);

/// What is known of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// Since when it has used little, and the most of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lull: Option<(Instant, Share)>,
    /// As many members as it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enough: Option<u32>,
}

/// The part of its cores that a job used from one time to another, with so many members.
#[derive(Clone, Copy, Debug)]
struct Look {
    from: Instant,
    to: Instant,
    members: u32,
    used: Share,
}

impl Idle {
    /// For serde: what is left out means this.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// As many members as it uses, if that is less than it had.
    pub fn enough(&self) -> Option<u32> {
        self.enough
    }

    fn note(&mut self, look: Look) {
        if look.used >= LITTLE {
            self.lull = None;
            self.enough = self.enough.filter(|_| look.used < NEARLY_ALL);
            return;
        }
        let (since, most) = self.lull.unwrap_or((look.from, Share::NONE));
        let most = most.max(look.used);
        self.lull = Some((since, most));
        if look.to.since(since) >= LASTS {
            let members = u64::from(look.members) * u64::from(most.0);
            let enough = members.div_ceil(u64::from(ENOUGH.0)).max(1);
            self.enough = u32::try_from(enough).ok();
        }
    }
}

impl Job {
    /// Takes note of what it used of its cores since the report before; whether it has too many, or no longer has.
    pub(crate) fn note_use(&mut self, before: Option<Sample>) -> bool {
        let Some(look) = self.look_at_use(before) else { return false };
        let enough = self.idle.enough;
        self.idle.note(look);
        enough != self.idle.enough
    }

    /// Another size begins anew: what was used at the last says nothing of how long it uses little of this one.
    pub(crate) fn begins_to_use(&mut self) {
        self.idle.lull = None;
    }

    /// Who has GPUs has its cores for their sake, and who shares cores has none of its own.
    fn look_at_use(&self, before: Option<Sample>) -> Option<Look> {
        let (before, latest) = (before?, self.progress.latest?);
        let Life::Running(held) = &self.life else { return None };
        let (total, members) = (held.total(), self.elastic_members(held));
        let since = self.runs_since.filter(|since| *since <= before.at)?;
        let counts = total.gpus.is_zero() && self.spec.work.cpu.is_none() && members > 0;
        let (from, to) = (before.at.max(since), latest.at);
        let used = latest.used? - before.used?;
        let had = Cpu::cores(1).0.max(1);
        let had = u128::from(to.since(from).0) * u128::from(total.cpu.0) / u128::from(had);
        let had = u64::try_from(had).ok().filter(|had| *had > 0 && counts)?;
        Some(Look { from, to, members, used: Share::ratio(used.0, had) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(from: u64, members: u32, used: u32) -> Look {
        let at = |minutes: u64| Instant::from_secs(60 * minutes);
        Look { from: at(from), to: at(from + 1), members, used: Share(used) }
    }

    #[test]
    fn who_uses_half_for_two_minutes_has_enough_with_little_more() {
        let mut idle = Idle::default();
        idle.note(minute(0, 8, 400_000));
        assert_eq!(idle.enough(), None);
        idle.note(minute(1, 8, 450_000));
        assert_eq!(idle.enough(), Some(4));
        // Nine tenths of those are used, and nothing changes.
        idle.note(minute(2, 4, 900_000));
        assert_eq!(idle.enough(), Some(4));
    }

    #[test]
    fn who_uses_nearly_all_may_have_more_again() {
        let mut idle = Idle { lull: None, enough: Some(4) };
        idle.note(minute(0, 4, 960_000));
        assert_eq!(idle.enough(), None);
    }

    #[test]
    fn a_short_lull_is_none() {
        let mut idle = Idle::default();
        for (from, used) in [(0, 100_000), (1, 850_000), (2, 100_000)] {
            idle.note(minute(from, 8, used));
        }
        assert_eq!(idle.enough(), None);
    }
}
