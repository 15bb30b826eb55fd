//! What every kubelet knows and has still to do: pods in, orders out. No IO, and time is an argument.

mod node;
mod stage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::time::{Duration, Instant};

use super::amounts::Amounts;
use super::pod::{BoundPod, Ending, Phase, PodKey};
use super::status::Addresses;
use super::{Counts, Pace, Rejection};
use node::NodeBook;
use stage::Stage;

pub(super) use node::{Diligence, node_address};

/// Something to tell the API server.
#[derive(Debug, Clone)]
pub(super) enum Order {
    Run(BoundPod, Addresses),
    /// What its containers ask for by now is what they have.
    Resize(BoundPod),
    End(BoundPod, Ending),
    Reject(BoundPod, Rejection),
    Delete(BoundPod),
    RenewLease(String),
}

#[derive(Debug)]
struct PodBook {
    pod: BoundPod,
    stage: Stage,
    /// What it asked for when it was told to run.
    run_with: Option<Amounts>,
}

/// What is due at a time.
#[derive(Debug)]
enum Due {
    /// What a pod's stage demands, if it is still in it.
    Pod {
        key: PodKey,
        uid: String,
        stage: Stage,
    },
    Lease(String),
}

#[derive(Debug)]
pub(super) struct Books {
    pace: Pace,
    nodes: BTreeMap<String, NodeBook>,
    pods: HashMap<PodKey, PodBook>,
    /// In order of time, then of entry.
    due: BTreeMap<(Instant, u64), Due>,
    entries: u64,
    /// What a listing has shown so far, while one is under way.
    listed: Option<HashSet<PodKey>>,
    addresses: u32,
    orders: Vec<Order>,
    rejections: Vec<Rejection>,
    counts: Counts,
}

impl Books {
    pub(super) fn new(pace: Pace, nodes: impl IntoIterator<Item = (String, Amounts)>, now: Instant) -> Self {
        let book = |(number, (name, allocatable))| (name, NodeBook::new(number, allocatable));
        let mut books = Self {
            pace,
            nodes: nodes.into_iter().enumerate().map(book).collect(),
            pods: HashMap::new(),
            due: BTreeMap::new(),
            entries: 0,
            listed: None,
            addresses: 0,
            orders: Vec::new(),
            rejections: Vec::new(),
            counts: Counts::default(),
        };
        books.plan_leases(now);
        books
    }

