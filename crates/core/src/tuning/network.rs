//! Entries of the room `network`.

use super::room::room;

room! {
    /// Numbers that the room `network` reads.
    NetworkTuning {}
}
