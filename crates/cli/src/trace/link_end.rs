//! The sending end of a link, with the leaves of its HTB: whose they are, what they have sent, and how they stand.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use metronome_agent::class_counters::{ClassCounters, Leaf};
use metronome_agent::members::Port;

use super::document::Standing;
use super::samples::{Counted, Samples};

/// The leaves of a sending end.
#[derive(Debug)]
pub(super) struct LinkEnd {
    classes: ClassCounters,
    /// By which the kernel knows the device.
    index: u32,
    leaves: Leaves,
}

/// Changes of standings, by link and job.
pub(super) type Standings = BTreeMap<(u32, String), Vec<Standing>>;

#[derive(Debug)]
struct Leaves {
    link: u32,
    known: BTreeMap<u16, LeafState>,
    /// Filters are to be read again: leaves came or went.
    is_changed: bool,
}

#[derive(Debug, Default)]
struct LeafState {
    job: Option<String>,
    /// What it had sent at the last look; none before the first.
    bytes: Option<u64>,
}

/// Leaves from here on are those of members without a directive; smaller numbers are the agent's.
const FIRST_MEMBER_LEAF: u16 = 0x1000;

/// Changes of one job's standing on one link that are kept. Weights may change every few milliseconds.
const MOST_STANDINGS: usize = 20_000;

impl LinkEnd {
    pub(super) fn open(port: &Port, link: u32) -> io::Result<Self> {
        let classes = ClassCounters::open(&port.netns)?;
        let index = classes.index(&port.device)?;
        Ok(Self { classes, index, leaves: Leaves { link, known: BTreeMap::new(), is_changed: true } })
    }

    /// Leaves are compared with filters at the next look.
    pub(super) fn compare(&mut self) {
        self.leaves.is_changed = true;
    }

    pub(super) fn look(
        &mut self,
        jobs: &BTreeMap<Ipv4Addr, String>,
        now: u64,
        samples: &mut Samples,
        standings: &mut Standings,
    ) -> io::Result<()> {
        let mut leaves: Vec<Leaf> = Vec::with_capacity(16);
        self.classes.read(self.index, |leaf| leaves.push(leaf))?;
        self.leaves.meet(&leaves);
        if std::mem::take(&mut self.leaves.is_changed) {
            let mut owners: BTreeMap<u16, &String> = BTreeMap::new();
            self.classes.sources(self.index, |number, address| {
                owners.extend(jobs.get(&address).map(|job| (number, job)));
            })?;
            self.leaves.assign(&owners);
        }
        self.leaves.count(&leaves, samples);
        self.leaves.note_standings(&leaves, now, standings);
        Ok(())
    }
}

impl Leaves {
    /// A leaf that is new, and one that began anew, may belong to another job than its number did before.
    fn meet(&mut self, leaves: &[Leaf]) {
        let count = self.known.len();
        self.known.retain(|number, state| {
            leaves.iter().any(|leaf| leaf.number == *number && Some(leaf.bytes) >= state.bytes)
        });
        self.is_changed |= self.known.len() < count;
        for leaf in leaves {
            self.known.entry(leaf.number).or_insert_with(|| {
                self.is_changed = true;
                LeafState::default()
            });
        }
    }

    fn assign(&mut self, owners: &BTreeMap<u16, &String>) {
        // The leaf of a job that has just left still has packets of that job.
        for (number, state) in &mut self.known {
            if let Some(job) = owners.get(number) {
                state.job = Some((*job).clone());
            }
        }
    }

    fn count(&mut self, leaves: &[Leaf], samples: &mut Samples) {
        for leaf in leaves {
            let Some(state) = self.known.get_mut(&leaf.number) else { continue };
            let before = state.bytes.replace(leaf.bytes).unwrap_or(leaf.bytes);
            if leaf.bytes > before || state.job.is_some() {
                let of = Counted::Part { link: self.link, job: state.job.clone() };
                let slot = samples.slot(of, before);
                samples.add(slot, leaf.bytes - before);
            }
        }
    }

    /// A job with a leaf of its own has its priority and quantum; any other shares fairly.
    fn note_standings(&self, leaves: &[Leaf], now: u64, standings: &mut Standings) {
        let mut current: BTreeMap<&String, Option<(u8, u32)>> = BTreeMap::new();
        for leaf in leaves {
            let Some(job) = self.known.get(&leaf.number).and_then(|state| state.job.as_ref()) else {
                continue;
            };
            let own = (leaf.number < FIRST_MEMBER_LEAF).then_some((leaf.prio, leaf.quantum));
            let standing = current.entry(job).or_default();
            *standing = standing.or(own);
        }
        for (job, own) in current {
            let known = standings.entry((self.link, job.clone())).or_default();
            let standing = Standing { at_ns: now, prio: own.map(|own| own.0), quantum: own.map(|own| own.1) };
            let is_same = |last: &Standing| (last.prio, last.quantum) == (standing.prio, standing.quantum);
            if !known.last().is_some_and(is_same) && known.len() < MOST_STANDINGS {
                known.push(standing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(number: u16, bytes: u64, prio: u8) -> Leaf {
        Leaf { number, bytes, prio, quantum: 9014 }
    }

    #[test]
    fn a_leaf_that_is_made_anew_for_another_job_counts_for_that_job() {
        let mut all = Leaves { link: 4, known: BTreeMap::new(), is_changed: false };
        let (mut samples, mut standings) = (Samples::default(), Standings::new());
        let (a, b) = ("a".to_owned(), "b".to_owned());
        let mut look = |now: u64, leaves: &[Leaf], owner: &String| {
            all.meet(leaves);
            if std::mem::take(&mut all.is_changed) {
                all.assign(&leaves.iter().map(|leaf| (leaf.number, owner)).collect());
            }
            all.count(leaves, &mut samples);
            all.note_standings(leaves, now, &mut standings);
            samples.close(now);
        };
        look(1, &[leaf(0x1003, 0, 0)], &a);
        look(2, &[leaf(0x1003, 100, 0), leaf(0x10, 0, 1)], &a);
        look(3, &[leaf(0x1003, 100, 0), leaf(0x10, 700, 1)], &a);
        look(4, &[leaf(0x10, 20, 0)], &b);
        look(5, &[leaf(0x10, 50, 0)], &b);
        let (_, series) = samples.into_series();
        let sent = |job: &str| &series[&Counted::Part { link: 4, job: Some(job.to_owned()) }];
        assert_eq!(sent("a").sent, [0, 100, 700, 0, 0]);
        assert_eq!((sent("b").first, sent("b").before, &sent("b").sent[..]), (3, 20, &[0, 30][..]));
        let prios = |job: &str| {
            standings[&(4, job.to_owned())].iter().map(|one| (one.at_ns, one.prio)).collect::<Vec<_>>()
        };
        assert_eq!(prios("a"), [(1, None), (2, Some(1))]);
        assert_eq!(prios("b"), [(4, Some(0))]);
    }
}
