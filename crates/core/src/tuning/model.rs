//! Entries of the room `model`.

use super::room::room;

room! {
    /// Numbers that the room `model` reads.
    ModelTuning {}
}
