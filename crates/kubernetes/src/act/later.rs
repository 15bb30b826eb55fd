//! What can wait: verdicts and tellings. Of several verdicts on one pod only the last is written; tellings beyond
//! what the queue holds are dropped and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::hands::Hands;
use crate::deed::{PodRef, Seat, Telling, Verdict};

/// Tellings that may wait at once.
const TELLINGS: usize = 20_000;
/// Tellings written at once; the rest of the quiet lane is for verdicts.
const TELLERS: usize = 2;

#[derive(Default)]
pub(super) struct Later {
    verdicts: Mutex<Verdicts>,
    verdict_came: Notify,
    tellings: Mutex<VecDeque<Telling>>,
    telling_came: Notify,
}

#[derive(Default)]
struct Verdicts {
    /// Pods in the order in which they were first spoken of.
    order: VecDeque<Arc<str>>,
    last: HashMap<Arc<str>, (PodRef, Verdict)>,
}

/// Starts those who work off what waits; they end when what is returned is dropped.
pub(super) fn work_off(hands: &Arc<Hands>) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    for _ in 0..hands.settings.quiet_in_flight.max(1) {
        let hands = hands.clone();
        workers.spawn(async move {
            loop {
                let (pod, verdict) = hands.later.next_verdict().await;
                hands.explain(&pod, &verdict).await;
            }
        });
    }
    for _ in 0..TELLERS {
        let hands = hands.clone();
        workers.spawn(async move {
            loop {
                let telling = hands.later.next_telling().await;
                hands.write_telling(&telling).await;
            }
        });
    }
    let hands = hands.clone();
    workers.spawn(async move { hands.close_series().await });
    workers
}

impl Later {
    pub(super) fn explain(&self, pod: PodRef, verdict: Verdict) {
        locked(&self.verdicts).put(pod, verdict);
        self.verdict_came.notify_one();
    }

    /// Pods that are being bound wait no more.
    pub(super) fn leave_unsaid(&self, members: &[Seat]) {
        let mut verdicts = locked(&self.verdicts);
        for seat in members {
            verdicts.last.remove(&seat.pod.uid);
        }
    }

    /// Whether there was room for it.
    pub(super) fn tell(&self, telling: Telling) -> bool {
        let mut tellings = locked(&self.tellings);
        let has_room = tellings.len() < TELLINGS;
        if has_room {
            tellings.push_back(telling);
            self.telling_came.notify_one();
        }
        has_room
    }

    async fn next_verdict(&self) -> (PodRef, Verdict) {
        loop {
            let came = self.verdict_came.notified();
            if let Some(next) = locked(&self.verdicts).take() {
                // Of several words that wake one worker, one would be lost.
                self.verdict_came.notify_one();
                return next;
            }
            came.await;
        }
    }

    async fn next_telling(&self) -> Telling {
        loop {
            let came = self.telling_came.notified();
            if let Some(next) = locked(&self.tellings).pop_front() {
                self.telling_came.notify_one();
                return next;
            }
            came.await;
        }
    }
}

impl Verdicts {
    fn put(&mut self, pod: PodRef, verdict: Verdict) {
        let uid = pod.uid.clone();
        if self.last.insert(uid.clone(), (pod, verdict)).is_none() {
            self.order.push_back(uid);
        }
    }

    fn take(&mut self) -> Option<(PodRef, Verdict)> {
        while let Some(uid) = self.order.pop_front() {
            if let Some(last) = self.last.remove(&uid) {
                return Some(last);
            }
        }
        None
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
