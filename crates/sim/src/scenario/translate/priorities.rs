//! Shares of the priorities, as written.

use metronome_core::model::units::Share;
use serde_saphyr::Spanned;

use crate::scenario::documents::PrioritiesShape;
use crate::scenario::error::Problem;
use crate::scenario::priorities::Priorities;
use crate::scenario::values::{Placed, Text, share};

pub(super) fn priorities(written: Option<&Spanned<PrioritiesShape>>) -> Result<Priorities, Problem> {
    let Some(written) = written else { return Ok(Priorities::default()) };
    let PrioritiesShape { high, normal, low } = &written.value;
    let part = |text: &Option<Text>| text.as_ref().map_or(Ok(Share::NONE), share);
    let (high, normal, low) = (part(high)?, part(normal)?, part(low)?);
    let sum = high.0 + normal.0 + low.0;
    if sum != Share::WHOLE.0 {
        let sum = f64::from(sum) / f64::from(Share::WHOLE.0);
        return Err(written.problem(format!("the priorities sum to {sum} instead of 1")));
    }
    Ok(Priorities { high, normal })
}
