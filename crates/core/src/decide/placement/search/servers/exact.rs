//! The optimal place for servers and workers on a few nodes.
//!
//! Nodes are gone through one by one. For each number of members of each role that is placed so far, the fewest nodes
//! that hold them are kept, and among those the least that crosses the busiest link. That is enough: with any other
//! choice for the nodes so far, the gang would in the end need more nodes, or have no less on its busiest link.

use std::collections::BTreeMap;

use super::Exchange;
use crate::decide::draft::{Draft, Reach};
use crate::decide::placement::search::{Scope, Search};
use crate::model::cluster::Level;
use crate::model::id::{CounterId, NodeId};
use crate::model::job::Shape;
use crate::model::plan::Part;
use crate::model::units::Resources;

/// Members of each role on one node.
struct Load {
    members: Vec<u32>,
    /// All of them as one member.
    together: Shape,
    /// What then crosses the node's link.
    crossing: u64,
    crowding: u64,
    /// How far it moves on in the table.
    stride: usize,
}

/// Nodes, what crosses the busiest of their links, and all of them, and how little servers are apart. Of the last two
/// the least is not looked for, but taken where it is found.
type Value = (u32, u64, u64, u64);

impl<'a> Search<'a> {
    /// None where the scope lies in several domains, where too many nodes are too much to look at, or where members
    /// share devices. What others claim is not looked at: there, least disturbance goes first.
    pub(super) fn exact(&self, draft: &Draft<'a>, scope: Scope, all: Exchange) -> Option<Vec<Part>> {
        let shares = self.job.spec.roles.iter().any(|role| role.shape.each.gpus.is_share());
        if shares || self.reach != Reach::Unclaimed {
            return None;
        }
        let mut nodes = self.fits_by_node(draft, scope);
        if !lies_in_one_domain(draft, &nodes) {
            return None;
        }
        let sizes: Vec<u32> = self.job.spec.roles.iter().map(|role| self.size(role)).collect();
        let most = |role: usize| nodes.iter().map(|(_, fits)| fits[role]).max().unwrap_or(0);
        let limits: Vec<u32> = (0..sizes.len()).map(most).collect();
        let (states, ways) = (count(&sizes)?, count(&limits)?);
        let tuning = &draft.snapshot.tuning.decide;
        let affordable = (tuning.max_exact_steps / states.checked_mul(ways)?).min(tuning.max_exact_nodes);
        keep_roomiest(&mut nodes, affordable);
        let loads = self.loads(&sizes, &limits, all);
        let table = fill(draft, &nodes, &loads, &sizes, states)?;
        Some(read(&table, &nodes, &loads, states))
    }

    /// The nodes of a scope with how many of each role they take, but no more than there are.
    fn fits_by_node(&self, draft: &Draft<'a>, scope: Scope) -> Vec<(NodeId, Vec<u32>)> {
        let roles = &self.job.spec.roles;
        let mut nodes: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for (index, role) in roles.iter().enumerate() {
            for (node, fit) in self.candidates(draft, scope, &role.shape) {
                nodes.entry(node).or_insert_with(|| vec![0; roles.len()])[index] = fit.min(self.size(role));
            }
        }
        nodes.into_iter().collect()
    }

    /// Every way to load a node with at least one member.
    fn loads(&self, sizes: &[u32], limits: &[u32], all: Exchange) -> Vec<Load> {
        numbers(limits)
            .filter(|members| members.iter().any(|count| *count > 0))
            .map(|members| {
                let roles = self.job.spec.roles.iter().zip(&members);
                let here = roles.fold(Exchange::default(), |sum, (role, count)| sum.with(role.kind, *count));
                Load {
                    together: self.together(&members),
                    crossing: all.crossing(here),
                    crowding: here.crowding(),
                    stride: place_of(&members, sizes),
                    members,
                }
            })
            .collect()
    }

    /// These members of all roles as one member. Their eligibility is in the number of each that fits.
    fn together(&self, members: &[u32]) -> Shape {
        let mut each = Resources::NONE;
        let mut counters: BTreeMap<CounterId, u64> = BTreeMap::new();
        for (role, count) in self.job.spec.roles.iter().zip(members) {
            let count = u64::from(*count);
            each = each + role.shape.each.times(count);
            for (counter, taken) in &*role.shape.counters {
                let sum = counters.entry(*counter).or_default();
                *sum = sum.saturating_add(taken.saturating_mul(count));
            }
        }
        Shape { counters: counters.into_iter().collect(), ..Shape::of(each) }
    }
}

