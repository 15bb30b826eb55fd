//! Entries of the room `traffic`.

use super::Origin::{Decision, Judgement, SearchBudget};
use super::room::room;
use crate::model::units::{Duration, Share};

room! {
    /// Numbers that the room `traffic` reads.
    TrafficTuning {
        /// Predicted slowdowns that differ by no more than this are a tie: an alternative must win more on average to be chosen.
        prediction_tolerance: f64 = 0.005, in 0.0..=1.0, unit "of an iteration alone",
            from Judgement("a tie tolerance for choices by one predictor; the predictor's error against the simulator is larger: 0.4 % at p50, 2 % at p90 (decision 0009)");
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
            from Judgement("a job of the highest priority outweighs the others and still does not stop them");
        /// Fair sharing slows a job of the highest priority noticeably beyond this.
        noticeable_slowdown: f64 = 1.05, in 1.0..=100.0, unit "times an iteration alone",
            from Judgement("well above the error of most predictions, 2 % at p90 (decision 0009)");
        /// The loss of a job of the highest priority counts this many times when traffic policies are compared.
        highest_priority_loss_weight: f64 = 5.0, in 1.0..=1000.0, unit "times",
            from Judgement("more than the factor of four between the highest priority and the lowest");
        /// One job before or after all others is tried among up to this many jobs, in six ways for each job.
        max_jobs_for_job_apart: usize = 4, in 0..=32, unit "jobs",
            from Decision(12);
        /// A job that is slowed down beyond its bound is promoted by one class this many times before the candidate is dropped.
        max_promotions: u8 = 2, in 0..=2, unit "classes",
            from Judgement("the highest two of the eight classes of a link are left free for promotions");
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

        /// This many jobs that share links, directly or through other jobs, are a crowd: placement estimates their slowdowns and follows indirect contention no further.
        crowd_size: usize = 32, in 1..=100_000, unit "jobs",
            from SearchBudget("the jobs whose slowdowns are predicted for one place");
        /// Length of one run of the network ahead.
        prediction_iterations: u64 = 24, in 1..=10_000, unit "iterations of the slowest job",
            from Decision(9);
        /// Traffic policies among up to this many jobs are predicted by several runs from different starts.
        max_jobs_for_close_look: usize = 4, in 0..=32, unit "jobs",
            from Decision(12);
        /// Runs of such a prediction.
        close_look_runs: usize = 3, in 1..=100, unit "runs",
            from Decision(12);
        /// Length of one run of such a prediction.
        close_look_iterations: u64 = 16, in 1..=10_000, unit "iterations of the slowest job",
            from SearchBudget("the length of each of several runs");
        /// A prediction that would have to be shorter than this is replaced by an estimate from the load of links.
        min_prediction_iterations: u64 = 4, in 1..=1000, unit "iterations of the slowest job",
            from Decision(11);
        /// Iterations of all jobs together in one run, as long as the run keeps its shortest length.
        max_prediction_iterations: u64 = 4_000, in 1..=1_000_000, unit "iterations of all jobs",
            from SearchBudget("the iterations of one run where jobs differ in length");
        /// Iterations of all jobs together in one run, each counted by the number of jobs.
        max_prediction_work: u64 = 60_000, in 1..=100_000_000, unit "iterations × jobs",
            from Decision(11);
        /// Compute times vary by up to this in predictions, so that no job stays in a lucky place.
        predicted_compute_deviation: f64 = 0.02, in 0.0..=0.5, unit "of the compute time",
            from Judgement("a few times the noise of measured models");
        /// Slowdown assigned to a job that finishes no iteration in a run.
        slowdown_without_iteration: f64 = 16.0, in 1.0..=1000.0, unit "times an iteration alone",
            from Judgement("beyond every slowdown that a run of such length can show");
        /// On links that hosts shape, every other run has links that carry this much less or more.
        host_rate_error: f64 = 0.03, in 0.0..=0.5, unit "of the rate of a link",
            from Decision(18);

        /// Paced offsets are tried among up to this many jobs.
        max_paced_jobs: usize = 6, in 0..=32, unit "jobs",
            from SearchBudget("the loops of one exact search for offsets");
        /// Nodes of the exact search for paced offsets.
        paced_offset_search_nodes: u64 = 2_000, in 0..=10_000_000, unit "search nodes",
            from SearchBudget("the exact search for paced offsets");
        /// Standard deviation of iterations that is assumed as long as none is observed.
        assumed_iteration_noise: Share = Share(10_000), in Share::NONE..=Share::WHOLE, unit "of the period",
            from Decision(12);
        /// Bursts of one iteration in the search for paced offsets; the shortest pauses are closed beyond it.
        max_paced_phases: usize = 6, in 1..=16, unit "bursts",
            from SearchBudget("the bursts of each loop in the exact search");
        /// A period may be stretched by this much to fit on a common circle.
        max_period_stretch: Share = Share(30_000), in Share::NONE..=Share::WHOLE, unit "of the period",
            from Judgement("paced offsets won no more within 15 % than other traffic policies (decision 0012)");
        /// Room that a stretched period leaves for noise.
        period_cushion: f64 = 1.0, in 0.0..=100.0, unit "standard deviations of an iteration",
            from Decision(12);
        /// A period may be stretched by this much on links that hosts shape.
        max_period_stretch_on_hosts: Share = Share(50_000), in Share::NONE..=Share::WHOLE, unit "of the period",
            from Judgement("room for the larger cushion");
        /// Room that a stretched period leaves for noise on links that hosts shape.
        period_cushion_on_hosts: f64 = 3.0, in 0.0..=100.0, unit "standard deviations of an iteration",
            from Judgement("hosts keep rates within a few percent: an offset that is missed a little in every iteration costs half a period in the end (decision 0018)");

        /// Lookups of the excess of one burst at one offset that one job may take; beyond it only some offsets are compared.
        solver_max_lookups: usize = 1 << 16, in 1..=1 << 30, unit "lookups",
            from SearchBudget("the offsets that are compared for one job");
        /// Lookups that count as one search node.
        solver_lookups_per_node: usize = 1 << 11, in 1..=1 << 30, unit "lookups",
            from SearchBudget("the work of one search node");
        /// The lower bound of excess compares pairs among up to this many jobs.
        solver_max_paired_jobs: usize = 32, in 0..=1_000, unit "jobs",
            from SearchBudget("the table of pairs");
        /// The lower bound of excess gives prices to this many jobs on a link, those that send most.
        pricing_max_jobs: usize = 12, in 0..=20, unit "jobs",
            from SearchBudget("the sets of jobs on a link, which double with each job");
        /// Steps of the ascent that finds prices.
        pricing_steps: u32 = 300, in 0..=100_000, unit "steps",
            from SearchBudget("the ascent to good prices");
        /// Length of the first step of that ascent; later steps are shorter.
        pricing_stride: f64 = 0.2, in 0.0..=1.0, unit "of a link",
            from SearchBudget("the ascent to good prices");
        /// Sets of jobs that count as one search node.
        pricing_sets_per_node: u64 = 1 << 11, in 1..=1 << 30, unit "sets of jobs",
            from SearchBudget("the work of one search node");
        /// Bursts are moved to the middle of their free space among up to this many jobs.
        spread_max_jobs: usize = 64, in 0..=1_000, unit "jobs",
            from SearchBudget("the jobs whose offsets are centred");
        /// Rounds in which each job is moved to the middle; each halves what is uneven between neighbours.
        spread_rounds: usize = 6, in 0..=100, unit "rounds",
            from SearchBudget("the centring of offsets; six rounds suffice for noise of a percent");

        /// Positions on the circle of one period, five degrees each.
        circle_steps: u64 = 72, in 1..=3_600, unit "positions",
            from Decision(10);
        /// Periods on a circle are whole multiples of this.
        circle_period_grain: Duration = Duration::from_millis(1), in Duration(1_000)..=Duration::SECOND, unit "time",
            from Decision(10);
        /// A circle is cut after this many of the longest periods.
        max_circle_periods: u64 = 12, in 1..=1_000, unit "periods",
            from Decision(10);
        /// Rounds in which each job may take a better position on the circle.
        circle_rounds: usize = 3, in 0..=100, unit "rounds",
            from Decision(10);
        /// Positions on a circle are improved in rounds among up to this many jobs.
        max_jobs_for_circle_rounds: usize = 32, in 0..=1_000, unit "jobs",
            from SearchBudget("the jobs whose positions are improved");
    }
}
