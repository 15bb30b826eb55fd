//! Where on the node each member is: found once, and looked for again until it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use metronome_core::model::units::Bandwidth;

use super::Roots;
use super::handed::{Counters, Handed, HandedMember, Port};
use super::members::{Gate, Member, VOLUME};
use super::{cgroups, interfaces};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seat {
    cgroup: Option<PathBuf>,
    interface: Option<String>,
}

#[derive(Debug)]
pub(super) struct Seats {
    roots: Roots,
    known: BTreeMap<Arc<str>, Seat>,
}

impl Seats {
    pub(super) fn new(roots: Roots) -> Self {
        Self { roots, known: BTreeMap::new() }
    }

    pub(super) fn find(&mut self, members: &BTreeMap<Arc<str>, Member>) {
        self.known.retain(|uid, _| members.contains_key(uid));
        for (uid, member) in members {
            let seat = self.known.entry(uid.clone()).or_default();
            if seat.cgroup.as_ref().is_none_or(|folder| !folder.is_dir()) {
                seat.cgroup = cgroups::folder_of_pod(&self.roots.cgroups, uid);
            }
            // Who shares the network of its node has no wire of its own.
            if seat.interface.is_none() && !member.is_of_node {
                seat.interface = seat.cgroup.as_deref().and_then(|folder| {
                    let Roots { processes, interfaces, .. } = &self.roots;
                    let mut all = cgroups::processes(folder).into_iter();
                    all.find_map(|process| interfaces::node_side(processes, interfaces, process))
                });
            }
        }
    }

    /// The volumes in which pods look for a door to report by.
    pub(super) fn volumes(&self, members: &BTreeMap<Arc<str>, Member>) -> BTreeMap<Arc<str>, PathBuf> {
        let listen = members.iter().filter(|(_, member)| member.listens);
        let below =
            |uid: &str| self.roots.pods.join(uid).join("volumes/kubernetes.io~empty-dir").join(VOLUME);
        listen.map(|(uid, _)| (uid.clone(), below(uid))).collect()
    }

    pub(super) fn handed(
        &self,
        members: &BTreeMap<Arc<str>, Member>,
        uplink: Option<&(String, Bandwidth)>,
    ) -> Handed {
        let twice = self.claimed_twice();
        let name = |member: &Member| (member.job.clone(), member.name.clone());
        let names = several(members.values().map(name));
        let handed = members.iter().filter(|(_, member)| !names.contains(&name(member)));
        let handed = handed.map(|(uid, member)| {
            let seat = self.known.get(uid).cloned().unwrap_or_default();
            let interface = seat.interface.filter(|name| !twice.contains(name));
            HandedMember {
                job: member.job.clone(),
                member: member.name.clone(),
                token: uid.to_string(),
                dir: None,
                counters: interface.map(Counters::on_node),
                gate: match (member.gate, &seat.cgroup) {
                    (Gate::Freeze, Some(_)) => "freeze",
                    _ => "none",
                },
                freezer: seat.cgroup,
                leads: member.leads,
                turn: member.turn.clone(),
                address: member.address.clone(),
            }
        });
        let jobs: BTreeSet<String> = members.values().map(|member| member.job.clone()).collect();
        let port =
            |(device, rate): &(String, Bandwidth)| Port::of_node(device, rate.0, jobs.into_iter().collect());
        Handed { members: handed.collect(), ports: uplink.map(port).into_iter().collect() }
    }

    /// Two pods have no wire in common: one of them says what is not so, and nobody knows which.
    fn claimed_twice(&self) -> BTreeSet<String> {
        several(self.known.values().filter_map(|seat| seat.interface.clone()))
    }
}

