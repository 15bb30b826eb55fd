//! Names of a world and of what belongs to it on this machine. They are all derived from the world's name, so whoever
//! cleans up needs to know nothing else.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::{fmt, thread};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use crate::error::{LocalError, Result};

/// Where `ip netns` keeps its namespaces.
pub const NAMESPACES: &str = "/run/netns";

/// The name of a world: small letters and digits. There is no dash in it, so that no world's namespaces look like
/// another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorldName(String);

impl WorldName {
    pub fn new(name: &str) -> Result<Self> {
        let bad = |why| Err(LocalError::Name { name: name.to_owned(), why });
        if name.is_empty() || name.len() > 32 {
            return bad("a world's name has 1 to 32 letters");
        }
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return bad("a world's name consists of small letters and digits");
        }
        Ok(Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the names of all its namespaces begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("mtr-{}-", self.0)
    }

    /// The namespace in which all switches are.
    pub fn fabric_namespace(&self) -> Namespace {
        Namespace(format!("{}fabric", self.prefix()))
    }

    pub fn member_namespace(&self, number: MemberNumber) -> Namespace {
        Namespace(format!("{}{number}", self.prefix()))
    }

    /// The namespace of a node. A node that is called as a member or the fabric is gets another name.
    pub fn host_namespace(&self, node: &str) -> Result<Namespace> {
        check_file_name(node)?;
        let digits = node.strip_prefix('m').unwrap_or("");
        let is_member = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let escape = if is_member || node == "fabric" || node.starts_with("host.") { "host." } else { "" };
        Ok(Namespace(format!("{}{escape}{node}", self.prefix())))
    }
}

impl fmt::Display for WorldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WorldName {
    type Error = LocalError;
    fn try_from(name: String) -> Result<Self> {
        Self::new(&name)
    }
}

impl From<WorldName> for String {
    fn from(name: WorldName) -> Self {
        name.0
    }
}

/// A network namespace by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Namespace(pub(crate) String);

impl Namespace {
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The file by which it is entered.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(NAMESPACES).join(&self.0)
    }

    /// Does something in it, on a thread of its own: one that has gone there does not come back.
    pub fn within<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let path = self.path();
                let file = File::open(&path).map_err(|error| LocalError::file(&path, error))?;
                setns(file, CloneFlags::CLONE_NEWNET)
                    .map_err(|source| LocalError::Namespace { path, source })?;
                Ok(deed())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The number of a member on this machine: of its plug, its address, its group and its folder. Numbers are used again
/// once their member is unplugged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberNumber(pub u32);

impl MemberNumber {
    /// How many members a world may have at a time: each knows the hardware addresses of all others.
    pub const MOST: u32 = 250;

    pub fn address(self) -> Ipv4Addr {
        let [.., high, low] = (self.0 + 1).to_be_bytes();
        Ipv4Addr::new(10, 77, high, low)
    }

    pub(crate) fn hardware_address(self) -> String {
        let [a, b, c, d] = self.address().octets();
        format!("02:4d:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }
}

/// `m3`: the name of its interface on the host, too.
impl fmt::Display for MemberNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// Names of nodes and members become names of files.
pub(crate) fn check_file_name(name: &str) -> Result<()> {
    let bad = |why| Err(LocalError::Name { name: name.to_owned(), why });
    if name.is_empty() || name.len() > 200 {
        return bad("a name has 1 to 200 letters");
    }
    if name.starts_with('.') || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        return bad("a name consists of letters, digits, `-`, `_` and `.`, and does not begin with a dot");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_world_looks_like_another() {
        assert!(WorldName::new("a-b").is_err());
        assert!(WorldName::new("").is_err());
        assert!(WorldName::new("../x").is_err());
        assert_eq!(WorldName::new("demo").unwrap().prefix(), "mtr-demo-");
    }

    #[test]
    fn a_node_that_is_called_as_a_member_is_has_a_namespace_of_its_own() {
        let world = WorldName::new("w").unwrap();
        assert_eq!(world.host_namespace("node-0").unwrap().name(), "mtr-w-node-0");
        assert_eq!(world.host_namespace("m3").unwrap().name(), "mtr-w-host.m3");
        assert_eq!(world.host_namespace("fabric").unwrap().name(), "mtr-w-host.fabric");
        assert_ne!(world.host_namespace("host.m3").unwrap(), world.host_namespace("m3").unwrap());
        assert!(world.host_namespace("a/b").is_err());
    }

    #[test]
    fn every_member_has_its_address() {
        assert_eq!(MemberNumber(0).address(), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(MemberNumber(299).address(), Ipv4Addr::new(10, 77, 1, 44));
        assert_eq!(MemberNumber(MemberNumber::MOST - 1).address(), Ipv4Addr::new(10, 77, 0, 250));
        assert_eq!(MemberNumber(0).hardware_address(), "02:4d:0a:4d:00:01");
    }
}
