//! The clock that all machines share.

use std::time::SystemTime;

use metronome_core::model::units::Moment;

pub(crate) fn now() -> Moment {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}
