//! Branch and bound over meetings of edges.

use std::collections::BTreeSet;

use super::bound::Pairs;
use super::component::{Component, Offers, Placed, Reach};
use super::descent::{NodeBudget, largest_first, start};
use super::room::Rooms;

/// The turns of all movers of a component, and a lower bound of their excess.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) placed: Placed,
    pub(super) bound: i128,
}

pub(super) fn best_turns(component: &Component, budget: &mut NodeBudget) -> Found {
    let root = anchored(component);
    let area = Rooms::by_area(component).bound(component, &root);
    let placed = start(component, area, budget);
    if placed.cost == area || budget.left == 0 {
        return Found { placed, bound: area };
    }
    let known = Known {
        order: largest_first(component),
        rooms: Rooms::of(component, budget),
        pairs: Pairs::of(component, budget),
    };
    searched(component, known, &root, placed, budget)
}

fn searched(
    component: &Component,
    mut known: Known,
    root: &Placed,
    best: Placed,
    budget: &mut NodeBudget,
) -> Found {
    let nothing = vec![0; component.movers.len()];
    let floor = match View::of(component, &mut known, root, &nothing, best.cost) {
        Ok(view) => view.bound,
        Err(Hopeless { .. }) => return Found { bound: best.cost, placed: best },
    };
    let mut search =
        Search { component, known, budget, best, open: None, tried: BTreeSet::new(), whole: true };
    search.explore(root, &nothing);
    let reached = search.open.map_or(search.best.cost, |open| open.min(search.best.cost));
    Found { bound: if search.whole { reached.max(floor) } else { floor }, placed: search.best }
}

/// The root of the search. Only differences of turns matter, so the largest mover stays at 0: it leaves the others least room.
fn anchored(component: &Component) -> Placed {
    let mut root = Placed::empty(component);
    if let Some(&anchor) = largest_first(component).first() {
        let excess = component.against(&component.movers[anchor], &root.demand).excess_at(0);
        root.put(component, anchor, (0, excess));
    }
    root
}

/// Data that is computed once and used at many nodes.
struct Known {
    order: Vec<usize>,
    pairs: Pairs,
    rooms: Rooms,
}

/// The turns that waiting movers may take next, with lower bounds.
struct View {
    offers: Vec<(usize, Offers)>,
    /// The least excess of each waiting mover.
    least: Vec<i128>,
    sum: i128,
    bound: i128,
    nodes: u64,
}

/// The node cannot lead to a better solution than the best so far.
struct Hopeless {
    nodes: u64,
}

impl View {
    /// With more movers placed, none adds less than it did `before`, so a node may be hopeless after the first movers.
    fn of(
        component: &Component,
        known: &mut Known,
        placed: &Placed,
        before: &[i128],
        best: i128,
    ) -> Result<Self, Hopeless> {
        let room = known.rooms.bound(component, placed);
        let sum = placed.cost + placed.waiting().map(|mover| before[mover]).sum::<i128>();
        let mut view =
            Self { offers: Vec::new(), least: before.to_vec(), sum, bound: room.max(sum), nodes: 1 };
        for &mover in known.order.iter().filter(|mover| placed.turns[**mover].is_none()) {
            view.hopeful(best)?;
            view.add(mover, component.offers(mover, &placed.demand));
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

/// One mover at one turn, with a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    bound: i128,
    excess: i128,
    mover: usize,
    turn: i64,
}

struct Search<'a> {
    component: &'a Component,
    known: Known,
    budget: &'a mut NodeBudget,
    best: Placed,
    /// The least bound of the nodes that were left when the budget was spent.
    open: Option<i128>,
    /// The explored branches at this node and those above it: kind of mover and turn.
    tried: BTreeSet<(usize, i64)>,
    /// Whether all meetings of edges were considered.
    whole: bool,
}

impl Search<'_> {
    /// After this, `best` costs no more than any completion of `placed`, or `open` bounds the completions left out.
    fn explore(&mut self, placed: &Placed, before: &[i128]) {
        match View::of(self.component, &mut self.known, placed, before, self.best.cost) {
            Err(Hopeless { nodes }) => self.budget.pay(nodes),
            Ok(view) => self.go_on(placed, &view),
        }
    }

    fn go_on(&mut self, placed: &Placed, view: &View) {
        self.budget.pay(view.nodes);
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
            self.best.put(self.component, mover, best);
        }
    }

    /// Some optimum has one of these branches next; an explored branch is not repeated below its later siblings.
    fn branch(&mut self, placed: &Placed, view: &View) {
        let mut tried = Vec::new();
        for branch in self.branches(view) {
            if branch.bound >= self.best.cost {
                break;
            }
            if self.budget.left == 0 {
                self.leave_open(branch.bound);
                break;
            }
            let mut next = placed.clone();
            next.put(self.component, branch.mover, (branch.turn, branch.excess));
            self.explore(&next, &view.least);
            let done = (self.component.movers[branch.mover].like, branch.turn);
            tried.push(done);
            self.tried.insert(done);
        }
        for done in tried {
            self.tried.remove(&done);
        }
    }

    /// The most promising branches first. Movers that meet no placed mover come last; any of them may then go anywhere.
    fn branches(&mut self, view: &View) -> Vec<Branch> {
        let mut kinds: Vec<usize> = Vec::new();
        let mut branches = Vec::new();
        for (mover, offers) in view.offers.iter().filter(|(_, offers)| offers.reach != Reach::Free) {
            self.whole &= offers.reach == Reach::All;
            let like = self.component.movers[*mover].like;
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
        let like = self.component.movers[mover].like;
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
