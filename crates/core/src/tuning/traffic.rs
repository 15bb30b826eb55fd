//! Entries of the room `traffic`.

use super::Origin::{Decision, Judgement};
use super::room::room;

room! {
    /// Numbers that the room `traffic` reads.
    TrafficTuning {
        /// Predicted slowdowns that differ by no more than this are a tie: an alternative must win more on average to be chosen.
        prediction_tolerance: f64 = 0.005, in 0.0..=1.0, unit "of an iteration alone",
            from Judgement("a tie tolerance for choices on one predictor; its measured error against the simulator is larger: p50 0.4 %, p90 2 % (decision 9)");
        /// Traffic policies of running jobs change only where the best alternative wins more than this on average.
        min_gain_of_change: f64 = 0.01, in 0.0..=1.0, unit "of an iteration alone",
            from Decision(11);
        /// No job is slowed down further than the most slowed job under fair sharing, times this.
        max_slowdown_vs_worst_fair: f64 = 1.05, in 1.0..=100.0, unit "times the worst slowdown under fair sharing",
            from Decision(12);
        /// Where priorities differ, a job may be slowed down this far for the sake of a higher priority.
        max_slowdown_for_higher_priority: f64 = 1.3, in 1.0..=100.0, unit "times an iteration alone",
            from Decision(9);
        /// A job may be slowed down this far where fair sharing slows a job of the highest priority noticeably.
        max_slowdown_for_highest_priority: f64 = 2.0, in 1.0..=100.0, unit "times an iteration alone",
            from Judgement("twice the iteration alone: a job of the highest priority outweighs others, and still does not stop them");
        /// Fair sharing slows a job of the highest priority noticeably beyond this.
        noticeable_slowdown: f64 = 1.05, in 1.0..=100.0, unit "times an iteration alone",
            from Judgement("well above the error of most predictions, 2 % at p90");
        /// The loss of a job of the highest priority counts this many times when traffic policies are compared.
        highest_priority_loss_weight: f64 = 5.0, in 1.0..=1000.0, unit "times",
            from Judgement("more than the factor of four between the lowest and the highest priority");
        /// Bursts have an order of their own among up to this many jobs of one priority; more jobs are served by ranks.
        max_jobs_in_burst_order: usize = 2, in 0..=8, unit "jobs",
            from Decision(20);
        /// A rotation may make a job of equal priority slower than fair sharing by this much.
        max_rotation_loss_vs_fair: f64 = 0.01, in 0.0..=1.0, unit "of an iteration alone",
            from Decision(20);
        /// A rotation is used only if it is predicted to win this part of what is lost under fair sharing.
        min_rotation_gain: f64 = 0.1, in 0.0..=1.0, unit "of the loss under fair sharing",
            from Decision(20);
        /// Length of a window of a rotation.
        iterations_per_rotation_window: u64 = 4, in 1..=1000, unit "iterations of the slowest job",
            from Decision(20);
    }
}
