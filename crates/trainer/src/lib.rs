//! One member of a training job as a real process: it computes for as long as was measured, exchanges real bytes over real
//! TCP, waits for its turn, saves and takes up its work, and tells how far it is.
//!
//! What it computes is worth nothing; when and how much it sends is what counts. Gradients are numbers that are added up
//! for real, so that whoever sends to the wrong place or loses a byte is found out.

mod checkpoint;
mod clock;
mod compute;
mod course;
mod exchange;
mod gate;
mod meet;
mod node;
mod place;
mod record;
mod ring;
mod servers;
mod slices;
mod task;
mod telling;
mod trace;
mod wire;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use course::{Ended, TrainingError, train};
pub use exchange::Broken;
pub use meet::MeetingError;
pub use place::{Place, PlaceError};
pub use task::{Compute, Curve, Notes, Saves, Task};
