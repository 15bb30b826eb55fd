//! Where the recorder looks: counters of members, of sending ends of links and of their HTB leaves, and freezers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use metronome_agent::counters::Counters;
use metronome_agent::freezer::Freezer;
use metronome_agent::members::{Direction, Gate, Port, Roster};

use super::document::Held;
use super::link_end::{LinkEnd, Standings};
use super::samples::{Counted, Samples};

/// A counter of an interface, with what it said last.
#[derive(Debug)]
struct Interface {
    netns: PathBuf,
    name: String,
    direction: Direction,
    of: Counted,
    /// Once it was read.
    read: Option<(usize, u64)>,
}

/// All that is looked at, as the roster says.
#[derive(Debug, Default)]
pub(super) struct Sources {
    interfaces: Vec<Interface>,
    counters: Vec<Counters>,
    /// Of links that jobs cross.
    ends: BTreeMap<(PathBuf, String), LinkEnd>,
    freezers: Vec<Watched>,
    /// Addresses of members, with the jobs that they belong to.
    jobs: BTreeMap<Ipv4Addr, String>,
    /// When leaves were last compared with filters.
    compared: u64,
    pub(super) standings: Standings,
    pub(super) held: Vec<Held>,
    /// Reads that failed: of namespaces that are just being removed, as a rule.
    pub(super) failed: u64,
}

/// A member that the agent may freeze.
#[derive(Debug)]
struct Watched {
    job: String,
    member: String,
    freezer: Freezer,
    since: Option<u64>,
}

/// A leaf may be given to another job between two looks: filters are read again so often.
const COMPARED_EVERY_NS: u64 = 250_000_000;

/// A look at the leaves of a link takes time, and those of a link that one job crosses say nothing that its own counter does
/// not say: they are looked at where links are few, so that jobs that come later find nothing missing.
const MOST_UNSHARED_ENDS: usize = 16;

impl Sources {
    /// Looks from now on at what the roster names.
    pub(super) fn follow(&mut self, roster: &Roster, now: u64) {
        self.follow_members(roster, now);
        self.follow_interfaces(roster);
        self.follow_ends(roster);
    }

    /// Leaves of a link that several jobs crossed are looked at as long as one of them crosses it.
    fn follow_ends(&mut self, roster: &Roster) {
        let key = |port: &Port| (port.netns.clone(), port.device.clone());
        let listed: BTreeSet<_> = roster.ports.iter().map(key).collect();
        self.ends.retain(|key, _| listed.contains(key));
        for port in &roster.ports {
            let (key, Some(link)) = (key(port), port.link) else { continue };
            let is_worth_it = port.crossed_by.len() > 1 || self.ends.len() < MOST_UNSHARED_ENDS;
            if !self.ends.contains_key(&key) && is_worth_it {
                match LinkEnd::open(port, link) {
                    Ok(end) => drop(self.ends.insert(key, end)),
                    Err(_) => self.failed += 1,
                }
            }
        }
        self.ends.values_mut().for_each(LinkEnd::compare);
    }

    fn follow_members(&mut self, roster: &Roster, now: u64) {
        self.jobs = roster
            .members
            .iter()
            .filter_map(|member| Some((member.address()?, member.job.clone())))
            .collect();
        let mut before = std::mem::take(&mut self.freezers);
        for member in roster.members.iter().filter(|member| member.gate == Gate::Freeze && member.leads) {
            let known = before.iter().position(|one| one.job == member.job && one.member == member.member);
            let known = known.map(|at| before.swap_remove(at));
            let new = || {
                let freezer = Freezer::of(member.freezer.as_deref()?)?;
                Some(Watched { job: member.job.clone(), member: member.member.clone(), freezer, since: None })
            };
            self.freezers.extend(known.or_else(new));
        }
        before.iter_mut().for_each(|gone| gone.thawed(now, &mut self.held));
    }

    fn follow_interfaces(&mut self, roster: &Roster) {
        let of_members = roster.members.iter().filter_map(|member| {
            let (job, name) = (member.job.clone(), member.member.clone());
            let of = Counted::Member { job, member: name };
            member.counters.as_ref().map(|at| (&at.netns, &at.interface, at.direction, of))
        });
        let of_ports = roster.ports.iter().filter_map(|port| {
            Some((&port.netns, &port.device, Direction::Sent, Counted::Link { link: port.link? }))
        });
        let mut before = std::mem::take(&mut self.interfaces);
        for (netns, name, direction, of) in of_members.chain(of_ports) {
            let known =
                before.iter().position(|one| one.netns == *netns && one.name == *name && one.of == of);
            let new = || Interface { netns: netns.clone(), name: name.clone(), direction, of, read: None };
            self.interfaces.push(match known {
                Some(at) => before.swap_remove(at),
                None => new(),
            });
        }
        self.open_counters();
    }

    fn open_counters(&mut self) {
        let mut by_namespace: BTreeMap<&Path, Vec<usize>> = BTreeMap::new();
        for (at, interface) in self.interfaces.iter().enumerate() {
            by_namespace.entry(&interface.netns).or_default().push(at);
        }
        let mut open = std::mem::take(&mut self.counters);
        for (netns, interfaces) in by_namespace {
            let known =
                open.iter().position(|counters| counters.netns == netns).map(|at| open.swap_remove(at));
            let Some(mut counters) = known.or_else(|| Counters::open(netns).ok()) else {
                self.failed += 1;
                continue;
            };
            counters.watch(interfaces.into_iter().map(|at| {
                let interface = &self.interfaces[at];
                (interface.name.clone(), interface.direction, at)
            }));
            self.counters.push(counters);
        }
    }

    /// One look at everything.
    pub(super) fn look(&mut self, samples: &mut Samples, now: u64) {
        let Self { counters, interfaces, failed, .. } = self;
        for namespace in counters {
            let read = namespace.read(|at, counted| {
                let Interface { of, read, .. } = &mut interfaces[at];
                let bytes = counted.watched;
                let (slot, before) = read.unwrap_or_else(|| (samples.slot(of.clone(), bytes), bytes));
                samples.add(slot, since(before, bytes));
                *read = Some((slot, bytes));
            });
            *failed += u64::from(read.is_err());
        }
        if now.saturating_sub(self.compared) > COMPARED_EVERY_NS {
            self.compared = now;
            self.ends.values_mut().for_each(LinkEnd::compare);
        }
        for end in self.ends.values_mut() {
            let read = end.look(&self.jobs, now, samples, &mut self.standings);
            self.failed += u64::from(read.is_err());
        }
        for watched in &mut self.freezers {
            match watched.freezer.is_frozen() {
                Ok(true) => {
                    watched.since.get_or_insert(now);
                }
                Ok(false) | Err(_) => watched.thawed(now, &mut self.held),
            }
        }
    }

    /// The run is over: members that are still held are held no longer.
    pub(super) fn finish(&mut self, now: u64) {
        self.freezers.iter_mut().for_each(|watched| watched.thawed(now, &mut self.held));
    }
}

impl Watched {
    fn thawed(&mut self, now: u64, held: &mut Vec<Held>) {
        if let Some(from_ns) = self.since.take() {
            let (job, member) = (self.job.clone(), self.member.clone());
            held.push(Held { job, member: Some(member), from_ns, to_ns: now });
        }
    }
}

/// A counter that says less than before has begun anew.
fn since(before: u64, bytes: u64) -> u64 {
    if bytes >= before { bytes - before } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_begins_anew_counts_from_nothing() {
        assert_eq!([since(10, 15), since(10, 3), since(0, 0)], [5, 3, 0]);
    }
}
