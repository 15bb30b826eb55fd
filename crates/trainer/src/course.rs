//! The course of a training, as one member sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::clock;
use crate::compute::Computing;
use crate::exchange::{Broken, Exchange, with_the_others};
use crate::gate::Gate;
use crate::meet::MeetingError;
use crate::place::Place;
use crate::record::{Record, Took};
use crate::slices::Slices;
use crate::task::Task;
use crate::telling::Telling;
use crate::trace::Trace;
use crate::wire::NUMBER;

/// How a training ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All is learned.
    Done { iterations: u64 },
    /// It was asked to leave, and did so after so many iterations.
    Left { iterations: u64 },
}

#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("iteration {iteration}: {source}")]
    Exchange { iteration: u64, source: Broken },
    #[error("iteration {iteration}: bucket {bucket} came out as {found} in place of {expected}")]
    WrongSum { iteration: u64, bucket: usize, found: f32, expected: f32 },
}

/// Trains until all is done or `asked_to_leave` is set, here or at any other member.
pub fn train(task: &Task, place: &Place, asked_to_leave: &Arc<AtomicBool>) -> Result<Ended, TrainingError> {
    let mut member = Member::set_out(task, place, asked_to_leave)?;
    loop {
        let iterations = member.saved.iterations;
        if iterations >= task.iterations
            || task.learns.target.is_some_and(|target| member.saved.loss <= target)
        {
            member.save(true);
            member.telling.end();
            return Ok(Ended::Done { iterations });
        }
        let leaves = match member.iterate() {
            // A server is there for its workers, and goes when they have gone.
            Err(TrainingError::Exchange { .. }) if place.is_server() => true,
            outcome => outcome?,
        };
        if leaves {
            member.save(true);
            member.telling.end();
            return Ok(Ended::Left { iterations: member.saved.iterations });
        }
        member.save(false);
    }
}

struct Member<'a> {
    task: &'a Task,
    place: &'a Place,
    asked_to_leave: &'a AtomicBool,
    exchange: Box<dyn Exchange>,
    slices: Slices,
    /// What would be saved now, and what was saved last, and when.
    saved: Checkpoint,
    on_disk: (u64, Instant),
    gate: Gate,
    telling: Telling,
    record: Option<Record>,
    trace: Option<Trace>,
}

impl<'a> Member<'a> {
    fn set_out(
        task: &'a Task,
        place: &'a Place,
        asked_to_leave: &'a AtomicBool,
    ) -> Result<Self, TrainingError> {
        let mut numbers: Vec<usize> =
            task.iteration.buckets.iter().map(|bucket| bucket.bytes.0 as usize / NUMBER).collect();
        match numbers.last_mut() {
            // The last number says whether somebody wants to leave: everybody hears of it after the same iteration.
            Some(last) => *last += 1,
            None => numbers.push(1),
        }
        let parties = if place.servers > 0 { place.servers } else { place.ring().len() };
        let slices = Slices::of(&numbers, parties);
        let exchange = with_the_others(place, &slices.sizes)?;
        let saved = Checkpoint::load(place.checkpoints.as_deref())?;
        let leads = place.leads();
        let folder = place.folder.as_deref().filter(|_| leads);
        Ok(Self {
            task,
            place,
            asked_to_leave,
            exchange,
            slices,
            saved: Checkpoint { members: place.peers.len().max(1), ..saved },
            on_disk: (saved.iterations, Instant::now()),
            gate: Gate::at(folder),
            telling: if leads { Telling::of(place) } else { Telling::default() },
            record: place.record.as_deref().filter(|_| leads).and_then(|file| Record::open(file).ok()),
            trace: place.trace(task.notes).and_then(|file| Trace::create(&file).ok()),
        })
    }

