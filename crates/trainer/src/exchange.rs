//! What members of a job do with their gradients: whatever the way, buckets become ready one after another, bytes go to and
//! fro as the wire takes them, and in the end everybody has the sum.

use std::io;

use rustix::event::PollFd;

use crate::meet::{Meeting, MeetingError};
use crate::node::Head;
use crate::place::Place;
use crate::ring::Ring;
use crate::servers::{Server, Worker};

/// Why an exchange came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("another member of the job has left")]
    Gone,
    #[error("another member sent what makes no sense")]
    Nonsense,
    #[error("the exchange with another member broke off")]
    Wire(#[from] io::Error),
}

pub(crate) trait Exchange {
    /// A new iteration.
    fn begin(&mut self);

    /// The gradients of this member, and after the exchange those of all. They may be a little longer than was asked for.
    fn buckets(&mut self) -> &mut [Vec<f32>];

    /// So many buckets are computed by now.
    fn are_ready(&mut self, buckets: usize);

    /// Sends and hears as much as goes without waiting.
    fn go_on(&mut self) -> Result<(), Broken>;

    /// So many buckets are exchanged.
    fn reduced(&self) -> usize;

    /// Bytes that came in from the one before on the ring, since the beginning; none without one.
    fn heard(&self) -> u64 {
        0
    }

    /// What is to happen before it can go on.
    fn waits_for(&self) -> Vec<PollFd<'_>>;
}

/// Meets the others and sets up the way in which buckets of these sizes, in numbers, are exchanged with them.
///
/// With servers, each keeps an equal part of every bucket. Without, members of one node reduce among themselves, and the
/// first of each node forms a ring with those of other nodes.
pub(crate) fn with_the_others(place: &Place, buckets: &[usize]) -> Result<Box<dyn Exchange>, MeetingError> {
    let ring = place.ring();
    let pieces = if place.servers > 0 { place.servers } else { ring.len().max(1) };
    let even = |numbers: &usize| numbers.div_ceil(pieces).max(1) * pieces;
    let buckets: Vec<usize> = buckets.iter().map(even).collect();
    if place.peers.len() < 2 {
        return Ok(Box::new(Alone::new(&buckets)));
    }
    let meeting = Meeting::open(place)?;
    if place.is_server() {
        let workers: Vec<usize> = (place.servers..place.peers.len()).collect();
        return Ok(Box::new(Server::new(place.servers, meeting.await_calls(&workers)?, &buckets)));
    }
    if place.servers > 0 {
        let servers: Vec<usize> = (0..place.servers).collect();
        return Ok(Box::new(Worker::new(meeting.call(&servers)?, &buckets)));
    }
    let head = place.head_of(place.rank);
    if head != place.rank {
        return Ok(Box::new(Worker::new(meeting.call(&[head])?, &buckets)));
    }
    at_the_head(place, &meeting, &ring, &buckets)
}

/// The first of a node: on the ring, where there are other nodes, and before its followers, where it has any.
fn at_the_head(
    place: &Place,
    meeting: &Meeting<'_>,
    ring: &[usize],
    buckets: &[usize],
) -> Result<Box<dyn Exchange>, MeetingError> {
    let own = ring.iter().position(|member| *member == place.rank).expect("a head is on the ring");
    let (size, followers) = (ring.len(), place.followers_of(place.rank));
    let [next, previous] = [1, size - 1].map(|away| ring[(own + away) % size]);
    // Nobody can answer before it has called, so all call first.
    let next = if size > 1 { meeting.call(&[next])? } else { Vec::new() };
    let callers: Vec<usize> = (size > 1).then_some(previous).into_iter().chain(followers).collect();
    let mut callers = meeting.await_calls(&callers)?.into_iter();
    let inner: Box<dyn Exchange> = match (next.into_iter().next(), size > 1) {
        (Some(next), true) => {
            let previous = callers.next().expect("the one before has called");
            Box::new(Ring::new(own, size, [next, previous], buckets))
        }
        _ => Box::new(Alone::new(buckets)),
    };
    Ok(match callers.len() {
        0 => inner,
        _ => Box::new(Head::new(inner, callers.collect())),
    })
}

/// A member that has nobody to exchange with.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    buckets: Vec<Vec<f32>>,
    ready: usize,
}

impl Alone {
    pub(crate) fn new(buckets: &[usize]) -> Self {
        Self { buckets: buckets.iter().map(|numbers| vec![0.0; *numbers]).collect(), ready: 0 }
    }
}

impl Exchange for Alone {
    fn begin(&mut self) {
        self.ready = 0;
    }

    fn buckets(&mut self) -> &mut [Vec<f32>] {
        &mut self.buckets
    }

    fn are_ready(&mut self, buckets: usize) {
        self.ready = buckets;
    }

    fn go_on(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    fn reduced(&self) -> usize {
        self.ready
    }

    fn waits_for(&self) -> Vec<PollFd<'_>> {
        Vec::new()
    }
}