fn lies_in_one_domain(draft: &Draft<'_>, nodes: &[(NodeId, Vec<u32>)]) -> bool {
    let cluster = draft.snapshot.cluster;
    let mut domains = nodes.iter().map(|(node, _)| cluster.node(*node).domains.last());
    let first = domains.next();
    cluster.depth() == Level(0) || domains.all(|domain| Some(domain) == first)
}

/// The tightest first, so that of equal places the tightest is found.
fn keep_roomiest(nodes: &mut Vec<(NodeId, Vec<u32>)>, most: usize) {
    let room = |fits: &[u32]| fits.iter().map(|fit| u64::from(*fit)).sum::<u64>();
    nodes.sort_by_key(|(node, fits)| (std::cmp::Reverse(room(fits)), *node));
    nodes.truncate(most);
    nodes.sort_by_key(|(node, fits)| (room(fits), *node));
}

/// How many numbers of members there are up to these, for each role.
fn count(limits: &[u32]) -> Option<usize> {
    limits.iter().try_fold(1usize, |product, limit| product.checked_mul(*limit as usize + 1))
}

/// All of them, in the order of `place_of`.
fn numbers(limits: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    let all = count(limits).unwrap_or(0);
    (0..all).map(|place| digits(place, limits))
}

fn digits(mut place: usize, limits: &[u32]) -> Vec<u32> {
    let digit = |limit: &u32| {
        let base = *limit as usize + 1;
        let digit = place % base;
        place /= base;
        digit as u32
    };
    limits.iter().map(digit).collect()
}

fn place_of(members: &[u32], limits: &[u32]) -> usize {
    let pairs = members.iter().zip(limits).rev();
    pairs.fold(0, |place, (count, limit)| place * (*limit as usize + 1) + *count as usize)
}

/// For each node, and each number of members placed up to it: the load by which that is reached, if the node has any.
type Table = Vec<Vec<Option<u32>>>;

fn fill(
    draft: &Draft<'_>,
    nodes: &[(NodeId, Vec<u32>)],
    loads: &[Load],
    sizes: &[u32],
    states: usize,
) -> Option<Table> {
    let placed: Vec<Vec<u32>> = numbers(sizes).collect();
    let mut best: Vec<Option<Value>> = vec![None; states];
    best[0] = Some((0, 0, 0, 0));
    let mut table = Table::new();
    for (node, fits) in nodes {
        let takes = |load: &Load| {
            let each = load.members.iter().zip(fits).all(|(count, fit)| count <= fit);
            each && draft.fit_on(*node, &load.together, Reach::Unclaimed) > 0
        };
        let possible: Vec<(usize, &Load)> =
            loads.iter().enumerate().filter(|(_, load)| takes(load)).collect();
        let (before, mut chosen) = (best.clone(), vec![None; states]);
        for (state, value) in before.iter().enumerate() {
            let Some((count, busiest, crossing, crowding)) = *value else { continue };
            for (index, load) in &possible {
                if !leaves_room(&placed[state], &load.members, sizes) {
                    continue;
                }
                let reached = state + load.stride;
                let value = (
                    count + 1,
                    busiest.max(load.crossing),
                    crossing + load.crossing,
                    crowding + load.crowding,
                );
                if best[reached].is_none_or(|least| value < least) {
                    (best[reached], chosen[reached]) = (Some(value), Some(*index as u32));
                }
            }
        }
        table.push(chosen);
    }
    best[states - 1].map(|_| table)
}

fn leaves_room(placed: &[u32], more: &[u32], sizes: &[u32]) -> bool {
    placed.iter().zip(more).zip(sizes).all(|((placed, more), size)| placed + more <= *size)
}

/// Goes back from the whole gang, node by node.
fn read(table: &Table, nodes: &[(NodeId, Vec<u32>)], loads: &[Load], states: usize) -> Vec<Part> {
    let (mut state, mut parts) = (states - 1, Vec::new());
    for (chosen, (node, _)) in table.iter().zip(nodes).rev() {
        let Some(index) = chosen[state] else { continue };
        let load = &loads[index as usize];
        state -= load.stride;
        let members = load.members.iter().enumerate().filter(|(_, count)| **count > 0);
        parts.extend(members.map(|(role, count)| Part::of(role as u8, *node, *count)));
    }
    parts
}
