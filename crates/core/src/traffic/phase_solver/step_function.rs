//! Piecewise constant functions on the circle, in exact integers: the demand of one placed set on a link, and of all.

/// The capacity of a link. Demand is counted in billionths of its link, so that areas of fast and slow links can be added: a
/// unit, and no tuning entry.
pub(super) const LINK: i64 = 1_000_000_000;

/// A level from each point until the next; the first point is 0, and neighbours differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Steps {
    circle: i64,
    points: Vec<(i64, i64)>,
}

impl Steps {
    pub(super) fn flat(circle: i64, level: i64) -> Self {
        Self { circle, points: vec![(0, level)] }
    }

    /// The sum of bursts `(begin, length, level)`, each of which may wrap around.
    pub(super) fn of_bursts(circle: i64, bursts: impl Iterator<Item = (i64, i64, i64)>) -> Self {
        let mut base = 0;
        let mut changes = Vec::new();
        for (begin, length, level) in bursts.filter(|(_, length, _)| *length > 0) {
            let end = begin + length;
            base += if end > circle { level } else { 0 };
            changes.extend([(begin, level), (if end > circle { end - circle } else { end }, -level)]);
        }
        changes.sort_unstable();
        Self::of_changes(circle, base, &changes)
    }

    fn of_changes(circle: i64, base: i64, changes: &[(i64, i64)]) -> Self {
        let mut steps = Self::flat(circle, base);
        let mut level = base;
        for &(at, change) in changes.iter().filter(|(at, _)| *at < circle) {
            level += change;
            steps.set_from(at, level);
        }
        steps
    }

    /// Sets the level from `at` on, which is no earlier than the last point.
    fn set_from(&mut self, at: i64, level: i64) {
        if self.points.last().is_some_and(|last| last.0 == at) {
            self.points.pop();
        }
        if self.points.last().is_none_or(|last| last.1 != level) {
            self.points.push((at, level));
        }
    }

    pub(super) fn points(&self) -> &[(i64, i64)] {
        &self.points
    }

    pub(super) fn circle(&self) -> i64 {
        self.circle
    }

    pub(super) fn is_flat(&self) -> bool {
        self.points.len() == 1
    }

    pub(super) fn peak(&self) -> i64 {
        self.points.iter().map(|point| point.1).max().unwrap_or(0)
    }

    /// Stretches of constant level: `(from, to, level)`.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (i64, i64, i64)> {
        let ends = self.points.iter().skip(1).map(|point| point.0).chain([self.circle]);
        self.points.iter().zip(ends).map(|(&(from, level), to)| (from, to, level))
    }

    /// The changes of the level with their times; a change at 0 is one from the last level to the first.
    pub(super) fn edges(&self) -> impl Iterator<Item = (i64, i64)> {
        let mut before = self.points[self.points.len() - 1].1;
        self.points.iter().filter_map(move |&(at, level)| {
            let change = level - std::mem::replace(&mut before, level);
            (change != 0).then_some((at, change))
        })
    }

    /// The integral of `height(level)`.
    pub(super) fn area(&self, height: impl Fn(i64) -> i64) -> i128 {
        self.stretches().map(|(from, to, level)| i128::from(height(level)) * i128::from(to - from)).sum()
    }

    /// The demand beyond the link.
    pub(super) fn excess(&self) -> i128 {
        self.area(beyond)
    }

    /// The same function, later by `turn`, which is less than the circle.
    pub(super) fn turned(&self, turn: i64) -> Self {
        let split = self.points.partition_point(|point| point.0 < self.circle - turn);
        let last = self.points[split - 1].1;
        let mut turned = Self::flat(self.circle, last);
        for &(at, level) in &self.points[split..] {
            turned.set_from(at + turn - self.circle, level);
        }
        for &(at, level) in &self.points[..split] {
            turned.set_from(at + turn, level);
        }
        turned
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.merged(other, |a, b| a + b)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.merged(other, |a, b| a - b)
    }

    fn merged(&self, other: &Self, join: impl Fn(i64, i64) -> i64) -> Self {
        let (mine, theirs) = (&self.points, &other.points);
        let mut points: Vec<(i64, i64)> = Vec::with_capacity(mine.len() + theirs.len());
        let (mut i, mut j) = (0, 0);
        let (mut a, mut b) = (0, 0);
        while i < mine.len() || j < theirs.len() {
            let next =
                |points: &[(i64, i64)], index: usize| points.get(index).map_or(i64::MAX, |point| point.0);
            let at = next(mine, i).min(next(theirs, j));
            if next(mine, i) == at {
                a = mine[i].1;
                i += 1;
            }
            if next(theirs, j) == at {
                b = theirs[j].1;
                j += 1;
            }
            if points.last().is_none_or(|last| last.1 != join(a, b)) {
                points.push((at, join(a, b)));
            }
        }
        Self { circle: self.circle, points }
    }
}

pub(super) fn beyond(level: i64) -> i64 {
    (level - LINK).max(0)
}

/// The integral, from 0 on, of the excess that another `level` adds to a demand.
#[derive(Clone, Debug)]
pub(super) struct ExcessIntegral {
    circle: i64,
    /// Start, integral up to the start, and rate from there on.
    stretches: Vec<(i64, i128, i64)>,
    total: i128,
}

impl ExcessIntegral {
    pub(super) fn of(demand: &Steps, level: i64) -> Self {
        let mut total = 0;
        let mut stretches = Vec::with_capacity(demand.points.len());
        for (from, to, below) in demand.stretches() {
            let rate = beyond(below + level) - beyond(below);
            stretches.push((from, total, rate));
            total += i128::from(rate) * i128::from(to - from);
        }
        Self { circle: demand.circle, stretches, total }
    }

    /// The integral up to `at`, which may lie in the second circle.
    pub(super) fn up_to(&self, at: i64) -> i128 {
        let (around, at) = if at >= self.circle { (self.total, at - self.circle) } else { (0, at) };
        let index = self.stretches.partition_point(|stretch| stretch.0 <= at) - 1;
        let (from, paid, rate) = self.stretches[index];
        around + paid + i128::from(rate) * i128::from(at - from)
    }
}
