//! Byte counters of members, read every few milliseconds.
//!
//! `/proc/net/dev` has the counters of all interfaces of a namespace, and an open file of it stays with the namespace in
//! which it was opened. So a namespace is entered once, and a look costs one or two reads for all members of a node.

mod net_dev;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::members::Direction;
use crate::namespace;

/// The counters of one namespace.
#[derive(Debug)]
pub struct Counters {
    pub netns: PathBuf,
    file: File,
    text: Vec<u8>,
    /// What is looked for, in the order of their names.
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    interface: String,
    direction: Direction,
    /// Whose it is.
    slot: usize,
}

/// What the two counters of an interface say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// In the direction that is watched.
    pub watched: u64,
    pub opposite: u64,
}

impl Bytes {
    fn of(direction: Direction, received: u64, sent: u64) -> Self {
        match direction {
            Direction::Received => Self { watched: received, opposite: sent },
            Direction::Sent => Self { watched: sent, opposite: received },
        }
    }
}

impl Counters {
    pub fn open(netns: &Path) -> io::Result<Self> {
        let file = namespace::within(netns, || File::open("/proc/thread-self/net/dev"))?;
        Ok(Self { netns: netns.to_owned(), file, text: vec![0; 16 << 10], watched: Vec::new() })
    }

    /// The counters of the namespace that this thread is in.
    pub fn of_this_namespace() -> io::Result<Self> {
        let file = File::open("/proc/thread-self/net/dev")?;
        Ok(Self { netns: PathBuf::new(), file, text: vec![0; 16 << 10], watched: Vec::new() })
    }

    /// What is read from now on: interfaces, and the slots in which their bytes are put.
    pub fn watch(&mut self, interfaces: impl IntoIterator<Item = (String, Direction, usize)>) {
        let watched = |(interface, direction, slot)| Watched { interface, direction, slot };
        self.watched = interfaces.into_iter().map(watched).collect();
        self.watched.sort_by(|one, other| one.interface.cmp(&other.interface));
    }

    /// Tells the bytes of each interface that is watched and there.
    pub fn read(&mut self, mut tell: impl FnMut(usize, Bytes)) -> io::Result<()> {
        let length = self.fill()?;
        for line in net_dev::lines(&self.text[..length]) {
            let found =
                self.watched.binary_search_by(|watched| watched.interface.as_bytes().cmp(line.interface));
            if let Ok(found) = found {
                let watched = &self.watched[found];
                if let Some((received, sent)) = line.received().zip(line.sent()) {
                    tell(watched.slot, Bytes::of(watched.direction, received, sent));
                }
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.text.len() {
                self.text.resize(2 * length, 0);
            }
            match self.file.read_at(&mut self.text[length..], length as u64)? {
                0 => return Ok(length),
                count => length += count,
            }
        }
    }
}