    /// The orders given since they were last taken.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        mem::take(&mut self.orders)
    }

    pub(super) fn take_rejections(&mut self) -> Vec<Rejection> {
        mem::take(&mut self.rejections)
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn begin_listing(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// What was not listed was deleted while nobody watched.
    pub(super) fn end_listing(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        let gone: Vec<PodKey> = self.pods.keys().filter(|key| !listed.contains(key)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key));
    }

    /// Takes note of a pod as the API server shows it. Pods on nodes that are not ours are somebody else's.
    pub(super) fn observe(&mut self, mut pod: BoundPod, now: Instant) {
        if !self.nodes.contains_key(&pod.node) {
            return;
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(pod.key.clone());
        }
        if pod.is_finite {
            pod.ends = pod.ends.or(self.pace.ends_after.map(|time| (time, Ending::Succeeded)));
        }
        match self.pods.get(&pod.key) {
            Some(known) if known.pod.uid == pod.uid => {}
            _ => {
                self.forget(&pod.key);
                self.meet(pod.clone(), now);
            }
        }
        self.follow(pod, now);
    }

    pub(super) fn forget(&mut self, key: &PodKey) {
        if let Some(book) = self.pods.remove(key) {
            self.account(&book.pod, book.stage, Stage::Over);
            self.counts.removed += 1;
        }
    }

    /// Admits a pod that is seen for the first time, as a kubelet does: by what fits beside the pods it has. One that
    /// runs already was admitted before.
    fn meet(&mut self, pod: BoundPod, now: Instant) {
        let node = self.nodes.get_mut(&pod.node).expect("it is one of ours");
        let refusal = (pod.phase == Phase::Pending).then(|| node.refusal(&pod)).flatten();
        let book = PodBook { pod: pod.clone(), stage: Stage::Over, run_with: None };
        self.pods.insert(pod.key.clone(), book);
        match refusal {
            Some(rejection) => self.reject(pod, rejection),
            None if pod.phase != Phase::Over => self.enter(&pod.key, Stage::Starting, now),
            None => {}
        }
    }

    fn reject(&mut self, pod: BoundPod, rejection: Rejection) {
        self.counts.rejected += 1;
        self.rejections.push(rejection.clone());
        self.orders.push(Order::Reject(pod, rejection));
    }

    /// Moves a known pod to the stage that the API server shows.
    fn follow(&mut self, pod: BoundPod, now: Instant) {
        let key = pod.key.clone();
        let pod = self.grant(pod);
        let book = self.pods.get_mut(&key).expect("it has been met");
        let next = book.stage.next(&pod);
        let moves = next != book.stage;
        // It was given something else between the order to run it and the word that it does.
        let outdated = book.run_with.as_ref().is_some_and(|run_with| *run_with != pod.requests);
        if moves && next == Stage::Running && outdated {
            self.orders.push(Order::Resize(pod.clone()));
        }
        book.pod = pod;
        if moves {
            self.enter(&key, next, now);
        }
    }

    /// Gives a pod what it asks for by now if that fits; one that asks for too much goes on with what it has. A real
    /// kubelet would defer that; for a scheduler under test it is a mistake, and counted as a rejection.
    fn grant(&mut self, mut pod: BoundPod) -> BoundPod {
        let book = &self.pods[&pod.key];
        if book.pod.requests == pod.requests || !book.stage.takes_room() {
            return pod;
        }
        let (had, runs) = (book.pod.requests.clone(), book.stage == Stage::Running);
        let node = self.nodes.get_mut(&pod.node).expect("it is one of ours");
        node.used.subtract(&had);
        match node.refusal(&pod) {
            None => {
                node.used.add(&pod.requests);
                // Who has yet to start will say so then.
                self.orders.extend(runs.then(|| Order::Resize(pod.clone())));
            }
            Some(rejection) => {
                node.used.add(&had);
                self.counts.rejected += 1;
                self.rejections.push(rejection);
                pod.requests = had;
            }
        }
        pod
    }

    fn enter(&mut self, key: &PodKey, stage: Stage, now: Instant) {
        let book = self.pods.get_mut(key).expect("it has been met");
        let before = mem::replace(&mut book.stage, stage);
        let pod = book.pod.clone();
        self.account(&pod, before, stage);
        self.plan(&pod, stage, now);
    }

    fn account(&mut self, pod: &BoundPod, before: Stage, after: Stage) {
        let node = self.nodes.get_mut(&pod.node).expect("it is one of ours");
        match (before.takes_room(), after.takes_room()) {
            (false, true) => node.used.add(&pod.requests),
            (true, false) => node.used.subtract(&pod.requests),
            _ => {}
        }
        match (before, after) {
            (Stage::Running, _) => self.counts.running -= 1,
            (_, Stage::Running) => {
                self.counts.running += 1;
                self.counts.started += 1;
            }
            _ => {}
        }
    }

    /// Sees to it that what a stage demands is done in time.
    fn plan(&mut self, pod: &BoundPod, stage: Stage, now: Instant) {
        match stage.delay(pod, &self.pace) {
            None => {}
            Some(Duration::ZERO) => self.carry_out(&pod.key, &pod.uid, stage),
            Some(delay) => {
                let due = Due::Pod { key: pod.key.clone(), uid: pod.uid.clone(), stage };
                self.enter_due(now + delay, due);
            }
        }
    }

    fn carry_out(&mut self, key: &PodKey, uid: &str, stage: Stage) {
        let Some(book) = self.pods.get_mut(key) else { return };
        let node = &self.nodes[&book.pod.node];
        if book.pod.uid != uid || book.stage != stage || node.diligence == Diligence::Idle {
            return;
        }
        let pod = book.pod.clone();
        let order = match stage {
            Stage::Starting => {
                book.run_with = Some(pod.requests.clone());
                self.addresses += 1;
                Some(Order::Run(pod, Addresses { node: node.address(), pod: pod_address(self.addresses) }))
            }
            Stage::Running => pod.ends.map(|(_, ending)| Order::End(pod, ending)),
            Stage::Stopping => Some(Order::End(pod, Ending::Stopped)),
            Stage::Deleting => Some(Order::Delete(pod)),
            Stage::Over => None,
        };
        self.orders.extend(order);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((time, _), _)| *time)
    }

    /// Gives the orders whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        while self.next_due().is_some_and(|time| time <= now) {
            let (_, due) = self.due.pop_first().expect("there is a next");
            match due {
                Due::Pod { key, uid, stage } => self.carry_out(&key, &uid, stage),
                Due::Lease(node) => self.renew_lease(node, now),
            }
        }
    }

    fn enter_due(&mut self, time: Instant, due: Due) {
        self.entries += 1;
        self.due.insert((time, self.entries), due);
    }
}

/// Addresses are only data; 16 million of them will do.
fn pod_address(number: u32) -> std::net::Ipv4Addr {
    let [_, a, b, c] = number.to_be_bytes();
    [10, a | 128, b, c].into()
}
