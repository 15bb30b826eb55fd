//! Earliest deadline first (`edf`): the job with the earliest deadline has as many members as it can use, or as are
//! left.

use std::collections::BTreeMap;

use super::Schedule;
use super::books::Books;
use super::capacity_pools::Booked;
use crate::deadlines::{Booking, BookingSegment, DeadlineVerdict, Timetable};
use crate::model::id::NodeId;
use crate::model::units::Instant;
use crate::observe::progress::WorkPace;

pub(super) fn schedule(mut books: Books<'_>) -> Schedule<'_> {
    for at in 0..books.jobs.len() {
        if let Some(booked) = largest(&books, at) {
            books.book(at, booked);
        }
    }
    books.close(Timetable::default(), |_| DeadlineVerdict::Planned)
}

/// The largest size that is left, until the job ends.
fn largest(books: &Books<'_>, at: usize) -> Option<Booked> {
    let timed = &books.jobs[at];
    let nodes: Vec<Option<NodeId>> = match (timed.is_in_place(), books.node_of(at)) {
        (false, _) => vec![None],
        (true, Some(node)) => vec![Some(node)],
        (true, None) => books.pools.nodes_for(books.snapshot, timed).into_iter().map(Some).collect(),
    };
    let mut found: BTreeMap<u32, Booked> = BTreeMap::new();
    for node in nodes {
        let Some(outlook) = books.pools.outlook(books.snapshot, timed, node) else { continue };
        let free = outlook.free_now();
        if let Some(size) = timed.need.sizes.iter().rfind(|size| size.units <= free) {
            let ends = timed.need.now + WorkPace::at(size.speed).time(timed.need.work);
            let segment =
                BookingSegment { from: timed.need.now, to: Instant(u64::MAX), members: size.members };
            found
                .entry(size.members)
                .or_insert(Booked { booking: Booking { segments: vec![segment], ends }, node });
        }
    }
    found.into_values().next_back()
}
