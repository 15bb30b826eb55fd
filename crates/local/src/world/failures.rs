//! Failures of members: the member of a gang that failed first, and the end of its log.

use super::course::Seat;
use super::{Told, World};
use crate::logs::{SHOWN_LINES, keep, last_lines};
use crate::process::{How, Status};

impl World<'_> {
    /// Shows the last lines of the member whose failure ends the gang, unless the scheduler itself ended it.
    pub(super) fn report_failure(&mut self, index: usize, at: usize, status: &Status, why: &str) {
        let seat: Option<&Seat> = self.courses[index].seats().get(at);
        let is_own = !matches!(status, Status::Ended(ended) if ended.asked);
        let log = seat.filter(|_| is_own).and_then(|seat| keep(self.folder.path(), seat.member.folder()));
        let lines = log.as_ref().map(|log| last_lines(log, SHOWN_LINES)).unwrap_or_default();
        if is_own {
            let job = &self.setup.jobs[index].spec.name;
            (self.tell)(Told::MemberFailed { job, why, log: log.as_deref(), last_lines: &lines });
        }
        self.courses[index].tally.log = log;
    }
}

/// The member that failed before all others: when one dies, the others lose their connections and fail as well. A
/// member that the scheduler has ended counts only where none failed by itself.
pub(super) fn first_to_fail(statuses: &[Status]) -> Option<usize> {
    let order = |status: &Status| match status {
        // How it ended is unknown, but it was not for the sake of another.
        Status::Lost => Some((false, 0)),
        Status::Ended(ended) if ended.how != How::Exit(0) => Some((ended.asked, ended.at_ns)),
        Status::Ended(_) | Status::Starting | Status::Running { .. } => None,
    };
    let failed = statuses.iter().enumerate().filter_map(|(at, status)| Some((order(status)?, at)));
    failed.min().map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ended;

    fn ended(how: How, at_ns: u64, asked: bool) -> Status {
        Status::Ended(Ended { how, at_ns, asked })
    }

    #[test]
    fn the_member_that_fails_first_is_the_one_to_show() {
        let runs = Status::Running { pid: 1 };
        let done = ended(How::Exit(0), 1, false);
        let cases = [
            (vec![runs.clone(), done.clone()], None),
            (vec![done.clone(), ended(How::Exit(1), 9, false), runs.clone()], Some(1)),
            (vec![ended(How::Exit(1), 9, false), ended(How::Exit(1), 8, false)], Some(1)),
            // The scheduler killed the first.
            (vec![ended(How::Signal(9), 7, true), ended(How::Exit(1), 8, false)], Some(1)),
            (vec![runs.clone(), ended(How::Signal(9), 7, true)], Some(1)),
            (vec![ended(How::Exit(1), 8, false), Status::Lost], Some(1)),
        ];
        for (statuses, first) in cases {
            assert_eq!(first_to_fail(&statuses), first, "{statuses:?}");
        }
    }
}
