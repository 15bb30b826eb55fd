//! Entries of the room `decide`.

use super::Origin::Decision;
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
    }
}
