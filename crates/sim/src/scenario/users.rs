//! Whose jobs are drawn.

use metronome_core::model::cluster::Name;
use metronome_core::model::id::QueueId;
use metronome_core::model::units::Share;
use rand::Rng;

/// Somebody with a share of the jobs.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) name: Option<Name>,
    pub(crate) share: Share,
    pub(crate) queue: QueueId,
    /// How much they count in that queue.
    pub(crate) standing: Share,
}

/// Their shares sum to the whole.
#[derive(Clone, Debug)]
pub(crate) struct Owners(pub(crate) Vec<Owner>);

impl Owners {
    pub(crate) fn draw(&self, random: &mut impl Rng) -> &Owner {
        let mut part = random.next_u32() % Share::WHOLE.0;
        for owner in &self.0 {
            match part.checked_sub(owner.share.0) {
                Some(rest) => part = rest,
                None => return owner,
            }
        }
        self.0.last().expect("somebody owns the jobs")
    }
}