    /// One iteration; whether all leave after it.
    fn iterate(&mut self) -> Result<bool, TrainingError> {
        let iteration = self.saved.iterations;
        let broken = |source| TrainingError::Exchange { iteration, source };
        let held = self.gate.wait(clock::now());
        sleep(held);
        let (began, since) = (Instant::now(), clock::now());
        let stretch = self.task.stretch(iteration);
        self.fill();
        let computing = match self.place.is_server() {
            true => Computing::Nothing,
            false => Computing::begin(self.task, began, stretch),
        };
        let mut computed = None;
        loop {
            let now = Instant::now();
            let next = computing.next(now);
            let ready = if next.is_none() { usize::MAX } else { computing.ready(now) };
            self.exchange.are_ready(self.slices.of_first(ready));
            self.note_what_is_heard();
            self.exchange.go_on().map_err(broken)?;
            self.note_what_is_heard();
            if next.is_none() {
                computed.get_or_insert(now - began);
                if self.exchange.reduced() >= self.slices.count() {
                    break;
                }
            }
            wait(&mut self.exchange.waits_for(), next).map_err(broken)?;
        }
        computing.end();
        let exchanged = began.elapsed();
        let leaves = self.judge(iteration)?;
        if !self.place.is_server() {
            sleep(Duration::from_nanos((self.task.iteration.finish.0 as f64 * stretch) as u64));
        }
        self.saved.iterations += 1;
        self.saved.loss = self.task.learns.loss(self.saved.iterations);
        let computed = computed.unwrap_or_default();
        let took = Took { began: since, held, computed, exchanged, whole: began.elapsed() };
        if let Some(record) = &mut self.record {
            record.note(iteration, &took);
        }
        let is_last = leaves || self.saved.iterations >= self.task.iterations;
        self.telling.say(self.place, self.saved.iterations, self.saved.loss, computed, is_last);
        Ok(leaves)
    }

    /// Before and after bytes are taken in: whoever has slept does not know when they came.
    fn note_what_is_heard(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.look(clock::now().0, self.exchange.heard());
        }
    }

    /// Gradients that are easily checked: every number is one's own rank, counted from one.
    fn fill(&mut self) {
        self.exchange.begin();
        if self.place.is_server() {
            return;
        }
        let own = (self.place.rank + 1) as f32;
        let leaves = self.asked_to_leave.load(Ordering::Relaxed);
        let buckets = self.exchange.buckets();
        buckets.iter_mut().for_each(|bucket| bucket.fill(own));
        if let Some(word) = buckets.last_mut().and_then(|bucket| bucket.last_mut()) {
            *word = f32::from(u8::from(leaves));
        }
    }

    /// Whether the sums are right, and whether somebody wants to leave.
    fn judge(&mut self, iteration: u64) -> Result<bool, TrainingError> {
        let ranks = self.place.servers..self.place.peers.len().max(1);
        let expected: f32 = ranks.map(|rank| (rank + 1) as f32).sum();
        let buckets = self.exchange.buckets();
        for (bucket, numbers) in buckets.iter().enumerate() {
            let middle = numbers.len() / 2;
            for found in [numbers.first(), numbers.get(middle).filter(|_| middle + 1 < numbers.len())] {
                if let Some(found) = found.filter(|found| numbers.len() > 1 && **found != expected) {
                    return Err(TrainingError::WrongSum { iteration, bucket, found: *found, expected });
                }
            }
        }
        let word = buckets.last().and_then(|bucket| bucket.last()).copied().unwrap_or_default();
        Ok(word > 0.0 && !self.place.is_server())
    }

    /// Saves, if it is time to or must be. A disk that is full costs what was learned since the last time, and no more.
    fn save(&mut self, must: bool) {
        let (iterations, at) = self.on_disk;
        let is_due =
            self.task.saves.every.is_some_and(|every| at.elapsed().as_nanos() >= u128::from(every.0));
        let Some(folder) = self.place.checkpoints.as_deref().filter(|_| self.place.leads()) else { return };
        if iterations == self.saved.iterations || !(must || is_due) {
            return;
        }
        sleep(Duration::from_nanos(self.task.saves.takes.0));
        // What is saved will not be done again, so it has to be on record.
        if let Some(record) = &mut self.record {
            record.flush();
        }
        match self.saved.save(folder) {
            Ok(()) => self.on_disk = (self.saved.iterations, Instant::now()),
            Err(error) => {
                eprintln!("cannot save after iteration {}: {error}; goes on", self.saved.iterations);
                self.on_disk.1 = Instant::now();
            }
        }
    }
}

/// Waits until the wire moves, or for so long.
fn wait(fds: &mut [PollFd<'_>], most: Option<Duration>) -> Result<(), Broken> {
    let most =
        most.map(|most| Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) });
    match poll(fds, most.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(Broken::Wire(error.into())),
    }
    let moves = PollFlags::IN | PollFlags::OUT;
    let ends = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let has_left = |fd: &PollFd<'_>| fd.revents().intersects(ends) && !fd.revents().intersects(moves);
    if fds.iter().any(has_left) { Err(Broken::Gone) } else { Ok(()) }
}

fn sleep(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}
