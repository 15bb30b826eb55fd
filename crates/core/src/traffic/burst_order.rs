//! The order in which bursts are served on links that serve strict classes.
//!
//! **Problem.** Linux serves HTB leaves of a lower `prio` first, and takes a new `prio` of a leaf only while that is empty. So
//! the class of a job can change between its bursts and not within one. Still, the job with least left to send should be served
//! first, or the job that came first.
//!
//! **Solution.** A job gets its class when its burst begins, relative to the bursts under way: one class before those that it
//! precedes, one behind those that precede it. Nothing has to change later: as bursts proceed, the order among them by bytes left
//! stays as it is while only the first is served. A *burst* here is everything that a job sends in one iteration.
//!
//! Where no slot says that bursts decide, jobs have the classes of their slots, whatever is under way.
//!
//! The agent and the network that decisions are made with share this rule.

use super::{Follows, Slot};

/// The class of a burst under way beside the classes of the others on its links. The burst that is served first moves up to the
/// middle, so that classes behind it do not run out while links are busy without end. Its leaf is served at once, and so empty
/// soon, which is when the kernel takes the new class.
pub fn class_of_first(own: &Burst, others: impl IntoIterator<Item = Burst>) -> u8 {
    let is_first = others.into_iter().all(|other| own.class < other.class);
    if is_first && own.slot.follows.orders_bursts() { own.class.min(MIDDLE) } else { own.class }
}

/// A job that is sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    pub class: u8,
    /// The class that it may still have: the kernel takes another only when the leaf is empty.
    pub at_most: u8,
    pub slot: Slot,
    /// The unsent part of the burst, in nanoseconds at the full rate of its links.
    pub left: f64,
}

/// A job whose burst is about to begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newcomer {
    pub slot: Slot,
    /// The length of its burst, in nanoseconds at the full rate of its links.
    pub length: f64,
}

/// The last of the eight classes of HTB and of the network. Agents apply this rule, too, so the classes are a protocol and no
/// tuning entries.
const LAST: u8 = 7;

/// The class of a burst that begins while no other is under way. There is room for bursts that precede it.
pub const MIDDLE: u8 = 3;

impl Newcomer {
    /// The class of its burst beside those that are under way on its links.
    pub fn class(&self, under_way: impl IntoIterator<Item = Burst, IntoIter: Clone>) -> u8 {
        let under_way = under_way.into_iter();
        if !self.slot.follows.orders_bursts()
            && !under_way.clone().any(|burst| burst.slot.follows.orders_bursts())
        {
            return self.slot.class;
        }
        let (mut behind, mut before): (Option<u8>, Option<u8>) = (None, None);
        for burst in under_way {
            match self.precedence(&burst) {
                Precedence::Equal => return burst.class,
                Precedence::Later => behind = behind.max(Some(burst.at_most.saturating_add(1).min(LAST))),
                Precedence::Earlier => {
                    let above = burst.class.saturating_sub(1);
                    before = Some(before.map_or(above, |class| class.min(above)));
                }
            }
        }
        behind.or(before).unwrap_or(MIDDLE)
    }

    /// The class of one of several jobs that get the same class and begin at once: the jobs follow one another, unless their
    /// slots share a class.
    pub fn class_among_equals(&self, class: u8, before: usize) -> u8 {
        match self.slot.follows {
            Follows::FirstCome | Follows::LeastLeft => class.saturating_add(before as u8).min(LAST),
            _ => class,
        }
    }

    fn precedence(&self, burst: &Burst) -> Precedence {
        match self.slot.class.cmp(&burst.slot.class) {
            std::cmp::Ordering::Less => return Precedence::Earlier,
            std::cmp::Ordering::Greater => return Precedence::Later,
            std::cmp::Ordering::Equal => {}
        }
        match self.slot.follows {
            Follows::FirstCome => Precedence::Later,
            Follows::LeastLeft if self.length < burst.left => Precedence::Earlier,
            Follows::LeastLeft => Precedence::Later,
            _ => Precedence::Equal,
        }
    }
}

