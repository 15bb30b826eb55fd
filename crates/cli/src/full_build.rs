//! The full build has the feature `kubernetes`. The default build leaves it out: `demo`, `sim` and `local` do not need
//! it, and it takes most of the build time.

#[cfg(any(test, not(feature = "kubernetes")))]
use crate::failure::Failure;

/// Installs the full build, from the root of the repository.
pub(crate) const INSTALL_COMMAND: &str = "cargo install --path crates/cli --features kubernetes --locked";

/// The end of `metronome --help` in a build that leaves commands out.
#[cfg(not(feature = "kubernetes"))]
pub(crate) fn help_note() -> String {
    format!("Commands marked (not in this build) are in the full build:\n  {INSTALL_COMMAND}")
}

/// The failure of a command or an option that only the full build has; `what` fits after "cannot".
#[cfg(any(test, not(feature = "kubernetes")))]
pub(crate) fn is_needed_to(what: &str) -> Failure {
    let failure = Failure::input(format!("{what}: this build leaves out the commands for clusters"));
    failure.hint(format!("the full build has them: {INSTALL_COMMAND}"))
}
