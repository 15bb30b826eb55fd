//! How members find each other: each listens at its own address, and calls those it sends to.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::place::Place;

/// Members are started together, but not at the same moment, and some machines are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const BETWEEN_CALLS: Duration = Duration::from_millis(20);

/// What a caller says first: who it is, and of which start of which job. Whoever is left over from another start is not
/// one of us.
const GREETING: usize = 24;

#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    #[error("cannot listen at {at}")]
    Listen { at: SocketAddr, source: io::Error },
    #[error("member {rank} at {at} did not answer within {} seconds", PATIENCE.as_secs())]
    NoAnswer { rank: usize, at: SocketAddr, source: io::Error },
    #[error("members {ranks:?} did not call within {} seconds", PATIENCE.as_secs())]
    NoCall { ranks: Vec<usize> },
    #[error("a connection cannot be set up")]
    Socket(#[from] io::Error),
}

#[derive(Debug)]
pub(crate) struct Meeting<'a> {
    place: &'a Place,
    listener: TcpListener,
    until: Instant,
}

impl<'a> Meeting<'a> {
    pub(crate) fn open(place: &'a Place) -> Result<Self, MeetingError> {
        let at = place.peers[place.rank];
        let listener = TcpListener::bind(at).map_err(|source| MeetingError::Listen { at, source })?;
        listener.set_nonblocking(true)?;
        Ok(Self { place, listener, until: Instant::now() + PATIENCE })
    }

    /// Connections to some members, whom this one calls.
    pub(crate) fn call(&self, ranks: &[usize]) -> Result<Vec<TcpStream>, MeetingError> {
        ranks.iter().map(|rank| self.call_one(*rank)).collect()
    }

    fn call_one(&self, rank: usize) -> Result<TcpStream, MeetingError> {
        let at = self.place.peers[rank];
        loop {
            let called = TcpStream::connect_timeout(&at, Duration::from_secs(5)).and_then(|mut stream| {
                stream.write_all(&self.greeting(self.place.rank))?;
                settled(stream)
            });
            match called {
                Ok(stream) => return Ok(stream),
                Err(source) if Instant::now() >= self.until => {
                    return Err(MeetingError::NoAnswer { rank, at, source });
                }
                Err(_) => std::thread::sleep(BETWEEN_CALLS),
            }
        }
    }

    /// Connections from some members, who call this one. Whoever else calls is hung up on.
    pub(crate) fn await_calls(&self, ranks: &[usize]) -> Result<Vec<TcpStream>, MeetingError> {
        let mut came: Vec<Option<TcpStream>> = ranks.iter().map(|_| None).collect();
        while came.iter().any(Option::is_none) {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    if let Some(rank) = self.greeted_by(&mut stream)
                        && let Some(at) = ranks.iter().position(|expected| *expected == rank)
                    {
                        came[at] = Some(settled(stream)?);
                    }
                }
                Err(_) if Instant::now() < self.until => std::thread::sleep(BETWEEN_CALLS),
                Err(_) => {
                    let missing = ranks.iter().zip(&came).filter(|(_, came)| came.is_none());
                    return Err(MeetingError::NoCall { ranks: missing.map(|(rank, _)| *rank).collect() });
                }
            }
        }
        Ok(came.into_iter().flatten().collect())
    }

    fn greeting(&self, rank: usize) -> [u8; GREETING] {
        let mut words = [0; GREETING];
        words[..8].copy_from_slice(b"mtrtrain");
        words[8..12].copy_from_slice(&(rank as u32).to_le_bytes());
        words[12..16].copy_from_slice(&self.place.attempt.to_le_bytes());
        words[16..].copy_from_slice(&fingerprint(self.place.job.as_bytes()).to_le_bytes());
        words
    }

    fn greeted_by(&self, stream: &mut TcpStream) -> Option<usize> {
        let mut words = [0; GREETING];
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        stream.read_exact(&mut words).ok()?;
        let rank = u32::from_le_bytes(words[8..12].try_into().expect("four bytes")) as usize;
        (words == self.greeting(rank)).then_some(rank)
    }
}

/// Nothing waits to be sent in company, and nobody waits for a slow wire.
fn settled(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    SockRef::from(&stream).set_keepalive(true)?;
    Ok(stream)
}

fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |mixed, byte| (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
