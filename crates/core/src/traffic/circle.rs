//! CASSINI's circle, on which loops that share links are laid out: its length is the least common multiple of their periods,
//! and positions are tried in steps of five degrees.
//!
//! Periods are rounded to whole milliseconds, as exact ones hardly ever have a common multiple. Even so 237, 311 and 418 ms
//! have one of hours: a circle is cut after twelve of the longest periods, and each loop goes around it as often as it
//! begins there. Positions on a cut circle hold for loops whose periods agree, and average over the phases of the others. A
//! step is five degrees of the longest period, so no circle has more than 864 steps.

use std::collections::BTreeMap;

use crate::model::id::LinkId;
use crate::model::units::Duration;
use crate::tuning::TrafficTuning;

/// Excess is compared in billionths of a step of a link, so that rounding makes no difference: a unit, and no tuning entry.
const FINE: f64 = 1e9;

/// The iteration of a loop without contention.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulse {
    period: Duration,
    /// The bursts of an iteration, from and to, in order.
    sends: Vec<(Duration, Duration)>,
    /// The share of each link that a burst takes.
    links: Vec<(LinkId, f64)>,
}

impl Pulse {
    pub fn new(
        tuning: &TrafficTuning,
        period: Duration,
        sends: Vec<(Duration, Duration)>,
        links: Vec<(LinkId, f64)>,
    ) -> Self {
        let grain = tuning.circle_period_grain;
        // A loop that waits for a link which is down sends nothing and has no period: one grain stands for it.
        let grains = period.0.checked_add(grain.0 / 2).map_or(0, |rounded| rounded / grain.0);
        Self { period: grain.times(grains.max(1)), sends, links }
    }

    /// The period in whole grains.
    pub fn period(&self) -> Duration {
        self.period
    }

    pub fn links(&self) -> &[(LinkId, f64)] {
        &self.links
    }

    /// The same loop, on these links only.
    pub fn over(&self, links: &[LinkId]) -> Self {
        let there = self.links.iter().filter(|(link, _)| links.contains(link));
        Self { links: there.copied().collect(), ..self.clone() }
    }

    /// The same loop with one step of its period kept free after each burst.
    pub fn cushioned(&self, tuning: &TrafficTuning) -> Self {
        let slot = self.period.0 / tuning.circle_steps;
        let mut sends: Vec<(Duration, Duration)> = Vec::new();
        for (from, to) in &self.sends {
            let to = Duration((to.0 + slot).min(self.period.0));
            match sends.last_mut().filter(|last| last.1 >= *from) {
                Some(last) => last.1 = last.1.max(to),
                None => sends.push((*from, to)),
            }
        }
        Self { sends, ..self.clone() }
    }
}

/// A circle with the demand on links at each step.
#[derive(Clone, Debug)]
pub struct Circle {
    length: u64,
    steps: usize,
    /// As a share of each link.
    demand: BTreeMap<LinkId, Vec<f64>>,
}

impl Circle {
    /// An empty circle for these loops.
    pub fn of<'p>(tuning: &TrafficTuning, pulses: impl Iterator<Item = &'p Pulse> + Clone) -> Self {
        let longest =
            pulses.clone().map(|pulse| pulse.period.0).max().unwrap_or(tuning.circle_period_grain.0);
        let most = longest.saturating_mul(tuning.max_circle_periods);
        let length = pulses.fold(longest, |length, pulse| common_multiple(length, pulse.period.0).min(most));
        Self {
            length,
            steps: (tuning.circle_steps * length.div_ceil(longest)) as usize,
            demand: BTreeMap::new(),
        }
    }

    /// Adds a loop whose iterations begin `offset` after the circle does.
    pub fn put(&mut self, pulse: &Pulse, offset: Duration) {
        self.add(pulse, offset, 1.0);
    }

    fn take_away(&mut self, pulse: &Pulse, offset: Duration) {
        self.add(pulse, offset, -1.0);
    }

    fn add(&mut self, pulse: &Pulse, offset: Duration, sign: f64) {
        let busy = self.busy(pulse, offset);
        for (link, part) in &pulse.links {
            let demand = self.demand.entry(*link).or_insert_with(|| vec![0.0; self.steps]);
            for (demand, busy) in demand.iter_mut().zip(&busy) {
                *demand += sign * part * busy;
            }
        }
    }

    /// The first position with the least excess.
    pub fn best(&self, pulse: &Pulse) -> Duration {
        let width = self.length / self.steps as u64;
        let positions = pulse.period.0.div_ceil(width.max(1)).min(self.steps as u64);
        let offsets = (0..positions).map(|step| Duration(step * width));
        offsets.min_by_key(|offset| self.excess(pulse, *offset)).unwrap_or(Duration::ZERO)
    }

    /// The demand beyond capacity on the links of a loop, with the loop at a position.
    fn excess(&self, pulse: &Pulse, offset: Duration) -> u64 {
        let busy = self.busy(pulse, offset);
        let beyond = |(link, part): &(LinkId, f64)| -> f64 {
            let demand = self.demand.get(link).map_or(&[][..], Vec::as_slice);
            let before = demand.iter().copied().chain(std::iter::repeat(0.0));
            busy.iter().zip(before).map(|(busy, before)| (before + part * busy - 1.0).max(0.0)).sum()
        };
        (pulse.links.iter().map(beyond).sum::<f64>() * FINE) as u64
    }

    /// The compatibility of the loops on a link: 1 less the mean excess as a share of the link.
    pub fn score(&self, link: LinkId) -> f64 {
        let Some(demand) = self.demand.get(&link) else { return 1.0 };
        let beyond: f64 = demand.iter().map(|demand| (demand - 1.0 - 1.0 / FINE).max(0.0)).sum();
        1.0 - beyond / self.steps as f64
    }

    /// The share of each step in which a loop sends.
    fn busy(&self, pulse: &Pulse, offset: Duration) -> Vec<f64> {
        let width = self.length as f64 / self.steps as f64;
        let mut busy = vec![0.0; self.steps];
        let mut begins = offset.0 % pulse.period.0;
        while begins < self.length {
            for (from, to) in &pulse.sends {
                add(&mut busy, (begins + from.0) as f64 / width, (begins + to.0) as f64 / width);
            }
            begins += pulse.period.0;
        }
        busy
    }
}

