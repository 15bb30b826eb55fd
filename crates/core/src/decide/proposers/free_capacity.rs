//! Waiting jobs start from free capacity, in the order of the queue; a job that does not fit may get a reservation.

use crate::decide::admission::admit_beside_reservations;
use crate::decide::ledger::{Entry, Ledger, Proposal, Request, Serves, head_blocks, lacks_capacity};
use crate::decide::proposer::Proposer;
use crate::decide::reservations::reserve;
use crate::decide::view::View;
use crate::model::report::Reason;

#[derive(Default)]
pub(in crate::decide) struct FreeCapacity;

impl<'a> Proposer<'a> for FreeCapacity {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        ledger.open_queue(view);
        loop {
            if ledger.work.starts >= view.snapshot.tuning.decide.max_starts_per_decision {
                ledger.report.cut_short = true;
                ledger.requests.cursor.clear();
            }
            let Some(request) = ledger.next_request(view) else {
                ledger.requeue_changed(view);
                if ledger.requests.cursor.is_empty() {
                    return None;
                }
                continue;
            };
            match admit_beside_reservations(view, ledger, request) {
                Ok(entries) => return Some(start(request, entries)),
                Err(reason) => refuse(view, ledger, request, reason),
            }
            if head_blocks(view) {
                ledger.report.blocked_by = Some(request.job);
                return None;
            }
        }
    }
}

fn start(request: Request, mut entries: Vec<Entry>) -> Proposal {
    entries.push(Entry::BookStart(request.job));
    Proposal { serves: Some((request, Serves::FromFreeCapacity)), entries }
}

/// Refuses a request, with a reservation where it is owed one.
fn refuse<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, request: Request, reason: Reason) {
    if lacks_capacity(&reason) && ledger.is_owed_reservation(view, request.job) {
        ledger.work.reservation_searches += 1;
        let reservation = reserve(view, &ledger.draft, request.job);
        ledger.draft.reservations.extend(reservation);
    }
    ledger.refuse(view, request, reason);
}
