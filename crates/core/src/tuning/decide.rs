//! Entries of the room `decide`.

use super::Origin::{Decision, Judgement, Published, SearchBudget};
use super::room::room;
use crate::model::units::{Duration, Share};

room! {
    /// Numbers that the room `decide` reads.
    DecideTuning {
        /// Weight of the user's priority in the combined priority.
        user_weight: Share = Share(300_000), in Share::NONE..=Share::WHOLE, unit "of the combined priority", from Decision(8);
        /// Weight of the job's own priority in the combined priority.
        task_weight: Share = Share(230_000), in Share::NONE..=Share::WHOLE, unit "of the combined priority", from Decision(8);
        /// Weight of the waiting time in the combined priority.
        wait_weight: Share = Share(60_000), in Share::NONE..=Share(500_000), unit "of the combined priority", from Decision(8);
        /// Weight of the size of the job in the combined priority.
        width_weight: Share = Share(30_000), in Share::NONE..=Share::WHOLE, unit "of the combined priority", from Decision(8);
        /// Weight of a short estimated duration in the combined priority.
        brevity_weight: Share = Share(380_000), in Share::NONE..=Share::WHOLE, unit "of the combined priority", from Decision(8);
        /// Waiting time after which the combined priority of a job of unknown duration grows without bound.
        aging_window: Duration = Duration(30 * Duration::MINUTE.0), in Duration::SECOND..=Duration(1_000_000 * Duration::HOUR.0), unit "waiting time", from Decision(8);
        /// Waiting counts in full after this many times the duration of the job.
        wait_lengths_in_full: u64 = 3, in 1..=1000, unit "times its own duration",
            from Decision(8);
        /// The combined priority of a job grows without bound after it waited this many times its duration.
        wait_lengths_per_window: u64 = 14, in 1..=1000, unit "times its own duration",
            from Decision(8);
        /// The aging window divided by this is the shortest wait that counts in full, however short the job.
        shortest_wait_window_part: u64 = 10, in 1..=1000, unit "parts of the aging window",
            from Decision(8);
        /// The most jobs that have a reservation at once.
        max_reservations: usize = 4, in 0..=1000, unit "jobs",
            from Decision(8);
        /// A job that cannot be suspended gets a reservation once it has waited this many times its duration.
        min_wait_before_reservation: u64 = 3, in 0..=1000, unit "times its own duration",
            from Decision(8);
        /// A job that has waited this many times its duration is exempt from preemption within its queue, and may get a reservation if it can be suspended.
        min_wait_before_exemption: u64 = 30, in 1..=100_000, unit "times its own duration",
            from Decision(8);
        /// A job of no higher priority is evicted for gain if it has more service left than this.
        min_preemption_gain: u128 = 15, in 10..=10_000, unit "tenths of the service of the beneficiary and the disturbance",
            from Decision(8);
        /// Searches for the time from which a job fits, where counting members does not tell.
        max_reservation_tries: usize = 16, in 1..=100_000, unit "places searched",
            from SearchBudget("how often a place is searched as running jobs end, for one reservation");
        /// The shortest remaining time that is expected of a job that is not known to end earlier.
        least_expected_duration: Duration = Duration(10 * Duration::MINUTE.0), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "remaining time",
            from Judgement("short against most training jobs; a job of unknown length is expected to run as long again as it has");
        /// Jobs that one decision starts; the next decision goes on from there.
        max_starts_per_decision: usize = 10_000, in 1..=1_000_000, unit "jobs",
            from SearchBudget("waiting jobs that one decision starts");
        /// Jobs for which one decision evicts others; the next decision goes on from there.
        max_beneficiaries_per_decision: usize = 16, in 1..=1_000_000, unit "jobs",
            from SearchBudget("waiting jobs for which one decision evicts others");
        /// With at most this many unplaced jobs, running jobs are scanned linearly instead of building the victim index.
        linear_scan_max_requesters: usize = 4, in 0..=1_000_000, unit "jobs",
            from SearchBudget("waiting jobs for which running jobs are scanned without an index");
        /// A decision gives up preemption after this many searches that found too few victims.
        max_vain_preemption_searches: usize = 100, in 1..=1_000_000, unit "searches",
            from SearchBudget("searches for victims that find too few, each over all nodes");
        /// A decision gives up preemption once this many nodes were searched for places that were not worth taking on links.
        max_nodes_searched_in_vain: usize = 50_000, in 1..=1_000_000_000, unit "nodes",
            from SearchBudget("nodes that are searched for places which are then not worth taking");
        /// Preemption goes on until this many places were not worth taking, however many nodes were searched.
        min_rejected_places: usize = 8, in 1..=1_000_000, unit "places",
            from SearchBudget("places that are judged however large the cluster is");
        /// Victims are chosen anew this often where those chosen share a disruption budget that allows fewer.
        max_victim_choices: usize = 8, in 1..=1_000_000, unit "choices",
            from SearchBudget("choices of victims that break a shared disruption budget");
        /// Victims are chosen among the first candidates once there are this many.
        min_victim_candidates: usize = 64, in 1..=1_000_000, unit "jobs",
            from SearchBudget("running jobs among which victims are chosen");
        /// Victims are chosen among the first candidates once these hold this many times what the job needs.
        min_candidate_surplus: u64 = 8, in 1..=1000, unit "times what the job needs",
            from SearchBudget("what candidates hold among which victims are chosen");
        /// A decision gives up reclaiming after this many searches that found too few extra members.
        max_vain_reclaim_searches: usize = 100, in 1..=1_000_000, unit "searches",
            from SearchBudget("searches for extra members that find too few, each over all nodes");
        /// A gang is given another size at most once in this time.
        resize_interval: Duration = Duration(2 * Duration::MINUTE.0), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "time between two sizes",
            from Judgement("a resize costs seconds to minutes, and reports tell within minutes whether it paid");
        /// Another size must save this many times the time that it costs.
        min_resize_gain: u64 = 2, in 1..=1000, unit "times its cost",
            from Judgement("predictions of remaining time are often off by half");
        /// A decision predicts slowdowns of this many flows, each counted as often as it is predicted, and then places without looking at links.
        max_link_predictions: u64 = 20_000, in 0..=1_000_000_000, unit "flows",
            from SearchBudget("flows whose slowdown one decision predicts");
        /// A loss on links up to this part of the remaining time of the job is not worth waiting for.
        negligible_loss_part: f64 = 0.06, in 0.0..=1.0, unit "of the remaining time",
            from Decision(9);
        /// A job waits for a better place while its loss on links exceeds this part of the time until another job leaves.
        min_loss_per_wait: f64 = 0.3, in 0.0..=100.0, unit "of the wait",
            from Decision(9);
        /// A job waits rather than slowing a job of the highest priority by more than this.
        max_slowdown_of_highest_priority: f64 = 1.1, in 1.0..=100.0, unit "times alone",
            from Decision(9);
        /// A job starts at any place after it has waited this many times its duration.
        max_wait_for_place: u64 = 3, in 0..=1000, unit "times its own duration",
            from Decision(9);
        /// A job of the highest priority starts at any place after it has waited this many times its duration.
        max_wait_for_place_of_highest_priority: u64 = 5, in 0..=1000, unit "times its own duration",
            from Judgement("jobs of the highest priority are slowed least, and are served first anyway");
        /// The loss of a job of the highest priority counts this many times that of the lowest, beside the lowest itself, where places are compared.
        extra_loss_weight_of_highest_priority: f64 = 3.0, in 0.0..=1000.0, unit "times the lowest priority",
            from Decision(9);
        /// The duration on links that is assumed of a job without an estimate.
        assumed_training_time: Duration = Duration(10 * Duration::MINUTE.0), in Duration::SECOND..=Duration(1_000 * Duration::HOUR.0), unit "training time",
            from Judgement("the order of a short training job; only jobs without any estimate are concerned");
        /// Places whose bursts are compared by `Slowdowns::Compatible`.
        max_compatible_places: usize = 10, in 1..=10_000, unit "places",
            from Published("CASSINI: ten placement candidates");
        /// A move must save this many times what it costs.
        min_move_gain: f64 = 1.5, in 1.0..=1000.0, unit "times its cost",
            from Decision(9);
        /// A job runs this many times as long as a move takes before it is moved again.
        min_run_between_moves: u64 = 10, in 0..=10_000, unit "times the duration of a move",
            from Decision(9);
        /// Jobs for which one kind of move is searched in a decision.
        max_move_candidates: usize = 16, in 1..=100_000, unit "jobs",
            from SearchBudget("running jobs for which one kind of move is searched in a decision");
        /// No job on the node that a job moves to may take longer than this by the move.
        max_delay_by_move: f64 = 1.1, in 1.0..=100.0, unit "times its time from submission to end",
            from Decision(14);
        /// A node with more jobs than this is left out where moves for cores are searched.
        max_jobs_compared_on_node: usize = 64, in 1..=1_000_000, unit "jobs",
            from SearchBudget("jobs that share the cores of a node from which or to which a job is moved");
        /// Nodes that end last, and nodes that end first, among which a move for cores is searched.
        max_nodes_compared: usize = 16, in 1..=1_000_000, unit "nodes",
            from SearchBudget("nodes from which, and nodes to which, a move for cores is searched");
        /// Policy `specon` evens nodes out once in this many looks at jobs.
        rebalance_interval: u64 = 2, in 1..=10_000, unit "looks",
            from Published("SpeCon: nodes are evened out now and then");
        /// Waiting gangs for which one decision searches moves.
        max_gangs_defragmented: usize = 2, in 0..=10_000, unit "jobs",
            from Decision(15);
        /// Moves for waiting gangs are searched once in this time.
        defragmentation_interval: Duration = Duration::MINUTE, in Duration::SECOND..=Duration(1_000 * Duration::HOUR.0), unit "time between two searches",
            from Decision(15);
        /// Running jobs that are moved for one waiting gang.
        max_moves_per_gang: usize = 4, in 1..=10_000, unit "jobs",
            from Decision(15);
        /// Domains in which moves for one gang are tried, those first in which they cost least.
        max_domains_defragmented: usize = 4, in 1..=1_000_000, unit "domains",
            from SearchBudget("domains in which moves for one gang are tried");
        /// Steps that are tried beyond those that amounts ask for, where a gang does not fit for another reason.
        further_defragmentation_steps: usize = 3, in 0..=1_000_000, unit "steps",
            from SearchBudget("steps of moves beyond those that amounts of resources ask for");
        /// Jobs on one node that are counted as movable for a waiting gang, those first that cost least.
        max_movers_on_node: usize = 16, in 1..=1_000_000, unit "jobs",
            from SearchBudget("jobs on one node that are counted as movable");
        /// A job that alone takes this part of what all jobs on its node take together goes first.
        critical_part: f64 = 0.9, in 0.0..=1.0, unit "of the time until all are done",
            from Judgement("a job this near to the longest decides when all are done");
        /// A job goes first that would end this much later than all jobs on its node take together if it went last.
        max_later_for_short_jobs: f64 = 1.1, in 1.0..=100.0, unit "times the time until all are done",
            from Judgement("the same tenth as `max_delay_by_move`");
        /// The confidence in the remaining work of a job that has not reported.
        confidence_without_evidence: Share = Share(100_000), in Share::NONE..=Share::WHOLE, unit "of a certain prediction",
            from Judgement("a job of which nothing is known gets a little more than the default weight, so that it shows what it does");
        /// The time on its own cores that is assumed of a job where no job on shared cores is known.
        assumed_core_time: Duration = Duration(5 * Duration::MINUTE.0), in Duration::SECOND..=Duration(1_000 * Duration::HOUR.0), unit "time on its own cores",
            from Judgement("the order of the jobs in the measurements of SpeCon; only nodes without any known job are concerned");
        /// Domains of one level in which a gang is tried before wider ones.
        max_scopes_per_level: usize = 16, in 1..=1_000_000, unit "domains",
            from SearchBudget("domains of one level in which a gang is tried");
        /// The roomiest domains of which every pair is compared on links.
        max_paired_domains: usize = 6, in 0..=10_000, unit "domains",
            from SearchBudget("domains of which every pair is compared on links");
        /// Domains of one level that are compared on links.
        max_compared_domains: usize = 32, in 1..=1_000_000, unit "domains",
            from SearchBudget("domains of one level that are compared on links");
        /// Nodes that the exact search for parameter servers and workers looks at.
        max_exact_nodes: usize = 64, in 1..=1_000_000, unit "nodes",
            from SearchBudget("nodes that the exact search for servers and workers looks at");
        /// Steps of the exact search for parameter servers and workers; it looks at fewer nodes where they would take more.
        max_exact_steps: usize = 1 << 18, in 1..=1_000_000_000, unit "steps",
            from SearchBudget("nodes, ways to load one and states: below a millisecond");
        /// The commonest requests for which GPUs left over on a node are counted.
        max_fragmentation_requests: usize = 64, in 1..=1_000_000, unit "requests",
            from SearchBudget("requests for which the GPUs left over on a node are counted");
        /// A change of its traffic policy is counted as this pause of a running job.
        traffic_change_cost: Duration = Duration::from_millis(100), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "pause of a running job",
            from Decision(11);
        /// A job keeps a traffic policy that was changed for this time, unless it does harm.
        min_time_between_traffic_changes: Duration = Duration::from_secs(2), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "time",
            from Decision(11);
        /// The period divided by this is how far a job may begin from its phase offset before it is held again.
        tolerated_drift_part: u64 = 20, in 1..=10_000, unit "parts of the period",
            from Published("CASSINI: drift beyond a twentieth of the iteration is adjusted");
        /// A job that has drifted is held again at most once in this time.
        min_time_between_adjustments: Duration = Duration::from_secs(30), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "time",
            from Published("CASSINI: adjustments at most twice a minute");
        /// A pool divided by this is kept from new bookings for jobs without deadlines.
        best_effort_part: u64 = 10, in 1..=1_000_000, unit "parts of a pool",
            from Decision(13);
        /// The work left of a job with a deadline counts this many times less where free capacity is shared with jobs without one.
        deadline_slack_weight: u64 = 10, in 1..=1_000_000, unit "times less",
            from Decision(13);
        /// The work left of a running job counts this many times less where free capacity is shared with bookings.
        running_weight: u64 = 2, in 1..=1_000_000, unit "times less",
            from Decision(13);
        /// Waiting jobs of one class that are compared with bookings.
        max_best_effort_per_class: usize = 200, in 1..=1_000_000, unit "jobs",
            from SearchBudget("waiting jobs of one class that are compared with bookings");
        /// Waiting jobs that are compared with bookings.
        max_best_effort_jobs: usize = 5_000, in 1..=1_000_000, unit "jobs",
            from SearchBudget("waiting jobs that are compared with bookings");
        /// A job that is resized in place gets no more than it uses to this part.
        well_used_part: u64 = 950_000, in 0..=1_000_000, unit "millionths",
            from Decision(13);
        /// A running job with a booking gets more members at most once in this time.
        booked_resize_interval: Duration = Duration(2 * Duration::MINUTE.0), in Duration::ZERO..=Duration(1_000 * Duration::HOUR.0), unit "time between two sizes",
            from Decision(13);
        /// Bookings that may grow in one decision.
        max_growing_bookings: usize = 1_000, in 1..=1_000_000, unit "jobs",
            from SearchBudget("bookings that may grow in one decision");
        /// Bookings that are compared with each other when they grow, those first that are due first.
        max_compared_bookings: usize = 500, in 1..=1_000_000, unit "jobs",
            from SearchBudget("bookings that are compared with each other when they grow");
        /// Jobs without a booking that are tried again in one decision, the cheapest first.
        max_bookings_retried: usize = 10, in 0..=1_000_000, unit "jobs",
            from Decision(13);
        /// Bookings that one decision makes before it books no job anew for the sake of another.
        max_bookings_per_decision: usize = 12_000, in 1..=1_000_000_000, unit "bookings",
            from SearchBudget("bookings that one decision makes before it books no job anew for another");
        /// Jobs that leave for one booking.
        max_evictions_per_booking: usize = 1_000, in 1..=1_000_000, unit "jobs",
            from SearchBudget("jobs that leave for one booking");
        /// Kinds of jobs that have a pool of their own; further kinds take from the pool of all nodes.
        max_pool_kinds: usize = 64, in 0..=1_000_000, unit "kinds",
            from SearchBudget("sets of nodes that have a pool of their own");
        /// Sizes of a gang without a declared or measured scaling that are booked.
        max_booked_sizes: u32 = 32, in 1..=100_000, unit "sizes",
            from SearchBudget("sizes of a gang that are booked");
    }
}
