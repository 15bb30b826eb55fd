//! Entries of the room `model`.

use super::Origin::Decision;
use super::room::room;
use crate::model::units::{Duration, Share};

room! {
    /// Numbers that the room `model` reads.
    ModelTuning {
        /// Cores of a job without GPUs are idle while it uses less than this part of them.
        idle_cores_below: Share = Share(800_000), in Share(0)..=Share::WHOLE, unit "of its cores",
            from Decision(13);
        /// A job that uses this part of its cores may need more.
        busy_cores_from: Share = Share(950_000), in Share(0)..=Share::WHOLE, unit "of its cores",
            from Decision(13);
        /// A job with idle cores keeps as many that it uses this part of them at its peak.
        needed_cores_usage: Share = Share(900_000), in Share(10_000)..=Share::WHOLE, unit "of its cores",
            from Decision(13);
        /// Cores are given back after they were idle for this long.
        min_idle_time: Duration = Duration::from_secs(120), in Duration::ZERO..=Duration::from_secs(86_400), unit "time",
            from Decision(13);
    }
}
