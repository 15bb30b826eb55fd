//! The node's end of the wire by which a pod is connected: what it carries is what the pod sends and receives.
//!
//! A pod's `eth0` says which interface is at its other end, and that one says the same of `eth0`. Both must agree: numbers
//! of interfaces are counted anew in each pod.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The interface of a pod that matters, by the convention of all who connect pods.
const OF_PODS: &str = "eth0";

/// A number has no more digits.
const LONGEST: u64 = 32;

/// The name of the interface on the node at whose other end a process's `eth0` is. Nothing where it shares the network of
/// its node, or is connected in another way than by a pair of virtual interfaces.
pub fn node_side(proc: &Path, interfaces: &Path, process: u32) -> Option<String> {
    let of = proc.join(process.to_string());
    let network = |of: &Path| fs::read_link(of.join("ns/net")).ok();
    if network(&of)? == network(&proc.join("self"))? {
        return None;
    }
    let own = of.join("root/sys/class/net").join(OF_PODS);
    let (index, peer) = (number(&own.join("ifindex"))?, number(&own.join("iflink"))?);
    let entries = fs::read_dir(interfaces).ok()?.flatten();
    let is_it =
        |at: &Path| number(&at.join("ifindex")) == Some(peer) && number(&at.join("iflink")) == Some(index);
    let mut found =
        entries.filter(|entry| is_it(&entry.path())).filter_map(|entry| entry.file_name().into_string().ok());
    found.next().filter(|name| is_name(name))
}

/// A name as the kernel takes it, which may stand in a command.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=15).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('-')
}

fn number(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Node(tempfile::TempDir);

    impl Node {
        /// The one who looks is in the node's own network.
        fn new() -> Self {
            let node = Self(tempfile::tempdir().unwrap());
            node.process("self", "net:[1]", None);
            node
        }

        fn process(&self, name: &str, network: &str, eth0: Option<(u32, u32)>) {
            let of = self.0.path().join("proc").join(name);
            fs::create_dir_all(of.join("ns")).unwrap();
            symlink(network, of.join("ns/net")).unwrap();
            if let Some(numbers) = eth0 {
                write(&of.join("root/sys/class/net/eth0"), numbers);
            }
        }

        fn interface(&self, name: &str, numbers: (u32, u32)) {
            write(&self.0.path().join("net").join(name), numbers);
        }

        fn side_of(&self, process: u32) -> Option<String> {
            node_side(&self.0.path().join("proc"), &self.0.path().join("net"), process)
        }
    }

    fn write(folder: &Path, (index, link): (u32, u32)) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("ifindex"), format!("{index}\n")).unwrap();
        fs::write(folder.join("iflink"), format!("{link}\n")).unwrap();
    }

    #[test]
    fn both_ends_say_the_same() {
        let node = Node::new();
        node.interface("lo", (1, 1));
        node.interface("eth0", (2, 2));
        node.interface("veth4f", (41, 2));
        node.interface("veth7c", (42, 3));
        node.process("100", "net:[7]", Some((2, 41)));
        node.process("200", "net:[8]", Some((3, 42)));
        assert_eq!(node.side_of(100).as_deref(), Some("veth4f"));
        assert_eq!(node.side_of(200).as_deref(), Some("veth7c"));
    }

    #[test]
    fn who_has_no_wire_of_its_own_has_none() {
        let node = Node::new();
        node.interface("veth4f", (41, 2));
        node.process("100", "net:[1]", Some((2, 41)));
        assert_eq!(node.side_of(100), None, "it is in the network of its node");
        node.process("200", "net:[7]", None);
        assert_eq!(node.side_of(200), None, "it has no eth0");
        node.process("300", "net:[8]", Some((9, 41)));
        assert_eq!(node.side_of(300), None, "the other end says otherwise");
        node.process("400", "net:[9]", Some((5, 5)));
        assert_eq!(node.side_of(400), None, "it is the end of nothing");
        assert_eq!(node.side_of(500), None, "there is no such process");
    }

    #[test]
    fn a_name_that_could_be_an_option_is_none() {
        for (name, is_one) in
            [("veth4f", true), ("cali@1", true), ("-force", false), ("a b", false), ("", false)]
        {
            assert_eq!(is_name(name), is_one, "{name}");
        }
    }
}