/// Where a newcomer stands relative to a burst under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precedence {
    Earlier,
    Equal,
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(class: u8, slot: Slot, left: f64) -> Burst {
        Burst { class, at_most: class, slot, left }
    }

    fn class(slot: Slot, length: f64, under_way: &[Burst]) -> u8 {
        Newcomer { slot, length }.class(under_way.iter().copied())
    }

    #[test]
    fn a_short_burst_goes_before_a_long_one_and_a_long_one_behind() {
        let slot = Slot::least_left(0);
        let under_way = [burst(MIDDLE, slot, 50.0)];
        assert_eq!(class(slot, 49.0, &under_way), MIDDLE - 1);
        assert_eq!(class(slot, 50.0, &under_way), MIDDLE + 1);
        assert_eq!(class(slot, 50.0, &[]), MIDDLE);
    }

    #[test]
    fn a_class_that_the_kernel_may_not_have_taken_yet_counts_as_it_was() {
        let slot = Slot::first_come(0);
        let promoted = Burst { at_most: 5, ..burst(MIDDLE, slot, 50.0) };
        assert_eq!(class(slot, 50.0, &[promoted]), 6);
    }

    #[test]
    fn jobs_that_begin_at_once_are_served_one_after_the_other_unless_they_share() {
        let among = |slot| Newcomer { slot, length: 1.0 }.class_among_equals(MIDDLE, 1);
        assert_eq!(among(Slot::first_come(0)), MIDDLE + 1);
        assert_eq!(among(Slot::FAIR), MIDDLE);
    }

    #[test]
    fn a_burst_between_two_others_is_behind_the_one_that_precedes_it() {
        let slot = Slot::least_left(0);
        let under_way = [burst(2, slot, 10.0), burst(4, slot, 90.0)];
        assert_eq!(class(slot, 50.0, &under_way), 3);
    }

    #[test]
    fn bursts_are_served_first_come_first_served_whatever_their_length() {
        let slot = Slot::first_come(0);
        assert_eq!(class(slot, 1.0, &[burst(3, slot, 90.0), burst(4, slot, 90.0)]), 5);
        assert_eq!(class(slot, 1.0, &[burst(7, slot, 90.0)]), 7, "there are no more classes");
    }

    #[test]
    fn a_lower_class_is_served_before_a_higher_one_whatever_came_first() {
        let (first, other) = (Slot::in_class(0), Slot::first_come(1));
        assert_eq!(class(first, 90.0, &[burst(3, other, 1.0)]), 2);
        assert_eq!(class(other, 1.0, &[burst(3, first, 90.0)]), 4);
    }

    #[test]
    fn classes_do_not_run_out_while_a_link_is_never_idle() {
        let slot = Slot::first_come(0);
        let mut first = MIDDLE;
        for _ in 0..50 {
            let second = class(slot, 1.0, &[burst(first, slot, 1.0)]);
            assert!(second > first);
            first = class_of_first(&burst(second, slot, 1.0), []);
        }
        let other = burst(5, slot, 1.0);
        assert_eq!(class_of_first(&burst(6, slot, 1.0), [other]), 6, "another burst is served first");
    }

    #[test]
    fn a_job_whose_slot_leaves_bursts_alone_has_the_class_of_its_slot() {
        let under_way = [burst(0, Slot::in_class(0), 90.0), burst(5, Slot::in_class(5), 90.0)];
        assert_eq!(class(Slot::in_class(4), 1.0, &under_way), 4);
        assert_eq!(class_of_first(&burst(6, Slot::in_class(6), 1.0), []), 6);
    }

    #[test]
    fn bursts_share_fairly_in_a_fair_slot() {
        assert_eq!(class(Slot::FAIR, 1.0, &[burst(0, Slot::FAIR, 90.0)]), 0);
    }
}
