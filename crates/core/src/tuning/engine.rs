//! Entries of the room `engine`.

use super::room::room;

room! {
    /// Numbers that the room `engine` reads.
    EngineTuning {}
}
