//! What goes wrong, how often, and for whom.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::class::{Class, Verb};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An answer with a code, such as 409, 500 or 503, and nothing was done.
    Answer(u16),
    /// The server has no time: 429, and when to come back.
    Busy { retry_after: Duration },
    /// The connection ends, and nothing was done.
    Drop,
    /// It was done, but the connection ends before the answer. The nastiest.
    LoseAnswer,
    /// It was done, but the answer is 500.
    HideAnswer,
    /// Everything goes well, but late. Comes on top of other faults.
    Delay(RangeInclusive<Duration>),
    /// A watch ends after some events.
    CutWatch { after_events: RangeInclusive<u32> },
}

/// How likely something is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance(f64);

impl Chance {
    pub const ALWAYS: Self = Self(1.0);

    /// # Panics
    /// If it is more than 100.
    pub fn percent(percent: u8) -> Self {
        assert!(percent <= 100, "{percent} % is more than always");
        Self(f64::from(percent) / 100.0)
    }
}

/// A fault for a kind of requests; without more words, for all of them, always.
#[derive(Debug, Clone)]
pub struct Rule {
    fault: Fault,
    verbs: Option<Vec<Verb>>,
    resource: Option<String>,
    chance: Chance,
    times_left: Option<u32>,
}

impl Rule {
    pub fn new(fault: Fault) -> Self {
        Self { fault, verbs: None, resource: None, chance: Chance::ALWAYS, times_left: None }
    }

    /// Only for some verbs.
    #[must_use]
    pub fn on(self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self { verbs: Some(verbs.into_iter().collect()), ..self }
    }

    /// Only for a resource, such as `pods` or `pods/binding`.
    #[must_use]
    pub fn of(self, resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..self }
    }

    #[must_use]
    pub fn with(self, chance: Chance) -> Self {
        Self { chance, ..self }
    }

    /// It strikes this often and never again.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times_left: Some(times), ..self }
    }

    fn concerns(&self, class: &Class) -> bool {
        let verb = self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&class.verb));
        let resource = self.resource.as_ref().is_none_or(|resource| *resource == class.resource);
        let fits = class.verb == Verb::Watch || !matches!(self.fault, Fault::CutWatch { .. });
        verb && resource && fits && self.times_left != Some(0)
    }

    fn strikes(&mut self, class: &Class, random: &mut Pcg64) -> bool {
        let strikes = self.concerns(class) && random.random::<f64>() < self.chance.0;
        if let (true, Some(left)) = (strikes, &mut self.times_left) {
            *left -= 1;
        }
        strikes
    }
}

/// What will happen to one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) delay: Duration,
    pub(super) fault: Option<Fault>,
    /// The number of events after which a watch is cut.
    pub(super) cut_after: Option<u32>,
}

/// Draws the fate of a request: delays add up; of other faults the first one counts.
pub(super) fn fate(rules: &mut [Rule], class: &Class, random: &mut Pcg64) -> Fate {
    let mut fate = Fate::default();
    for rule in rules {
        if fate.fault.is_some() && !matches!(rule.fault, Fault::Delay(_)) || !rule.strikes(class, random) {
            continue;
        }
        match &rule.fault {
            Fault::Delay(range) => fate.delay += random.random_range(range.clone()),
            Fault::CutWatch { after_events } => {
                fate.cut_after = Some(random.random_range(after_events.clone()));
            }
            fault => fate.fault = Some(fault.clone()),
        }
    }
    fate
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn fates(rules: &mut [Rule], class: &Class, count: usize) -> Vec<Fate> {
        let mut random = Pcg64::seed_from_u64(7);
        (0..count).map(|_| fate(rules, class, &mut random)).collect()
    }

    #[test]
    fn a_rule_strikes_its_own_class_only_and_as_often_as_it_says() {
        let rule = Rule::new(Fault::Answer(409)).on([Verb::Create]).of("pods/binding").times(2);
        let struck = |class: &Class| {
            fates(&mut [rule.clone()], class, 5).iter().filter(|fate| fate.fault.is_some()).count()
        };
        assert_eq!(struck(&Class::new(Verb::Create, "pods/binding")), 2);
        assert_eq!(struck(&Class::new(Verb::Create, "pods")), 0);
        assert_eq!(struck(&Class::new(Verb::Delete, "pods/binding")), 0);
    }

    #[test]
    fn chance_is_what_it_says_and_the_same_for_a_seed() {
        let mut rules = [Rule::new(Fault::Drop).with(Chance::percent(30))];
        let class = Class::new(Verb::Get, "pods");
        let first = fates(&mut rules, &class, 1000);
        let struck = first.iter().filter(|fate| fate.fault.is_some()).count();
        assert!((250..350).contains(&struck), "{struck}");
        assert_eq!(first, fates(&mut rules, &class, 1000));
    }

    #[test]
    fn delays_come_on_top() {
        let second = Duration::from_secs(1);
        let delay = Rule::new(Fault::Delay(second..=second));
        let mut rules = [delay.clone(), Rule::new(Fault::Answer(500)), Rule::new(Fault::Drop), delay];
        let fate = fates(&mut rules, &Class::new(Verb::Get, "pods"), 1).remove(0);
        assert_eq!(fate, Fate { delay: 2 * second, fault: Some(Fault::Answer(500)), cut_after: None });
    }

    #[test]
    fn only_watches_are_cut() {
        let mut rules = [Rule::new(Fault::CutWatch { after_events: 3..=3 })];
        assert_eq!(fates(&mut rules, &Class::new(Verb::List, "pods"), 1)[0].cut_after, None);
        assert_eq!(fates(&mut rules, &Class::new(Verb::Watch, "pods"), 1)[0].cut_after, Some(3));
    }
}
