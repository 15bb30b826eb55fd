//! A connection to another member: numbers go out and come in as the wire takes them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::exchange::Broken;

/// Bytes that are taken from the wire at once.
const MOUTHFUL: usize = 64 * 1024;

/// One number of a gradient, as bytes.
pub(crate) const NUMBER: usize = size_of::<f32>();

#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    scratch: Vec<u8>,
    /// Bytes in `scratch` that are not a whole number yet.
    rest: usize,
}

/// What is done with numbers that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hears {
    /// They are a part of the sum.
    ToAdd,
    /// They are the sum.
    ToKeep,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, scratch: vec![0; MOUTHFUL], rest: 0 }
    }

    /// How many of these bytes went out; none, if the wire is full.
    pub(crate) fn give(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        loop {
            match self.stream.write(bytes) {
                Ok(0) if !bytes.is_empty() => return Err(Broken::Gone),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The same of bytes that are to travel with those that follow at once: in a packet of their own they would cost more
    /// than they are.
    pub(crate) fn give_ahead(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        loop {
            match send(&self.stream, bytes, SendFlags::MORE | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Broken::Wire(error.into())),
            }
        }
    }

    /// How many bytes came in; nothing, if the wire is empty.
    pub(crate) fn take(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, Broken> {
        loop {
            match self.stream.read(bytes) {
                Ok(0) => return Err(Broken::Gone),
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How many numbers came in, at the beginning of what they belong to; nothing, if the wire is empty.
    pub(crate) fn hear(&mut self, own: &mut [f32], how: Hears) -> Result<Option<usize>, Broken> {
        let most = (own.len() * NUMBER).min(MOUTHFUL);
        let mut scratch = std::mem::take(&mut self.scratch);
        let taken = self.take(&mut scratch[self.rest..most]);
        self.scratch = scratch;
        let Some(count) = taken? else { return Ok(None) };
        let count = self.rest + count;
        let whole = count / NUMBER * NUMBER;
        for (own, heard) in own.iter_mut().zip(self.scratch[..whole].chunks_exact(NUMBER)) {
            let heard = f32::from_le_bytes(heard.try_into().expect("as many bytes as a number has"));
            *own = if how == Hears::ToAdd { *own + heard } else { heard };
        }
        self.scratch.copy_within(whole..count, 0);
        self.rest = count - whole;
        Ok(Some(whole / NUMBER))
    }

    /// To be told when numbers can go out or come in, or, where nobody waits for them, that the other has left.
    pub(crate) fn waits_for(&self, gives: bool, hears: bool) -> PollFd<'_> {
        let mut flags = PollFlags::RDHUP;
        flags.set(PollFlags::OUT, gives);
        flags.set(PollFlags::IN, hears);
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }
}

/// Numbers as they go out. All machines of a cluster have the same order of bytes, the usual one.
pub(crate) fn as_bytes(numbers: &[f32]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

/// How far a stream of buckets has come, in bytes of the present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    pub(crate) bucket: usize,
    pub(crate) bytes: usize,
}

impl Cursor {
    /// So many bytes further, in a bucket of which so many go over the wire.
    pub(crate) fn advance(&mut self, bytes: usize, whole: usize) {
        self.bytes += bytes;
        if self.bytes >= whole {
            *self = Self { bucket: self.bucket + 1, bytes: 0 };
        }
    }
}
