//! Questions to a running scheduler.

use metronome_core::engine::State;
use serde_json::Value;

use crate::failure::Failure;

/// What it has to say about a job.
pub(crate) fn explain(server: &str, job: &str) -> Result<Value, Failure> {
    ask::explain(server, job)
}

/// All that it knows.
pub(crate) fn state(server: &str) -> Result<State, Failure> {
    ask::state(server)
}

#[cfg(not(feature = "kubernetes"))]
mod ask {
    use super::{Failure, State, Value};

    pub(super) fn explain(server: &str, _: &str) -> Result<Value, Failure> {
        Err(cannot(server))
    }

    pub(super) fn state(server: &str) -> Result<State, Failure> {
        Err(cannot(server))
    }

    fn cannot(server: &str) -> Failure {
        let failure = Failure::input(format!("ask {server}: this binary was built without `kubernetes`"));
        failure.hint("cargo build --release -p metronome-cli --features kubernetes")
    }
}

#[cfg(feature = "kubernetes")]
mod ask {
    use metronome_kubernetes::ask::{self, AskError};

    use super::{Failure, State, Value};

    pub(super) fn explain(server: &str, job: &str) -> Result<Value, Failure> {
        answer(ask::explain(server, job))
    }

    pub(super) fn state(server: &str) -> Result<State, Failure> {
        answer(ask::state(server))
    }

    fn answer<T>(asked: impl Future<Output = Result<T, AskError>>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::world("start a thread").because(&error))?;
        runtime.block_on(asked).map_err(|error| Failure::from_world(&error))
    }
}
