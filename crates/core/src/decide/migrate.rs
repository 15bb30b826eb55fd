//! What is worth moving, shrinking or slowing. Without progress and traffic to go by, nothing is: the identity.

use super::draft::Draft;

pub(super) fn migrate(_draft: &mut Draft<'_>) {}
