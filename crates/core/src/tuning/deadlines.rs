//! Entries of the room `deadlines`.

use super::Origin::{Decision, Judgement, SearchBudget};
use super::room::room;
use crate::model::units::{Duration, Share};

room! {
    /// Numbers that the room `deadlines` reads.
    DeadlinesTuning {
        /// The costs of this many recent jobs define which job is expensive.
        recent_costs: usize = 500, in 1..=100_000, unit "jobs",
            from Decision(13);
        /// A soft job is promised its booking if its cost lies within this part of the recent costs.
        promised_cost_rank: Share = Share(800_000), in Share(0)..=Share::WHOLE, unit "of the recent costs",
            from Decision(13);
        /// The prediction errors of this many recent jobs give the margin of strict deadlines.
        recent_prediction_errors: usize = 100, in 1..=100_000, unit "jobs",
            from Judgement("enough for a 90th percentile, and few enough to follow a change of the workload");
        /// The margin of strict deadlines covers this part of the recent prediction errors.
        prediction_error_rank: Share = Share(900_000), in Share(0)..=Share::WHOLE, unit "of the recent errors",
            from Judgement("one prediction in ten is allowed to be worse than the margin");
        /// Before this many samples, no job is expensive and the margin is zero.
        min_samples: usize = 20, in 1..=100_000, unit "jobs",
            from Judgement("two samples lie above a 90th percentile of twenty");
        /// Strict deadlines use the share of work without deadlines until that was short of it for this long.
        max_shortage: Duration = Duration::HOUR.times(12), in Duration::ZERO..=Duration::from_secs(30 * 86_400), unit "time",
            from Decision(13);
        /// A shortage of work without deadlines is made up for up to this multiple of the time above.
        max_shortage_factor: u64 = 2, in 1..=1000, unit "times",
            from Judgement("after a long overload, strict deadlines wait for no more than the same time again");
        /// A job that is never stopped is tried at this many start times.
        max_start_times: usize = 16, in 1..=10_000, unit "start times",
            from SearchBudget("the forward simulations for one size");
        /// With this many jobs or more, times of bookings are coarser the further ahead they lie.
        coarsening_min_jobs: usize = 400, in 1..=1_000_000, unit "jobs",
            from SearchBudget("the number of times at which bookings change");
        /// A coarse step is at most one over this of the distance from now.
        min_steps_of_distance: u64 = 16, in 1..=1_000_000, unit "steps",
            from SearchBudget("the number of times at which bookings change");
        /// Bookings change at multiples of at least this.
        min_booking_step: Duration = Duration::SECOND, in Duration::from_millis(1)..=Duration::HOUR, unit "time",
            from Judgement("a start takes longer than a second");
    }
}
