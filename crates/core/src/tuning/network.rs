//! Entries of the room `network`.
//!
//! There are none. Classes, weights and the floor of a class are those of HTB, on which worlds and decisions must agree;
//! sizes of caches and of recordings change the time and the memory of a simulation, not its result; tolerances are
//! those of floating-point arithmetic.

use super::room::room;

room! {
    /// Numbers that the room `network` reads.
    NetworkTuning {}
}