/// Adds a span, given in steps, which may wrap around the circle.
fn add(busy: &mut [f64], from: f64, to: f64) {
    let mut at = from;
    while at < to {
        let end = (at.floor() + 1.0).min(to);
        busy[at as usize % busy.len()] += end - at;
        at = end;
    }
}

/// Positions of loops with little excess, found by greedy placement one after the other and rounds of improvement; the first
/// loop stays at the beginning. Returned with their circle.
pub fn rotations(tuning: &TrafficTuning, pulses: &[Pulse]) -> (Vec<Duration>, Circle) {
    let mut circle = Circle::of(tuning, pulses.iter());
    let mut offsets: Vec<Duration> = Vec::with_capacity(pulses.len());
    for pulse in pulses {
        let offset = if offsets.is_empty() { Duration::ZERO } else { circle.best(pulse) };
        circle.put(pulse, offset);
        offsets.push(offset);
    }
    let rounds = if pulses.len() > tuning.max_jobs_for_circle_rounds { 0 } else { tuning.circle_rounds };
    for _ in 0..rounds {
        if !improve(pulses, &mut offsets, &mut circle) {
            break;
        }
    }
    (offsets, circle)
}

/// Moves each loop but the first if that is better; returns whether one moved.
fn improve(pulses: &[Pulse], offsets: &mut [Duration], circle: &mut Circle) -> bool {
    let mut moved = false;
    for (pulse, offset) in pulses.iter().zip(offsets).skip(1) {
        circle.take_away(pulse, *offset);
        let best = circle.best(pulse);
        if circle.excess(pulse, best) < circle.excess(pulse, *offset) {
            *offset = best;
            moved = true;
        }
        circle.put(pulse, *offset);
    }
    moved
}

fn common_multiple(one: u64, other: u64) -> u64 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor.max(1)).saturating_mul(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(0);

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Computes first, then sends at the full rate of the link.
    fn pulse(period: u64, sends: u64) -> Pulse {
        Pulse::new(
            &TrafficTuning::DEFAULT,
            ms(period),
            vec![(ms(period - sends), ms(period))],
            vec![(LINK, 1.0)],
        )
    }

    #[test]
    fn two_loops_that_send_half_of_the_time_do_not_collide() {
        let (offsets, circle) = rotations(&TrafficTuning::DEFAULT, &[pulse(720, 360), pulse(720, 360)]);
        assert_eq!(offsets, [ms(0), ms(360)]);
        assert_eq!(circle.score(LINK), 1.0);
    }

    #[test]
    fn loops_that_cannot_be_kept_apart_score_less() {
        let (_, circle) = rotations(&TrafficTuning::DEFAULT, &[pulse(720, 432), pulse(720, 432)]);
        assert!((circle.score(LINK) - 0.8).abs() < 1e-6, "{}", circle.score(LINK));
    }

    #[test]
    fn a_loop_of_half_the_period_goes_around_twice() {
        let (offsets, circle) = rotations(&TrafficTuning::DEFAULT, &[pulse(720, 240), pulse(360, 120)]);
        assert_eq!(circle.score(LINK), 1.0, "{offsets:?}");
    }

    #[test]
    fn a_circle_that_would_be_hours_long_is_cut() {
        let circle =
            Circle::of(&TrafficTuning::DEFAULT, [pulse(237, 20), pulse(311, 20), pulse(418, 20)].iter());
        assert_eq!((circle.length, circle.steps), (12 * ms(418).0, 12 * 72));
        let longest = Circle::of(&TrafficTuning::DEFAULT, [pulse(40, 10), pulse(60, 10)].iter());
        assert_eq!((longest.length, longest.steps), (ms(120).0, 2 * 72));
    }

    #[test]
    fn hundreds_of_loops_on_a_link_are_laid_out() {
        let many: Vec<Pulse> = (0..300).map(|index| pulse(100 + index % 50, 3)).collect();
        let (offsets, _) = rotations(&TrafficTuning::DEFAULT, &many);
        assert_eq!(offsets.len(), 300);
    }

    #[test]
    fn a_cushion_lies_behind_each_burst_and_inside_the_period() {
        let sends = vec![(ms(0), ms(10)), (ms(15), ms(20)), (ms(700), ms(715))];
        let cushioned = Pulse::new(&TrafficTuning::DEFAULT, ms(720), sends, Vec::new())
            .cushioned(&TrafficTuning::DEFAULT);
        assert_eq!(cushioned.sends, [(ms(0), ms(30)), (ms(700), ms(720))]);
    }
}
