//! Entries of the room `observe`.

use super::room::room;

room! {
    /// Numbers that the room `observe` reads.
    ObserveTuning {}
}
