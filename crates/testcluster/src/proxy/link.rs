//! The line between a client and the API server: open, paused, or cut for a moment.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Paused,
}

#[derive(Debug)]
pub(super) struct Switch {
    flow: watch::Sender<Flow>,
    /// How often all watches have been cut.
    cuts: watch::Sender<u64>,
}

/// What a connection sees of the switch.
#[derive(Debug, Clone)]
pub(super) struct Link {
    flow: watch::Receiver<Flow>,
    cuts: watch::Receiver<u64>,
}

impl Switch {
    pub(super) fn new() -> Self {
        Self { flow: watch::Sender::new(Flow::Open), cuts: watch::Sender::new(0) }
    }

    /// From now on.
    pub(super) fn link(&self) -> Link {
        Link { flow: self.flow.subscribe(), cuts: self.cuts.subscribe() }
    }

    pub(super) fn pause(&self) {
        self.flow.send_replace(Flow::Paused);
    }

    pub(super) fn resume(&self) {
        self.flow.send_replace(Flow::Open);
    }

    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Link {
    /// Waits while everything is paused. Without a switch there is nothing to wait for.
    pub(super) async fn open(&mut self) {
        let _ = self.flow.wait_for(|flow| *flow == Flow::Open).await;
    }

    /// Waits until watches are cut, or for ever.
    pub(super) async fn cut(&mut self) {
        if self.cuts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
