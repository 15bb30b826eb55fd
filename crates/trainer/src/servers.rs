//! Exchange by way of servers: each keeps an equal part of every bucket, hears it from all workers, and tells them the sum.
//!
//! A number is told as soon as all have said theirs, so both directions of a server's links are busy at the same time.

use std::net::TcpStream;
use std::ops::Range;

use rustix::event::PollFd;

use crate::exchange::{Broken, Exchange};
use crate::wire::{Cursor, Hears, NUMBER, Wire, as_bytes};

/// Somebody at the other end of a wire, and how far the exchange with it has come.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) wire: Wire,
    pub(crate) sent: Cursor,
    pub(crate) heard: Cursor,
}

impl Other {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { wire: Wire::new(stream), sent: Cursor::default(), heard: Cursor::default() }
    }

    pub(crate) fn begin(&mut self) {
        (self.sent, self.heard) = (Cursor::default(), Cursor::default());
    }

    /// Sends what it can of a bucket's numbers, up to so many bytes; whether it is to be tried again at once.
    pub(crate) fn send(&mut self, numbers: &[f32], most: usize) -> Result<bool, Broken> {
        let bytes = as_bytes(numbers);
        let count = self.wire.give(&bytes[self.sent.bytes..most])?;
        self.sent.advance(count, bytes.len());
        Ok(count > 0)
    }

    /// Hears what there is of a bucket's numbers; whether it is to be tried again at once.
    pub(crate) fn hear(&mut self, numbers: &mut [f32], how: Hears) -> Result<bool, Broken> {
        let whole = numbers.len() * NUMBER;
        let Some(count) = self.wire.hear(&mut numbers[self.heard.bytes / NUMBER..], how)? else {
            return Ok(false);
        };
        self.heard.advance(count * NUMBER, whole);
        Ok(true)
    }
}

/// The part of a bucket that is kept by one of several servers.
fn part(numbers: usize, server: usize, servers: usize) -> Range<usize> {
    let each = numbers / servers;
    server * each..(server + 1) * each
}

/// Somebody who has gradients and asks for the sum: of one server or several, or of the first member on its node.
#[derive(Debug)]
pub(crate) struct Worker {
    servers: Vec<Other>,
    buckets: Vec<Vec<f32>>,
    ready: usize,
}

impl Worker {
    pub(crate) fn new(servers: Vec<TcpStream>, buckets: &[usize]) -> Self {
        Self {
            servers: servers.into_iter().map(Other::new).collect(),
            buckets: buckets.iter().map(|numbers| vec![0.0; *numbers]).collect(),
            ready: 0,
        }
    }
}

impl Exchange for Worker {
    fn begin(&mut self) {
        self.ready = 0;
        self.servers.iter_mut().for_each(Other::begin);
    }

    fn buckets(&mut self) -> &mut [Vec<f32>] {
        &mut self.buckets
    }

    fn are_ready(&mut self, buckets: usize) {
        self.ready = self.ready.max(buckets);
    }

    fn go_on(&mut self) -> Result<(), Broken> {
        let count = self.servers.len();
        for (index, server) in self.servers.iter_mut().enumerate() {
            while server.sent.bucket < self.ready {
                let numbers = &self.buckets[server.sent.bucket];
                let numbers = &numbers[part(numbers.len(), index, count)];
                if !server.send(numbers, numbers.len() * NUMBER)? {
                    break;
                }
            }
            // The sum of a number takes the place of the number, which was sent before anybody could know the sum.
            while server.heard.bucket < self.ready {
                let numbers = &mut self.buckets[server.heard.bucket];
                let part = part(numbers.len(), index, count);
                if !server.hear(&mut numbers[part], Hears::ToKeep)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn reduced(&self) -> usize {
        self.servers.iter().map(|server| server.heard.bucket).min().unwrap_or(self.ready)
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        let unfinished = |server: &&Other| server.heard.bucket < self.buckets.len();
        let servers = self.servers.iter().filter(unfinished);
        let wait = |server: &'_ Other| (server.sent.bucket < self.ready, server.heard.bucket < self.ready);
        servers
            .map(|server| {
                let (gives, hears) = wait(server);
                server.wire.waits_for(gives, hears)
            })
            .collect()
    }
}

/// Keeps a part of every bucket and has no gradients of its own.
#[derive(Debug)]
pub(crate) struct Server {
    workers: Vec<Other>,
    /// Its parts only.
    buckets: Vec<Vec<f32>>,
}

impl Server {
    /// One of so many servers.
    pub(crate) fn new(servers: usize, workers: Vec<TcpStream>, buckets: &[usize]) -> Self {
        Self {
            workers: workers.into_iter().map(Other::new).collect(),
            buckets: buckets.iter().map(|numbers| vec![0.0; numbers / servers]).collect(),
        }
    }

    /// So far all workers have been heard.
    fn heard(&self) -> Cursor {
        self.workers.iter().map(|worker| worker.heard).min().unwrap_or_default()
    }

    /// What may be sent of a bucket, in bytes.
    fn known(&self, bucket: usize, heard: Cursor) -> usize {
        let whole = self.buckets[bucket].len() * NUMBER;
        if bucket < heard.bucket { whole } else { heard.bytes }
    }

    fn has_to_send(&self, worker: &Other, heard: Cursor) -> bool {
        worker.sent < heard
    }
}

impl Exchange for Server {
    fn begin(&mut self) {
        self.workers.iter_mut().for_each(Other::begin);
        self.buckets.iter_mut().for_each(|bucket| bucket.fill(0.0));
    }

    fn buckets(&mut self) -> &mut [Vec<f32>] {
        &mut self.buckets
    }

    fn are_ready(&mut self, _: usize) {}

    fn go_on(&mut self) -> Result<(), Broken> {
        for worker in &mut self.workers {
            while worker.heard.bucket < self.buckets.len() {
                let bucket = worker.heard.bucket;
                if !worker.hear(&mut self.buckets[bucket], Hears::ToAdd)? {
                    break;
                }
            }
        }
        let heard = self.heard();
        for index in 0..self.workers.len() {
            while self.has_to_send(&self.workers[index], heard) {
                let bucket = self.workers[index].sent.bucket;
                let most = self.known(bucket, heard);
                if !self.workers[index].send(&self.buckets[bucket], most)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn reduced(&self) -> usize {
        self.workers.iter().map(|worker| worker.sent.bucket).min().unwrap_or(self.buckets.len())
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        let (heard, last) = (self.heard(), self.buckets.len());
        let unfinished = self.workers.iter().filter(|worker| worker.sent.bucket < last);
        unfinished
            .map(|worker| worker.wire.waits_for(self.has_to_send(worker, heard), worker.heard.bucket < last))
            .collect()
    }
}
