//! Branch and bound over contention of edges.

use std::collections::BTreeSet;

use super::bound::Pairs;
use super::component::{Knot, Offers, Placed, Reach};
use super::descent::{Purse, largest_first, start};
use super::room::Rooms;

/// Where every mover of a knot goes, what that costs, and what cannot be gone below.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) placed: Placed,
    pub(super) bound: i128,
}

pub(super) fn best_turns(knot: &Knot, purse: &mut Purse) -> Found {
    let root = anchored(knot);
    let area = Rooms::by_area(knot).bound(knot, &root);
    let placed = start(knot, area, purse);
    if placed.cost == area || purse.left == 0 {
        return Found { placed, bound: area };
    }
    let known =
        Known { order: largest_first(knot), rooms: Rooms::of(knot, purse), pairs: Pairs::of(knot, purse) };
    searched(knot, known, &root, placed, purse)
}

fn searched(knot: &Knot, mut known: Known, root: &Placed, best: Placed, purse: &mut Purse) -> Found {
    let nothing = vec![0; knot.movers.len()];
    let floor = match View::of(knot, &mut known, root, &nothing, best.cost) {
        Ok(view) => view.bound,
        Err(Hopeless { .. }) => return Found { bound: best.cost, placed: best },
    };
    let mut search = Search { knot, known, purse, best, open: None, tried: BTreeSet::new(), whole: true };
    search.explore(root, &nothing);
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

/// What is worked out once and used at many nodes.
struct Known {
    order: Vec<usize>,
    pairs: Pairs,
    rooms: Rooms,
}

/// What can be done next, and what it leads to at least.
struct View {
    offers: Vec<(usize, Offers)>,
    /// What each waiting mover adds at least.
    least: Vec<i128>,
    sum: i128,
    bound: i128,
    nodes: u64,
}

/// Nothing better than what is known can come of it.
struct Hopeless {
    nodes: u64,
}

impl View {
    /// With more movers placed, none adds less than it did `before`: so a node may be known to be hopeless when the
    /// first movers have been looked at.
    fn of(
        knot: &Knot,
        known: &mut Known,
        placed: &Placed,
        before: &[i128],
        best: i128,
    ) -> Result<Self, Hopeless> {
        let room = known.rooms.bound(knot, placed);
        let sum = placed.cost + placed.waiting().map(|mover| before[mover]).sum::<i128>();
        let mut view =
            Self { offers: Vec::new(), least: before.to_vec(), sum, bound: room.max(sum), nodes: 1 };
        for &mover in known.order.iter().filter(|mover| placed.turns[**mover].is_none()) {
            view.hopeful(best)?;
            view.add(mover, knot.offers(mover, &placed.demand));
        }
        let least: Vec<(usize, i128)> = placed.waiting().map(|mover| (mover, view.least[mover])).collect();
        view.bound = view.bound.max(view.sum + known.pairs.beyond_single(&least));
        view.hopeful(best)?;
        Ok(view)
    }

    fn hopeful(&self, best: i128) -> Result<(), Hopeless> {
        if self.bound < best { Ok(()) } else { Err(Hopeless { nodes: self.nodes }) }
    }

    fn add(&mut self, mover: usize, offers: Offers) {
        let least = offers.least().max(self.least[mover]);
        self.sum += least - self.least[mover];
        self.least[mover] = least;
        self.bound = self.bound.max(self.sum);
        self.nodes += offers.nodes - 1;
        self.offers.push((mover, offers));
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
    known: Known,
    purse: &'a mut Purse,
    best: Placed,
    /// The least that was left unexplored when nodes ran out.
    open: Option<i128>,
    /// What was explored to the end before, at this node or one above it: which kind of mover, at which turn.
    tried: BTreeSet<(usize, i64)>,
    /// Whether all contention of edges were considered.
    whole: bool,
}

impl Search<'_> {
    /// After this, `best` costs no more than any completion of `placed`, or `open` says what may have been missed.
    fn explore(&mut self, placed: &Placed, before: &[i128]) {
        match View::of(self.knot, &mut self.known, placed, before, self.best.cost) {
            Err(Hopeless { nodes }) => self.purse.pay(nodes),
            Ok(view) => self.go_on(placed, &view),
        }
    }

    fn go_on(&mut self, placed: &Placed, view: &View) {
        self.purse.pay(view.nodes);
        match view.offers.as_slice() {
            [] => self.best = placed.clone(),
            [(mover, offers)] => self.finish(placed, *mover, offers),
            _ => self.branch(placed, view),
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
        let mut tried = Vec::new();
        for branch in self.branches(view) {
            if branch.bound >= self.best.cost {
                break;
            }
            if self.purse.left == 0 {
                self.leave_open(branch.bound);
                break;
            }
            let mut next = placed.clone();
            next.put(self.knot, branch.mover, (branch.turn, branch.excess));
            self.explore(&next, &view.least);
            let done = (self.knot.movers[branch.mover].like, branch.turn);
            tried.push(done);
            self.tried.insert(done);
        }
        for done in tried {
            self.tried.remove(&done);
        }
    }

    /// The most promising first. Movers that meet nobody yet come after all who do; then any of them will do, anywhere.
    fn branches(&mut self, view: &View) -> Vec<Branch> {
        let mut kinds: Vec<usize> = Vec::new();
        let mut branches = Vec::new();
        for (mover, offers) in view.offers.iter().filter(|(_, offers)| offers.reach != Reach::Free) {
            self.whole &= offers.reach == Reach::All;
            let like = self.knot.movers[*mover].like;
            if !kinds.contains(&like) {
                kinds.push(like);
                branches.extend(self.branches_of(view, *mover, offers));
            }
        }
        if kinds.is_empty() {
            branches.extend(
                view.offers.iter().take(1).flat_map(|(mover, offers)| self.branches_of(view, *mover, offers)),
            );
        }
        branches.sort_unstable();
        branches
    }

    fn branches_of(&self, view: &View, mover: usize, offers: &Offers) -> impl Iterator<Item = Branch> {
        let like = self.knot.movers[mover].like;
        let others = view.sum - view.least[mover];
        let branch = move |&(turn, excess): &(i64, i128)| Branch {
            bound: (others + excess).max(view.bound),
            excess,
            mover,
            turn,
        };
        let untried = offers.each.iter().filter(move |(turn, _)| !self.tried.contains(&(like, *turn)));
        untried.map(branch).filter(|branch| branch.bound < self.best.cost)
    }

    fn leave_open(&mut self, bound: i128) {
        self.open = Some(self.open.map_or(bound, |open| open.min(bound)));
    }
}
