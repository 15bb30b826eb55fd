//! Doors by which members report: a socket in a volume of their own pod, behind which is the agent's. So no pod needs a
//! folder of its node, and each has a line of its own that others cannot take up.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// How the socket is called in the volume.
const SOCKET: &str = "socket";

/// So many may speak at the same time by one door; the others wait for the kernel to let them in.
const AT_ONCE: usize = 4;

/// Every user of a pod may report.
const FOR_ALL: u32 = 0o666;

#[derive(Debug)]
pub(super) struct Doors {
    /// The agent's own socket.
    behind: PathBuf,
    open: BTreeMap<Arc<str>, Door>,
}

#[derive(Debug)]
struct Door {
    socket: PathBuf,
    porter: JoinHandle<()>,
}

impl Doors {
    pub(super) fn new(behind: PathBuf) -> Self {
        Self { behind, open: BTreeMap::new() }
    }

    /// One door in each of these folders, and no others. A folder that is not there yet is looked for again next time.
    pub(super) fn keep(&mut self, folders: &BTreeMap<Arc<str>, PathBuf>) {
        self.open.retain(|uid, door| folders.contains_key(uid) && !door.porter.is_finished());
        for (uid, folder) in folders {
            if self.open.contains_key(uid) || !folder.is_dir() {
                continue;
            }
            match Door::open(folder, &self.behind) {
                Ok(door) => drop(self.open.insert(uid.clone(), door)),
                Err(error) => tracing::debug!(%uid, %error, "a pod has no door to report by"),
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }
}

impl Door {
    /// Whatever is in its place is a pod's own, or left by an agent before.
    fn open(folder: &Path, behind: &Path) -> io::Result<Self> {
        let socket = folder.join(SOCKET);
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&socket)?;
        let_all_in(&socket)?;
        let porter = tokio::spawn(admit(listener, behind.to_path_buf()));
        Ok(Self { socket, porter })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.porter.abort();
        // With its pod the folder is gone, too.
        let _ = fs::remove_file(&self.socket);
    }
}

/// The folder is a pod's, which may put something else in the place of what we made: only a socket is changed, and no link
/// is followed.
fn let_all_in(socket: &Path) -> io::Result<()> {
    let held = rustix::fs::open(socket, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) != FileType::Socket {
        return Err(io::Error::other("somebody has put something else in its place"));
    }
    let very_one = format!("/proc/self/fd/{}", held.as_raw_fd());
    fs::set_permissions(very_one, fs::Permissions::from_mode(FOR_ALL))
}

async fn admit(listener: UnixListener, behind: PathBuf) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((mut outside, _)) = listener.accept().await else { return };
        let behind = behind.clone();
        tokio::spawn(async move {
            // While the agent is not there nobody listens; who reports is used to that.
            if let Ok(mut inside) = UnixStream::connect(&behind).await {
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Somebody behind the door who says what it heard.
    fn agent(at: &Path) -> JoinHandle<()> {
        let listener = UnixListener::bind(at).unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut heard = [0; 5];
                stream.read_exact(&mut heard).await.unwrap();
                stream.write_all(&heard).await.unwrap();
            }
        })
    }

    async fn says_back(socket: &Path) -> io::Result<String> {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(b"hello").await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        Ok(said)
    }

    #[tokio::test]
    async fn a_pod_speaks_to_the_agent_by_its_own_door() {
        let folder = tempfile::tempdir().unwrap();
        let (behind, volume) = (folder.path().join("agent"), folder.path().join("volume"));
        let _agent = agent(&behind);
        let mut doors = Doors::new(behind);
        let wanted = BTreeMap::from([("u".into(), volume.clone())]);
        doors.keep(&wanted);
        assert_eq!(doors.count(), 0, "its volume is not there yet");
        fs::create_dir(&volume).unwrap();
        fs::write(volume.join(SOCKET), "left behind").unwrap();
        doors.keep(&wanted);
        doors.keep(&wanted);
        let socket = volume.join(SOCKET);
        assert_eq!(says_back(&socket).await.unwrap(), "hello");
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, FOR_ALL);
        doors.keep(&BTreeMap::new());
        assert!(!socket.exists(), "it goes with its pod");
    }

    #[test]
    fn nothing_but_a_socket_is_opened_to_all() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, link) = (folder.path().join("secret"), folder.path().join("link"));
        fs::write(&secret, "").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert!(let_all_in(&secret).is_err());
        assert!(let_all_in(&link).is_err());
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
