//! Entries of the room `observe`.

use super::Origin::{Decision, Judgement, Published, SearchBudget};
use super::room::room;
use crate::model::units::{Duration, Share};

room! {
    /// Numbers that the room `observe` reads.
    ObserveTuning {
        /// A failed member counts against its node for this long, and a node is avoided for as long.
        failure_window: Duration = Duration::HOUR, in Duration::SECOND..=Duration::from_secs(30 * 86_400), unit "time",
            from Decision(14);
        /// A node is avoided if members of this many jobs failed on it and on no other node.
        min_failed_jobs: usize = 3, in 1..=1000, unit "jobs",
            from Decision(14);
        /// At most one node in this many is avoided at once, and at most one in this many counts as slow.
        nodes_per_excluded_node: usize = 10, in 1..=1_000_000, unit "nodes",
            from Decision(14);
        /// One node is avoided or counts as slow also in a smaller cluster if it has more nodes than this.
        max_nodes_without_exclusion: usize = 3, in 0..=1_000_000, unit "nodes",
            from Judgement("without one node of three, a third of the capacity would be missing");

        /// Interval at which learning categories, CPU weights and migrations of running jobs are evaluated.
        evaluation_interval: Duration = Duration::from_secs(10), in Duration::from_millis(100)..=Duration::HOUR, unit "time",
            from Decision(14);
        /// Weight of a progressing job when the gains of migrations are added up; a converged job has weight one.
        progressing_weight: f64 = 2.0, in 1.0..=100.0, unit "times",
            from Judgement("the gain of a job that still learns counts twice (decision 0014)");
        /// Weight of a watched job when the gains of migrations are added up.
        watching_weight: f64 = 1.5, in 1.0..=100.0, unit "times",
            from Judgement("half-way between a progressing and a converged job");
        /// A job whose improvement per second lies below this part of the median moves one category down.
        low_learning: f64 = 0.25, in 0.0..=1.0, unit "of the median improvement",
            from Judgement("together with the upper bound a hysteresis; categories only weigh the gains of migrations (decision 0014)");
        /// A job whose improvement per second reaches this part of the median moves one category up.
        high_learning: f64 = 0.5, in 0.0..=1.0, unit "of the median improvement",
            from Judgement("twice the lower bound");
        /// The policy `specon` divides its categories at this improvement per second for the whole CPU capacity of a node.
        specon_learning_bound: f64 = 0.1, in 0.0..=100.0, unit "of the largest metric per second",
            from Published("SpeCon");

        /// A learning curve is fitted through at most this many points.
        max_curve_points: usize = 32, in 8..=10_000, unit "points",
            from Decision(14);
        /// A learning curve needs this many points.
        min_curve_points: usize = 5, in 3..=10_000, unit "points",
            from Judgement("two more than the curve has parameters");
        /// A fit tries this many asymptotes.
        curve_asymptotes: u32 = 12, in 1..=1000, unit "asymptotes",
            from SearchBudget("the linear regressions of one fit");
        /// Each asymptote has this part of the distance of the one before from the lowest point.
        asymptote_ratio: f64 = 0.6, in 0.01..=0.99, unit "of the distance",
            from Judgement("twelve asymptotes then reach 0.2 % of the range of the metric");
        /// A point is left out of a fit if its distance from both neighbours exceeds this many median steps.
        outlier_median_steps: f64 = 8.0, in 1.0..=1e6, unit "median steps",
            from Judgement("noise rarely moves one point by eight median steps and both neighbours by none");
        /// A reported value is an outlier if its step exceeds this many times the widest recent step.
        outlier_widest_steps: f64 = 8.0, in 1.0..=1e6, unit "widest steps",
            from Judgement("a loss that jumps by eight times its widest step is a spike or a jump");
        /// This many outliers in a row are a jump of the metric, and the points before are dropped.
        outliers_of_a_jump: u8 = 3, in 1..=255, unit "reports",
            from Judgement("spikes rarely last for more than two reports");
        /// The last two points lie below the curve for a reason if their distance exceeds this many residuals.
        noise_residuals: f64 = 4.0, in 1.0..=1e6, unit "root mean square residuals",
            from Judgement("beyond three standard deviations of noise");
        /// A curve through this many points has full confidence if it has no residuals.
        full_confidence_points: f64 = 16.0, in 1.0..=10_000.0, unit "points",
            from Judgement("half the points that are kept");
        /// A root mean square residual of one over this part of the metric's fall halves the confidence.
        confidence_residuals: f64 = 8.0, in 0.0..=1e6, unit "residuals",
            from Judgement("residuals of an eighth of the fall leave the asymptote half open");
        /// A prediction is doubted once the job has executed this many times its smallest predicted total.
        doubt_factor: u64 = 2, in 1..=1000, unit "times the predicted total",
            from Decision(14);
        /// A prediction is doubted only after this time beyond that total.
        doubt_margin: Duration = Duration::MINUTE, in Duration::ZERO..=Duration::HOUR, unit "time",
            from Judgement("totals of a few seconds are predicted from a few reports");

        /// A job is stalled after this many of its iterations without a sign of life.
        stall_iterations: u64 = 10, in 1..=1_000_000, unit "iterations",
            from Decision(14);
        /// A job is stalled only after this many gaps between its reports.
        stall_report_gaps: u64 = 3, in 1..=1_000_000, unit "gaps",
            from Decision(14);
        /// A job is stalled only after this silence.
        min_stall_silence: Duration = Duration::MINUTE, in Duration::SECOND..=Duration::from_secs(86_400), unit "time",
            from Decision(14);
        /// A stall is detected only after this many signs of life since the start of a job.
        min_signs_of_life: u32 = 3, in 1..=1000, unit "signs of life",
            from Judgement("three signs of life have two gaps, of which one may be exceptional");
        /// With each shorter gap or iteration, the longest recent one decreases by one over this.
        rhythm_decay: u64 = 8, in 1..=1000, unit "reports",
            from Judgement("a long gap counts for less than half after six reports");

        /// A member is a straggler if it takes longer than its peers by this part.
        straggler_excess: Share = Share(200_000), in Share(0)..=Share::WHOLE, unit "of the peers' time",
            from Decision(14);
        /// A member keeps up with its peers if it takes longer by no more than this part.
        keeps_up_excess: Share = Share(100_000), in Share(0)..=Share::WHOLE, unit "of the peers' time",
            from Judgement("half the bound for stragglers, as hysteresis");
        /// A member is judged after this many consecutive reports on one side of the bound.
        straggler_reports: u32 = 5, in 1..=1000, unit "reports",
            from Decision(14);
        /// A member is judged after this time on one side of the bound.
        straggler_duration: Duration = Duration::MINUTE, in Duration::ZERO..=Duration::from_secs(86_400), unit "time",
            from Decision(14);
        /// The time of a member is the median of this many reports.
        straggler_median_reports: usize = 5, in 1..=1000, unit "reports",
            from Decision(14);
        /// A member serves as a peer after this many reports.
        min_peer_reports: usize = 3, in 1..=1000, unit "reports",
            from Judgement("a median of three reports survives one outlier");
        /// A job that is slow on its next node within this time after it left a slow one is slow for a reason of its own.
        slow_job_window: Duration = Duration::HOUR, in Duration::ZERO..=Duration::from_secs(30 * 86_400), unit "time",
            from Judgement("as long as evidence counts against a node");

        /// A node counts as slow for this long after the last evidence.
        slowness_window: Duration = Duration::HOUR, in Duration::SECOND..=Duration::from_secs(30 * 86_400), unit "time",
            from Decision(14);
        /// This many jobs must be slow on a node if each can only be compared with its own past.
        min_jobs_by_past: usize = 2, in 1..=1000, unit "jobs",
            from Decision(14);

        /// Measured time at one size above which older measurements are halved.
        measurement_halving_time: Duration = Duration::HOUR, in Duration::SECOND..=Duration::from_secs(30 * 86_400), unit "time",
            from Judgement("the speed of a job changes with its data and its neighbours within hours");
        /// Bookings are computed anew if the fitted speed of a job changes by more than this.
        min_scaling_change: Share = Share(30_000), in Share(0)..=Share::WHOLE, unit "of the fitted time",
            from Decision(13);
    }
}
