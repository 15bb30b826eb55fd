//! An all-reduce in a ring over TCP.
//!
//! A bucket of gradients is cut into as many chunks as the ring has members. In the first half of the steps each member adds
//! what it hears to its own chunk and passes it on, so that afterwards each has one chunk of the sum; in the second half
//! these go round. Nobody waits for the end of a step: what has arrived is passed on at once, as bytes of a stream, and
//! every member sends 2(n − 1)/n of the bucket.
//!
//! A bucket is waiting some of the time for chunks to come round, so a few go on at the same time: bytes travel in frames
//! that say which bucket they belong to. They are few, and small (see [`Slices`](crate::slices::Slices)), so that no link
//! of the ring is far ahead of another: where two jobs share links, the one that would be done first is held up by the link
//! on which it is last, and the other gains nothing by being ahead elsewhere.

use std::net::TcpStream;

use rustix::event::PollFd;

use crate::exchange::{Broken, Exchange};
use crate::wire::{Hears, NUMBER, Wire, as_bytes};

/// So many buckets are under way at a time: enough to fill a link whose bytes take a while to arrive.
const UNDER_WAY: usize = 6;

#[derive(Debug)]
pub(crate) struct Ring {
    rank: usize,
    size: usize,
    next: Wire,
    previous: Wire,
    buckets: Vec<Vec<f32>>,
    /// How far each of them has come.
    progress: Vec<Progress>,
    /// So many of them are computed, and so many reduced.
    ready: usize,
    done: usize,
    sends: Frame,
    hears: Frame,
    /// Since the beginning.
    heard: u64,
}

/// Bytes of a bucket that went out and came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    sent: usize,
    heard: usize,
}

/// What is left of the frame under way, its head first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frame {
    head: [u8; Frame::HEAD],
    head_done: usize,
    bucket: usize,
    left: usize,
}

impl Frame {
    const HEAD: usize = 8;

    fn new(bucket: usize, bytes: usize) -> Self {
        let mut head = [0; Self::HEAD];
        head[..4].copy_from_slice(&(bucket as u32).to_le_bytes());
        head[4..].copy_from_slice(&(bytes as u32).to_le_bytes());
        Self { head, head_done: 0, bucket, left: bytes }
    }

    /// What a head says that has come in.
    fn read(&mut self) {
        let number =
            |at: usize| u32::from_le_bytes(self.head[at..at + 4].try_into().expect("four bytes")) as usize;
        (self.bucket, self.left) = (number(0), number(4));
    }
}

impl Ring {
    /// A ring whose iterations reduce buckets of these sizes, in numbers that can be cut into equal chunks.
    pub(crate) fn new(rank: usize, size: usize, [next, previous]: [TcpStream; 2], buckets: &[usize]) -> Self {
        Self {
            rank,
            size,
            next: Wire::new(next),
            previous: Wire::new(previous),
            buckets: buckets.iter().map(|numbers| vec![0.0; *numbers]).collect(),
            progress: vec![Progress::default(); buckets.len()],
            ready: 0,
            done: 0,
            sends: Frame::default(),
            hears: Frame::default(),
            heard: 0,
        }
    }

    /// Bytes of one chunk of a bucket.
    fn chunk(&self, bucket: usize) -> usize {
        self.buckets[bucket].len() / self.size * NUMBER
    }

    /// Bytes that each member sends for a bucket.
    fn whole(&self, bucket: usize) -> usize {
        2 * (self.size - 1) * self.chunk(bucket)
    }

    /// How much of a bucket may be sent but is not: one's own chunk, and behind it what was heard of the others.
    fn to_send(&self, bucket: usize) -> usize {
        let Progress { sent, heard } = self.progress[bucket];
        (self.chunk(bucket) + heard).min(self.whole(bucket)) - sent
    }

    /// The first of those that can go on.
    fn next_to_send(&self) -> Option<usize> {
        let mut under_way = self.done..self.ready.min(self.done + UNDER_WAY);
        under_way.find(|bucket| self.to_send(*bucket) > 0)
    }

    fn has_to_send(&self) -> bool {
        self.sends.left > 0 || self.next_to_send().is_some()
    }

    /// Somebody may be ahead: what belongs to a bucket that is not computed here has to wait.
    fn has_to_hear(&self) -> bool {
        let waits = self.hears.left > 0 && self.hears.bucket >= self.ready;
        !waits && (self.done..self.ready).any(|bucket| !self.is_heard(bucket))
    }