/// What comes more than once. Labels are anybody's to write: two pods may say that they are the same member of a job.
fn several<T: Ord + Clone>(all: impl Iterator<Item = T>) -> BTreeSet<T> {
    let mut once = BTreeSet::new();
    all.filter(|one| !once.insert(one.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn member(uid: &str, gate: Gate) -> Member {
        Member {
            uid: uid.into(),
            namespace: "a".into(),
            pod: uid.into(),
            job: format!("a/job-{uid}"),
            name: "worker-0".into(),
            leads: true,
            turn: None,
            gate,
            address: Some("10.0.0.1".into()),
            is_of_node: false,
            listens: true,
        }
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A node on which one pod runs as one process, connected to one interface.
    fn node(root: &Path) -> Roots {
        let roots = Roots {
            processes: root.join("proc"),
            interfaces: root.join("net"),
            cgroups: root.join("cgroup"),
            pods: root.join("pods"),
        };
        write(&roots.cgroups.join("cgroup.controllers"), "");
        for (process, network) in [("self", "net:[1]"), ("7", "net:[2]")] {
            fs::create_dir_all(roots.processes.join(process).join("ns")).unwrap();
            symlink(network, roots.processes.join(process).join("ns/net")).unwrap();
        }
        write(&roots.processes.join("7/root/sys/class/net/eth0/ifindex"), "2");
        write(&roots.processes.join("7/root/sys/class/net/eth0/iflink"), "41");
        write(&roots.interfaces.join("veth4f/ifindex"), "41");
        write(&roots.interfaces.join("veth4f/iflink"), "2");
        roots
    }

    #[test]
    fn a_member_is_looked_for_until_it_is_found() {
        let root = tempfile::tempdir().unwrap();
        let roots = node(root.path());
        let members = BTreeMap::from([("u1".into(), member("u1", Gate::Freeze))]);
        let mut seats = Seats::new(roots.clone());
        seats.find(&members);
        let handed = seats.handed(&members, None);
        assert_eq!((handed.members[0].counters.as_ref(), handed.members[0].gate), (None, "none"));
        write(&roots.cgroups.join("kubepods/podu1/c/cgroup.procs"), "7\n");
        seats.find(&members);
        let handed = seats.handed(&members, Some(&("eth0".to_owned(), Bandwidth(1000))));
        let found = &handed.members[0];
        assert_eq!(found.counters, Some(Counters::on_node("veth4f".into())));
        assert_eq!((found.gate, &found.freezer), ("freeze", &Some(roots.cgroups.join("kubepods/podu1"))));
        assert_eq!(handed.ports, [Port::of_node("eth0", 1000, vec!["a/job-u1".into()])]);
        assert_eq!(
            seats.volumes(&members)["u1"],
            roots.pods.join("u1/volumes/kubernetes.io~empty-dir/metronome")
        );
        seats.find(&BTreeMap::new());
        assert!(seats.known.is_empty());
    }

    #[test]
    fn a_wire_that_two_pods_claim_is_neithers() {
        let root = tempfile::tempdir().unwrap();
        let roots = node(root.path());
        let members = ["u1", "u2"].map(|uid| (Arc::from(uid), member(uid, Gate::Own)));
        let members = BTreeMap::from(members);
        for uid in ["u1", "u2"] {
            write(&roots.cgroups.join(format!("kubepods/pod{uid}/c/cgroup.procs")), "7\n");
        }
        let mut seats = Seats::new(roots);
        seats.find(&members);
        assert!(seats.handed(&members, None).members.iter().all(|member| member.counters.is_none()));
    }

    #[test]
    fn two_who_say_that_they_are_the_same_are_neither() {
        let root = tempfile::tempdir().unwrap();
        let mut members = BTreeMap::new();
        for (uid, job) in [("u1", "a/same"), ("u2", "a/same"), ("u3", "a/other")] {
            members.insert(uid.into(), Member { job: job.into(), ..member(uid, Gate::Own) });
        }
        let seats = Seats::new(node(root.path()));
        let handed = seats.handed(&members, None).members;
        assert_eq!(handed.iter().map(|member| &*member.token).collect::<Vec<_>>(), ["u3"]);
    }
}
