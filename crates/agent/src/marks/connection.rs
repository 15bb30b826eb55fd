//! A connection of another process, borrowed for as long as it takes to set its mark.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::fstat;
use rustix::net::{AddressFamily, SocketType, getpeername, sockopt};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use super::Mark;

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    family: AddressFamily,
}

#[derive(Debug)]
pub(super) enum Found {
    Connected(Connection),
    /// It may become a connection.
    Unconnected,
    /// It never will.
    Other,
}

impl Connection {
    /// None where the descriptor is another by now, or may not be borrowed.
    pub(super) fn borrow(process: BorrowedFd<'_>, descriptor: i32, inode: u64) -> Option<Found> {
        let socket = pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()?;
        if fstat(&socket).ok()?.st_ino != inode {
            return None;
        }
        let family = sockopt::socket_domain(&socket).ok()?;
        let is_stream = sockopt::socket_type(&socket).ok()? == SocketType::STREAM;
        if !is_stream || ![AddressFamily::INET, AddressFamily::INET6].contains(&family) {
            return Some(Found::Other);
        }
        let is_connected = getpeername(&socket).is_ok_and(|peer| peer.is_some());
        Some(if is_connected { Found::Connected(Self { socket, family }) } else { Found::Unconnected })
    }

    /// A socket of version 6 may send packets of version 4, and has a mark for each.
    pub(super) fn mark(&self) -> io::Result<Mark> {
        const OF_CONGESTION: u8 = 0b11;
        let byte = match self.family {
            AddressFamily::INET6 => match sockopt::ipv6_tclass(&self.socket)? {
                0 => sockopt::ip_tos(&self.socket).unwrap_or(0),
                byte => byte as u8,
            },
            _ => sockopt::ip_tos(&self.socket)?,
        };
        Ok(Mark(byte & !OF_CONGESTION))
    }

    pub(super) fn set(&self, mark: Mark) -> io::Result<()> {
        let of_version_4 = sockopt::set_ip_tos(&self.socket, mark.0);
        match self.family {
            AddressFamily::INET6 => Ok(sockopt::set_ipv6_tclass(&self.socket, mark.0.into())?),
            _ => Ok(of_version_4?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    fn borrow(socket: &(impl AsFd + AsRawFd)) -> Option<Found> {
        let ourselves = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let inode = fstat(socket).unwrap().st_ino;
        Connection::borrow(ourselves.as_fd(), socket.as_raw_fd(), inode)
    }

    #[test]
    fn connections_of_both_versions_and_of_one_in_the_other_are_marked_on_the_wire_they_use() {
        for (listens, connects) in
            [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "::ffff:127.0.0.1"), ("::1", "::1")]
        {
            let Ok(listener) = TcpListener::bind((listens, 0)) else { continue };
            let stream = TcpStream::connect((connects, listener.local_addr().unwrap().port())).unwrap();
            let Some(Found::Connected(connection)) = borrow(&stream) else { panic!("{connects}") };
            assert_eq!(connection.mark().unwrap(), Mark::NONE);
            connection.set(Mark(0x60)).unwrap();
            assert_eq!(connection.mark().unwrap(), Mark(0x60));
            let on_the_wire = match listens {
                "::1" => sockopt::ipv6_tclass(&stream).unwrap(),
                _ => u32::from(sockopt::ip_tos(&stream).unwrap()),
            };
            assert_eq!(on_the_wire, 0x60, "{connects}");
            connection.set(Mark::NONE).unwrap();
            assert_eq!(connection.mark().unwrap(), Mark::NONE);
        }
    }

    #[test]
    fn what_is_no_connection_is_told_from_what_may_become_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(matches!(borrow(&listener), Some(Found::Unconnected)));
        assert!(matches!(borrow(&UdpSocket::bind("127.0.0.1:0").unwrap()), Some(Found::Other)));
        let ourselves = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let another = Connection::borrow(ourselves.as_fd(), listener.as_raw_fd(), 1);
        assert!(another.is_none(), "the descriptor is another by now");
    }
}
