//! What the part of the agent that measures and enforces is handed, as a file that it looks at: who is there, where what
//! each sends is counted, and what each may do.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;
use serde_json::Value;

/// The name of the file in the agent's folder.
const FILE: &str = "members.json";

/// The network that the agent itself is in: its node's.
const OWN_NETWORK: &str = "/proc/self/ns/net";

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Handed {
    pub members: Vec<HandedMember>,
    pub ports: Vec<Port>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandedMember {
    pub job: String,
    pub member: String,
    /// Whoever says this reports for it.
    pub token: String,
    /// A folder for its turn; kubelets put that into pods themselves.
    pub dir: Option<PathBuf>,
    pub counters: Option<Counters>,
    pub freezer: Option<PathBuf>,
    pub leads: bool,
    pub turn: Option<Value>,
    pub gate: &'static str,
    pub address: Option<String>,
}

/// Where bytes are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counters {
    netns: &'static str,
    interface: String,
    /// Of the node's end of the pair: what is delivered to the pod has passed the queues of the links.
    direction: &'static str,
}

impl Counters {
    pub fn on_node(interface: String) -> Self {
        Self { netns: OWN_NETWORK, interface, direction: "sent" }
    }
}

/// A link on which classes are enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    netns: &'static str,
    device: String,
    rate_bps: u64,
    crossed_by: Vec<String>,
}

impl Port {
    pub fn of_node(device: &str, rate_bps: u64, crossed_by: Vec<String>) -> Self {
        Self { netns: OWN_NETWORK, device: device.to_owned(), rate_bps, crossed_by }
    }
}

impl Handed {
    /// Whole or not at all: whoever looks sees this or what was there before.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let aside = folder.join(format!("{FILE}.new"));
        let mut file = fs::File::create(&aside)?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        file.sync_data()?;
        fs::rename(aside, folder.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_handed_over_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let member = HandedMember {
            job: "team-a/bert".into(),
            member: "worker-0".into(),
            token: "u0".into(),
            dir: None,
            counters: Some(Counters::on_node("veth4f".into())),
            freezer: None,
            leads: true,
            turn: Some(json!({"generation": 3})),
            gate: "none",
            address: Some("10.0.0.7".into()),
        };
        let port = Port::of_node("eth0", 100_000_000_000, vec!["team-a/bert".into()]);
        let handed = Handed { members: vec![member], ports: vec![port] };
        Handed::default().write(folder.path()).unwrap();
        handed.write(folder.path()).unwrap();
        let read: Value = serde_json::from_slice(&fs::read(folder.path().join(FILE)).unwrap()).unwrap();
        assert_eq!(
            read["members"][0]["counters"],
            json!({"netns": OWN_NETWORK, "interface": "veth4f", "direction": "sent"})
        );
        assert_eq!(read["members"][0]["turn"], json!({"generation": 3}));
        assert_eq!(read["ports"][0]["crossed_by"], json!(["team-a/bert"]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies beside it");
    }
}
