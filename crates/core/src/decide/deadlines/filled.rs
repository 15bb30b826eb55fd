//! The published rule of ElasticFlow (`elasticflow`): new jobs are admitted if all jobs can be in time, all new ones
//! together or none; each job has the smallest booking that suffices, and what is left goes to the jobs that it costs
//! least.

use super::Schedule;
use super::books::{Books, Plan};
use super::capacity_pools::{Booked, Pools};
use super::grow::{Growth, grow};
use super::kind::makes_room;
use crate::deadlines::{DeadlineVerdict, Timetable, fill_as_early_as_possible};
use crate::model::report::Reason;

pub(super) fn schedule(mut books: Books<'_>) -> Schedule<'_> {
    let all = 0..books.jobs.len();
    let (known, new): (Vec<usize>, Vec<usize>) = all.partition(|at| books.before(*at).is_some());
    let with_all = books.plan(books.pools.clone(), 0..books.jobs.len());
    let refused = if with_all.is_ok() { Vec::new() } else { new };
    let plan = with_all.unwrap_or_else(|_| plan_anyway(&books, known));
    books.adopt(plan);
    grow(&mut books, Growth::Filled);
    let refused = refused.into_iter().map(|at| (books.jobs[at].id, refusal(&books, at)));
    let refused: Vec<_> = refused.collect();
    let mut schedule = books.close(Timetable::default(), |_| DeadlineVerdict::Planned);
    for (id, _) in &refused {
        schedule.timetable.forget(*id);
    }
    Schedule { refused, ..schedule }
}

/// Jobs that cannot be in time any more run as soon as possible, in the order of deadlines. Jobs with a place that cannot be
/// stopped come first: they keep what they hold, whatever is booked for other jobs.
fn plan_anyway(books: &Books<'_>, mut known: Vec<usize>) -> Plan {
    let keeps_its_place = |at: &usize| {
        let timed = &books.jobs[*at];
        !makes_room(timed.job) && books.snapshot.plan.get(timed.id).is_some()
    };
    known.sort_by_key(|at| !keeps_its_place(at));
    let mut plan = Plan { pools: books.pools.clone(), booked: Default::default() };
    for at in known {
        let timed = &books.jobs[at];
        let found = books.fill(&plan.pools, at).or_else(|| soon(books, &plan.pools, at));
        if let Some(found) = found {
            plan.pools.book(books.snapshot, timed, &found);
            plan.booked.insert(at, found);
        }
    }
    plan
}

fn soon(books: &Books<'_>, pools: &Pools, at: usize) -> Option<Booked> {
    let timed = &books.jobs[at];
    let node = if timed.is_in_place() {
        books.node_of(at).or_else(|| pools.nodes_for(books.snapshot, timed).into_iter().next())
    } else {
        None
    };
    let booking =
        fill_as_early_as_possible(&*pools.outlook(books.snapshot, timed, node)?, &timed.need, &books.grid)?;
    Some(Booked { booking, node })
}

fn refusal(books: &Books<'_>, at: usize) -> Reason {
    let timed = &books.jobs[at];
    let earliest = soon(books, &books.pools, at).map(|found| found.booking.ends);
    Reason::DeadlineInfeasible { deadline: timed.need.until, earliest }
}
