//! When each job may use the shared links. Nothing here is known of traffic yet, so everybody sends when they like:
//! the identity.

use super::draft::Draft;

pub(super) fn interleave(_draft: &mut Draft<'_>) {}
