//! The first member of a node: adds up what its followers there have computed, exchanges it with other nodes, and tells
//! them the sum. What members of one node exchange crosses no link.

use std::net::TcpStream;

use rustix::event::PollFd;

use crate::exchange::{Broken, Exchange};
use crate::servers::Other;
use crate::wire::{Hears, NUMBER};

pub(crate) struct Head {
    /// With other nodes.
    beyond: Box<dyn Exchange>,
    followers: Vec<Other>,
    count: usize,
    ready: usize,
}

impl Head {
    pub(crate) fn new(mut beyond: Box<dyn Exchange>, followers: Vec<TcpStream>) -> Self {
        let count = beyond.buckets().len();
        Self { beyond, followers: followers.into_iter().map(Other::new).collect(), count, ready: 0 }
    }

    /// Computed by all members on the node.
    fn ready_here(&self) -> usize {
        self.followers
            .iter()
            .map(|follower| follower.heard.bucket)
            .min()
            .unwrap_or(self.ready)
            .min(self.ready)
    }
}

impl Exchange for Head {
    fn begin(&mut self) {
        self.ready = 0;
        self.beyond.begin();
        self.followers.iter_mut().for_each(Other::begin);
    }

    fn buckets(&mut self) -> &mut [Vec<f32>] {
        self.beyond.buckets()
    }

    fn are_ready(&mut self, buckets: usize) {
        self.ready = self.ready.max(buckets);
    }

    fn go_on(&mut self) -> Result<(), Broken> {
        let buckets = self.beyond.buckets();
        for follower in &mut self.followers {
            while follower.heard.bucket < self.ready {
                let bucket = follower.heard.bucket;
                if !follower.hear(&mut buckets[bucket], Hears::ToAdd)? {
                    break;
                }
            }
        }
        let ready = self.ready_here();
        self.beyond.are_ready(ready);
        self.beyond.go_on()?;
        let reduced = self.beyond.reduced();
        let buckets = self.beyond.buckets();
        for follower in &mut self.followers {
            while follower.sent.bucket < reduced {
                let numbers = &buckets[follower.sent.bucket];
                if !follower.send(numbers, numbers.len() * NUMBER)? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn reduced(&self) -> usize {
        let told = self.followers.iter().map(|follower| follower.sent.bucket).min();
        told.unwrap_or(self.count).min(self.beyond.reduced())
    }

    fn heard(&self) -> u64 {
        self.beyond.heard()
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        let reduced = self.beyond.reduced();
        let unfinished = self.followers.iter().filter(|follower| follower.sent.bucket < self.count);
        let wait = |follower: &'_ Other| (follower.sent.bucket < reduced, follower.heard.bucket < self.ready);
        let followers = unfinished.map(|follower| {
            let (gives, hears) = wait(follower);
            follower.wire.waits_for(gives, hears)
        });
        self.beyond.waits_for().into_iter().chain(followers).collect()
    }
}
