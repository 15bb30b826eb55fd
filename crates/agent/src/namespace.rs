//! Work in the network namespace of a node or a pod, on a thread of its own: a thread that has entered one is good for
//! nothing else. What is opened or started there stays there.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Does something inside the namespace that a file names, such as `/run/netns/node-0`.
pub fn within<T: Send>(netns: &Path, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let inside = || {
        let file = File::open(netns)?;
        // To stay where one is takes no rights.
        if file.metadata()?.ino() == std::fs::metadata("/proc/thread-self/ns/net")?.ino() {
            return work();
        }
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    std::thread::scope(|scope| {
        let done = scope.spawn(inside).join();
        done.unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace has panicked")))
    })
}
