//! Where a member finds itself: what its environment says.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::task::Notes;

/// What a member is told by whoever starts it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub job: String,
    pub member: String,
    pub attempt: u32,
    /// Which of `peers` it is.
    pub rank: usize,
    /// All members; servers first, where there are any.
    pub peers: Vec<SocketAddr>,
    pub servers: usize,
    /// The node of each of them; members of one node reduce among themselves before anything leaves it.
    pub nodes: Vec<String>,
    /// Where its turn and its size are said.
    pub folder: Option<PathBuf>,
    pub checkpoints: Option<PathBuf>,
    /// Where it is noted how long each iteration took.
    pub record: Option<PathBuf>,
    /// Where progress is told, and the word that opens that door.
    pub socket: Option<PathBuf>,
    pub token: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("`{name}` is `{value}`, which is not {what}")]
    Unreadable { name: &'static str, value: String, what: &'static str },
    #[error("`METRONOME_RANK` is {rank}, but `METRONOME_PEERS` names {peers} members")]
    NobodyOfThatRank { rank: usize, peers: usize },
    #[error("`METRONOME_NODES` names {nodes} nodes for {peers} members")]
    Nodes { nodes: usize, peers: usize },
    #[error("all {0} members are servers: somebody has to work")]
    NoWorkers(usize),
}

impl Place {
    /// As the variables say; whoever is told nothing is alone.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, PlaceError> {
        let number = |name: &'static str| -> Result<usize, PlaceError> {
            let Some(value) = variable(name) else { return Ok(0) };
            let unreadable =
                |_| PlaceError::Unreadable { name, value: value.clone(), what: "a whole number" };
            value.parse().map_err(unreadable)
        };
        let peers = list(variable("METRONOME_PEERS").as_deref());
        let address = |value: &String| {
            let unreadable = |_| PlaceError::Unreadable {
                name: "METRONOME_PEERS",
                value: value.clone(),
                what: "an address with a port",
            };
            value.parse::<SocketAddr>().map_err(unreadable)
        };
        let place = Self {
            job: variable("METRONOME_JOB").unwrap_or_default(),
            member: variable("METRONOME_MEMBER").unwrap_or_default(),
            attempt: number("METRONOME_ATTEMPT")? as u32,
            rank: number("METRONOME_RANK")?,
            peers: peers.iter().map(address).collect::<Result<_, _>>()?,
            servers: number("METRONOME_SERVERS")?,
            nodes: list(variable("METRONOME_NODES").as_deref()),
            folder: variable("METRONOME_DIR").map(PathBuf::from),
            checkpoints: variable("METRONOME_CHECKPOINT_DIR").map(PathBuf::from),
            record: variable("METRONOME_RECORD").map(PathBuf::from),
            socket: variable("METRONOME_SOCKET").map(PathBuf::from),
            token: variable("METRONOME_TOKEN"),
        };
        place.checked()
    }

    fn checked(self) -> Result<Self, PlaceError> {
        let (rank, peers, nodes) = (self.rank, self.peers.len(), self.nodes.len());
        if rank >= peers.max(1) {
            return Err(PlaceError::NobodyOfThatRank { rank, peers });
        }
        if nodes != 0 && nodes != peers {
            return Err(PlaceError::Nodes { nodes, peers });
        }
        if self.servers > 0 && self.servers >= peers {
            return Err(PlaceError::NoWorkers(peers));
        }
        Ok(self)
    }

    /// Who waits for the job's turn, saves and tells of progress: the first who works.
    pub(crate) fn leads(&self) -> bool {
        self.rank == self.servers
    }

    /// Where it is noted when bytes of the leader came in: by who hears them, on a ring.
    pub(crate) fn trace(&self, notes: Notes) -> Option<PathBuf> {
        let hears_the_leader = self.servers == 0 && self.ring().get(1) == Some(&self.rank);
        let record = self.record.as_ref().filter(|_| hears_the_leader && notes == Notes::Bytes)?;
        Some(record.with_file_name("heard.csv"))
    }

    pub(crate) fn is_server(&self) -> bool {
        self.rank < self.servers
    }

    /// The first member on each node, in order of rank, and so on the ring.
    pub(crate) fn ring(&self) -> Vec<usize> {
        (0..self.peers.len()).filter(|rank| self.head_of(*rank) == *rank).collect()
    }

    /// The first member on the node of a member.
    pub(crate) fn head_of(&self, rank: usize) -> usize {
        let Some(node) = self.nodes.get(rank) else { return rank };
        self.nodes.iter().position(|other| other == node).unwrap_or(rank)
    }

    /// The other members on the node of a head.
    pub(crate) fn followers_of(&self, head: usize) -> Vec<usize> {
        (0..self.peers.len()).filter(|rank| *rank != head && self.head_of(*rank) == head).collect()
    }
}

fn list(text: Option<&str>) -> Vec<String> {
    let items = text.unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Place, PlaceError> {
        Place::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn whoever_is_told_nothing_is_alone_and_leads() {
        let place = read(&[]).unwrap();
        assert!(place.leads() && place.peers.is_empty());
    }

    #[test]
    fn of_members_on_one_node_the_first_is_on_the_ring() {
        let peers = "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1,10.0.0.4:1";
        let place =
            read(&[("METRONOME_PEERS", peers), ("METRONOME_NODES", "a,a,b,b"), ("METRONOME_RANK", "3")])
                .unwrap();
        assert_eq!((place.ring(), place.head_of(3), place.followers_of(0)), (vec![0, 2], 2, vec![1]));
        assert!(!place.leads());
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let said = |variables: &[(&str, &str)]| read(variables).unwrap_err().to_string();
        assert_eq!(said(&[("METRONOME_RANK", "x")]), "`METRONOME_RANK` is `x`, which is not a whole number");
        assert_eq!(
            said(&[("METRONOME_RANK", "1")]),
            "`METRONOME_RANK` is 1, but `METRONOME_PEERS` names 0 members"
        );
        assert_eq!(
            said(&[("METRONOME_PEERS", "here")]),
            "`METRONOME_PEERS` is `here`, which is not an address with a port"
        );
        let two = ("METRONOME_PEERS", "10.0.0.1:1,10.0.0.2:1");
        assert_eq!(said(&[two, ("METRONOME_NODES", "a")]), "`METRONOME_NODES` names 1 nodes for 2 members");
        assert_eq!(
            said(&[two, ("METRONOME_SERVERS", "2")]),
            "all 2 members are servers: somebody has to work"
        );
    }
}
