//! Branch and bound over meetings of edges.

use super::bound::{Pairs, bound, by_room};
use super::descent::{Broke, Purse, largest_first, start};
use super::knot::{Knot, Offers, Placed, Reach};

/// Where every mover of a knot goes, what that costs, and what cannot be gone below.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) placed: Placed,
    pub(super) bound: i128,
}

pub(super) fn best_turns(knot: &Knot, purse: &mut Purse) -> Found {
    let root = anchored(knot);
    let best = start(knot, by_room(knot, &root), purse);
    let pairs = Pairs::of(knot, purse);
    let floor = View::of(knot, &pairs, &root).bound;
    let mut search = Search { knot, pairs: &pairs, purse, best, open: None, tried: Vec::new(), whole: true };
    search.explore(&root);
    let reached = search.open.map_or(search.best.cost, |open| open.min(search.best.cost));
    Found { bound: if search.whole { reached.max(floor) } else { floor }, placed: search.best }
}

/// Only differences of turns matter, so one mover stays where it is: the largest, as it leaves the others least room.
fn anchored(knot: &Knot) -> Placed {
    let mut root = Placed::nobody(knot);
    if let Some(&anchor) = largest_first(knot).first() {
        let excess = knot.against(&knot.movers[anchor], &root.demand).excess_at(0);
        root.put(knot, anchor, (0, excess));
    }
    root
}

/// What can be done next, and what it leads to at least.
struct View {
    offers: Vec<(usize, Offers)>,
    least: i128,
    bound: i128,
    nodes: u64,
}

impl View {
    fn of(knot: &Knot, pairs: &Pairs, placed: &Placed) -> Self {
        let offers: Vec<(usize, Offers)> =
            placed.waiting().map(|mover| (mover, knot.offers(mover, &placed.demand))).collect();
        let least: Vec<(usize, i128)> = offers.iter().map(|(mover, offers)| (*mover, offers.least())).collect();
        let bound = bound(knot, pairs, placed, &least);
        let nodes = offers.iter().map(|(_, offers)| offers.nodes - 1).sum::<u64>() + 1;
        Self { offers, least: least.iter().map(|(_, excess)| excess).sum(), bound, nodes }
    }
}

/// One mover at one turn, and what that leads to at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    bound: i128,
    excess: i128,
    mover: usize,
    turn: i64,
}

struct Search<'a> {
    knot: &'a Knot,
    pairs: &'a Pairs,
    purse: &'a mut Purse,
    best: Placed,
    /// The least that was left unexplored when nodes ran out.
    open: Option<i128>,
    /// What was explored to the end before, at this node or one above it: which kind of mover, at which turn.
    tried: Vec<(usize, i64)>,
    /// Whether all meetings of edges were considered.
    whole: bool,
}

impl Search<'_> {
    /// After this, `best` costs no more than any completion of `placed`, or `open` says what may have been missed.
    fn explore(&mut self, placed: &Placed) {
        let view = View::of(self.knot, self.pairs, placed);
        if view.bound >= self.best.cost {
            return;
        }
        if self.purse.pay(view.nodes) == Err(Broke) {
            return self.leave_open(view.bound);
        }
        match view.offers.as_slice() {
            [] => self.best = placed.clone(),
            [(mover, offers)] => self.finish(placed, *mover, offers),
            _ => self.branch(placed, &view),
        }
    }

    fn finish(&mut self, placed: &Placed, mover: usize, offers: &Offers) {
        self.whole &= offers.reach != Reach::Some;
        let best = offers.best();
        if placed.cost + best.1 < self.best.cost {
            self.best = placed.clone();
            self.best.put(self.knot, mover, best);
        }
    }

    /// Some optimum has one of these next; what was tried need not be tried again below its later siblings.
    fn branch(&mut self, placed: &Placed, view: &View) {
        let mark = self.tried.len();
        for branch in self.branches(placed, view) {
            if branch.bound >= self.best.cost {
                break;
            }
            if self.purse.left == 0 {
                self.leave_open(branch.bound);
                break;
            }
            let mut next = placed.clone();
            next.put(self.knot, branch.mover, (branch.turn, branch.excess));
            self.explore(&next);
            self.tried.push((self.knot.movers[branch.mover].like, branch.turn));
        }
        self.tried.truncate(mark);
    }

    /// The most promising first. Movers that meet nobody yet come after all who do; then any of them will do, anywhere.
    fn branches(&mut self, placed: &Placed, view: &View) -> Vec<Branch> {
        let mut kinds: Vec<usize> = Vec::new();
        let mut branches = Vec::new();
        for (mover, offers) in view.offers.iter().filter(|(_, offers)| offers.reach != Reach::Free) {
            self.whole &= offers.reach == Reach::All;
            let like = self.knot.movers[*mover].like;
            if !kinds.contains(&like) {
                kinds.push(like);
                branches.extend(self.branches_of(placed, view, *mover, offers));
            }
        }
        if kinds.is_empty() {
            branches.extend(view.offers.iter().take(1).flat_map(|(mover, offers)| {
                self.branches_of(placed, view, *mover, offers)
            }));
        }
        branches.sort_unstable();
        branches
    }

    fn branches_of(
        &self,
        placed: &Placed,
        view: &View,
        mover: usize,
        offers: &Offers,
    ) -> impl Iterator<Item = Branch> {
        let like = self.knot.movers[mover].like;
        let others = placed.cost + view.least - offers.least();
        let branch = move |&(turn, excess): &(i64, i128)| {
            Branch { bound: (others + excess).max(view.bound), excess, mover, turn }
        };
        let untried = offers.each.iter().filter(move |(turn, _)| !self.tried.contains(&(like, *turn)));
        untried.map(branch).filter(|branch| branch.bound < self.best.cost)
    }

    fn leave_open(&mut self, bound: i128) {
        self.open = Some(self.open.map_or(bound, |open| open.min(bound)));
    }
}
