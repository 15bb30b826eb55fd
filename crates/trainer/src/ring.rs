//! An all-reduce in a ring over TCP.
//!
//! A bucket of gradients is cut into as many chunks as the ring has members. In the first half of the steps each member adds
//! what it hears to its own chunk and passes it on, so that afterwards each has one chunk of the sum; in the second half
//! these go round. Nobody waits for the end of a step: what has arrived is passed on at once, as bytes of a stream, so the
//! links of the ring are busy from the first byte to the last, and every member sends 2(n − 1)/n of the bucket.

use std::cmp::Ordering;
use std::net::TcpStream;

use rustix::event::PollFd;

use crate::exchange::{Broken, Exchange};
use crate::wire::{Cursor, Hears, NUMBER, Wire, as_bytes};

#[derive(Debug)]
pub(crate) struct Ring {
    rank: usize,
    size: usize,
    next: Wire,
    previous: Wire,
    buckets: Vec<Vec<f32>>,
    /// So many of them are computed.
    ready: usize,
    sent: Cursor,
    heard: Cursor,
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
            ready: 0,
            sent: Cursor::default(),
            heard: Cursor::default(),
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

    /// How much of its present bucket may be sent by now: one's own chunk, and behind it what was heard of the others.
    fn may_be_sent(&self) -> usize {
        let Cursor { bucket, .. } = self.sent;
        let heard = match self.heard.bucket.cmp(&bucket) {
            Ordering::Less => 0,
            Ordering::Equal => self.heard.bytes,
            Ordering::Greater => return self.whole(bucket),
        };
        (self.chunk(bucket) + heard).min(self.whole(bucket))
    }

    fn has_to_send(&self) -> bool {
        self.sent.bucket < self.ready && self.sent.bytes < self.may_be_sent()
    }

    fn has_to_hear(&self) -> bool {
        self.heard.bucket < self.ready
    }

    /// In step `s` member `r` sends chunk `r − s`.
    fn send(&mut self) -> Result<(), Broken> {
        while self.has_to_send() {
            let Cursor { bucket, bytes } = self.sent;
            let (chunk, whole) = (self.chunk(bucket), self.whole(bucket));
            let (step, within) = (bytes / chunk, bytes % chunk);
            let from = (self.rank + 2 * self.size - step) % self.size * chunk + within;
            let most = (chunk - within).min(self.may_be_sent() - bytes);
            let count = self.next.give(&as_bytes(&self.buckets[bucket])[from..from + most])?;
            if count == 0 {
                break;
            }
            self.sent.advance(count, whole);
        }
        Ok(())
    }

    /// In step `s` member `r` hears chunk `r − 1 − s`, which is the whole sum in the second half of the steps.
    fn hear(&mut self) -> Result<(), Broken> {
        while self.has_to_hear() {
            let Cursor { bucket, bytes } = self.heard;
            let (chunk, whole) = (self.chunk(bucket), self.whole(bucket));
            let (step, within) = (bytes / chunk, bytes % chunk);
            let from = (self.rank + 2 * self.size - 1 - step) % self.size * chunk;
            let own = &mut self.buckets[bucket][(from + within) / NUMBER..(from + chunk) / NUMBER];
            let how = if step < self.size - 1 { Hears::ToAdd } else { Hears::ToKeep };
            let Some(count) = self.previous.hear(own, how)? else { break };
            self.heard.advance(count * NUMBER, whole);
        }
        Ok(())
    }
}

impl Exchange for Ring {
    fn begin(&mut self) {
        (self.ready, self.sent, self.heard) = (0, Cursor::default(), Cursor::default());
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
        // What was heard may be passed on.
        self.send()
    }

    fn reduced(&self) -> usize {
        self.sent.bucket.min(self.heard.bucket)
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        let last = self.buckets.len();
        let hears = (self.heard.bucket < last).then(|| self.previous.waits_for(false, self.has_to_hear()));
        let sends = (self.sent.bucket < last).then(|| self.next.waits_for(self.has_to_send(), false));
        hears.into_iter().chain(sends).collect()
    }
}
