//! Ports that were free a moment ago.

use std::io;
use std::net::TcpListener;

#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) api_server: u16,
    pub(super) controller_manager: u16,
    pub(super) scheduler: u16,
}

impl Ports {
    /// Chosen by the kernel. All are held until the last is known, so that no two are the same; another process may
    /// still take one before its program does, and then the control plane is started again with others.
    pub(super) fn choose() -> io::Result<Self> {
        let listen = || TcpListener::bind(("127.0.0.1", 0));
        let held = [listen()?, listen()?, listen()?, listen()?];
        let port = |at: usize| held[at].local_addr().map(|address| address.port());
        Ok(Self { etcd: port(0)?, api_server: port(1)?, controller_manager: port(2)?, scheduler: port(3)? })
    }
}
