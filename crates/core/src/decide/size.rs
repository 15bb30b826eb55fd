//! How many members each role gets. Fixed: the least its gang asks for, whatever room is left.

use crate::job::Gang;

/// A rule that gives each gang its size.
pub(super) type Sizes = fn(Gang) -> u32;

pub(super) fn fixed() -> Sizes {
    Gang::min
}
