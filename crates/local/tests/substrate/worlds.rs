//! Clusters and worlds for tests. A world's name carries the process's number, and whatever becomes of the test, its
//! namespaces, groups and folder are removed.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::units::Bandwidth;
use metronome_local::cleanup;
use metronome_local::names::WorldName;
use metronome_local::rights::Rights;
use metronome_local::state::WorldFolder;

/// A world of a test; it goes when this does.
#[derive(Debug)]
pub(crate) struct TestWorld {
    pub(crate) name: WorldName,
    pub(crate) root: tempfile::TempDir,
}

impl TestWorld {
    /// Nothing where the rights to make hosts are missing.
    pub(crate) fn with_network() -> Option<Self> {
        let rights = Rights::look();
        if !rights.network {
            metronome_skip::skip(format_args!("{:?}", rights.missing));
            return None;
        }
        Some(Self::new())
    }

    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = WorldName::new(&format!("t{}x{count}", std::process::id())).unwrap();
        Self { name, root: tempfile::tempdir().unwrap() }
    }

    /// Its folder, held until it is dropped.
    pub(crate) fn open(&self) -> WorldFolder {
        WorldFolder::open(self.root(), &self.name).unwrap()
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for TestWorld {
    fn drop(&mut self) {
        if let Err(error) = cleanup::clean(self.root.path(), &self.name) {
            eprintln!("cannot clean {}: cannot {error}", self.name);
        }
    }
}

/// Nodes `node-0` and so on, each in the rack that is said, joined as a tree.
pub(crate) fn tree(racks: &[&str], rack_rate: Bandwidth, node_rate: Bandwidth) -> Cluster {
    let mut cluster = Cluster::new(&["rack"]).unwrap();
    for (at, rack) in racks.iter().enumerate() {
        let name = format!("node-{at}");
        cluster.add_node(&NodeSpec { name, domains: vec![(*rack).into()], ..NodeSpec::default() }).unwrap();
    }
    cluster.connect_as_tree(&[rack_rate, node_rate]).unwrap();
    cluster
}

pub(crate) const fn mbit(rate: u64) -> Bandwidth {
    Bandwidth(rate * 1_000_000)
}