    /// In step `s` member `r` sends chunk `r − s`.
    fn send(&mut self) -> Result<(), Broken> {
        loop {
            if self.sends.left == 0 {
                let Some(bucket) = self.next_to_send() else { return Ok(()) };
                self.sends = Frame::new(bucket, self.to_send(bucket));
            }
            while self.sends.head_done < Frame::HEAD {
                match self.next.give_ahead(&self.sends.head[self.sends.head_done..])? {
                    0 => return Ok(()),
                    count => self.sends.head_done += count,
                }
            }
            let Frame { bucket, left, .. } = self.sends;
            let (chunk, sent) = (self.chunk(bucket), self.progress[bucket].sent);
            let (step, within) = (sent / chunk, sent % chunk);
            let from = (self.rank + 2 * self.size - step) % self.size * chunk + within;
            let most = (chunk - within).min(left);
            let count = self.next.give(&as_bytes(&self.buckets[bucket])[from..from + most])?;
            if count == 0 {
                return Ok(());
            }
            self.progress[bucket].sent += count;
            self.sends.left -= count;
        }
    }

    /// In step `s` member `r` hears chunk `r − 1 − s`, which is the whole sum in the second half of the steps.
    fn hear(&mut self) -> Result<(), Broken> {
        while self.has_to_hear() {
            if self.hears.left == 0 {
                if self.hears.head_done == Frame::HEAD {
                    self.hears.head_done = 0;
                }
                let Some(count) = self.previous.take(&mut self.hears.head[self.hears.head_done..])? else {
                    return Ok(());
                };
                self.hears.head_done += count;
                if self.hears.head_done == Frame::HEAD {
                    self.hears.read();
                    self.check_frame()?;
                }
                continue;
            }
            let Frame { bucket, left, .. } = self.hears;
            let (chunk, heard) = (self.chunk(bucket), self.progress[bucket].heard);
            let (step, within) = (heard / chunk, heard % chunk);
            let from = (self.rank + 2 * self.size - 1 - step) % self.size * chunk + within;
            let most = (chunk - within).min(left);
            let own = &mut self.buckets[bucket][from / NUMBER..(from + most) / NUMBER];
            let how = if step < self.size - 1 { Hears::ToAdd } else { Hears::ToKeep };
            let Some(count) = self.previous.hear(own, how)? else { return Ok(()) };
            self.progress[bucket].heard += count * NUMBER;
            self.hears.left -= count * NUMBER;
            self.heard += (count * NUMBER) as u64;
        }
        Ok(())
    }

    /// Whoever sends frames that cannot be is not one of us.
    fn check_frame(&self) -> Result<(), Broken> {
        let Frame { bucket, left, .. } = self.hears;
        let is_whole = left > 0 && left % NUMBER == 0;
        let fits = bucket < self.buckets.len() && self.progress[bucket].heard + left <= self.whole(bucket);
        if is_whole && fits { Ok(()) } else { Err(Broken::Nonsense) }
    }

    fn note_what_is_done(&mut self) {
        while self.done < self.ready && self.is_sent(self.done) && self.is_heard(self.done) {
            self.done += 1;
        }
    }

    fn is_sent(&self, bucket: usize) -> bool {
        self.progress[bucket].sent == self.whole(bucket)
    }

    fn is_heard(&self, bucket: usize) -> bool {
        self.progress[bucket].heard == self.whole(bucket)
    }
}

impl Exchange for Ring {
    fn begin(&mut self) {
        (self.ready, self.done) = (0, 0);
        self.progress.fill(Progress::default());
    }

    fn buckets(&mut self) -> &mut [Vec<f32>] {
        &mut self.buckets
    }

    fn are_ready(&mut self, buckets: usize) {
        self.ready = self.ready.max(buckets);
    }

    fn go_on(&mut self) -> Result<(), Broken> {
        self.send()?;
        self.hear()?;
        self.note_what_is_done();
        // What was heard may be passed on, and what waited for its turn begun.
        self.send()?;
        self.note_what_is_done();
        Ok(())
    }

    fn reduced(&self) -> usize {
        self.done
    }

    fn heard(&self) -> u64 {
        self.heard
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        let left = self.done..self.buckets.len();
        let hears = (!left.clone().all(|bucket| self.is_heard(bucket)))
            .then(|| self.previous.waits_for(false, self.has_to_hear()));
        let sends = (!left.clone().all(|bucket| self.is_sent(bucket)))
            .then(|| self.next.waits_for(self.has_to_send(), false));
        hears.into_iter().chain(sends).collect()
    }
}
