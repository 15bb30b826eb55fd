//! Entries of the room `deadlines`.

use super::room::room;

room! {
    /// Numbers that the room `deadlines` reads.
    DeadlinesTuning {}
}
