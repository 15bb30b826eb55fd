//! Claims, volumes and drivers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Dice, Fixture, HOST, NAMESPACES, ZONE};

const DRIVERS: [&str; 3] = ["plain.example.com", "strict.example.com", "measured.example.com"];

/// Classes and drivers, the same in every scene.
pub(super) fn fixtures() -> Vec<Fixture> {
    let storage = |plural: &str, body: Value| Fixture::new(format!("/apis/storage.k8s.io/v1/{plural}"), body);
    let class = |name: &str, provisioner: &str, mode: &str| json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
    let waits = "WaitForFirstConsumer";
    let mut zoned = class("zoned", DRIVERS[0], waits);
    let zones = json!([{"key": ZONE, "values": ["z1", "z2"]}]);
    zoned["allowedTopologies"] = json!([{"matchLabelExpressions": zones}]);
    let driver = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    vec![
        storage("storageclasses", class("now", DRIVERS[0], "Immediate")),
        storage("storageclasses", class("local", "kubernetes.io/no-provisioner", waits)),
        storage("storageclasses", zoned),
        storage("storageclasses", class("strict", DRIVERS[1], waits)),
        storage("storageclasses", class("measured", DRIVERS[2], waits)),
        storage("csidrivers", driver(DRIVERS[1], json!({"preventPodSchedulingIfMissing": true}))),
        storage("csidrivers", driver(DRIVERS[2], json!({"storageCapacity": true}))),
    ]
}

/// What a claim is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimKind {
    /// Bound to a volume that only some nodes reach.
    Bound,
    /// Bound to a volume with zone labels.
    Zoned,
    /// Bound, and for one pod at a time.
    OnePod,
    /// To be bound to a volume that there is, where the pod goes.
    Open,
    /// To be made where the pod goes.
    Made,
    /// No good.
    Broken,
}

#[derive(Clone, Debug)]
pub(crate) struct DrawnClaim {
    pub(crate) namespace: &'static str,
    pub(crate) name: String,
    pub(crate) kind: ClaimKind,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) fixtures: Vec<Fixture>,
    pub(super) claims: Vec<DrawnClaim>,
    /// Claims that a spare volume is meant for.
    meant: BTreeSet<String>,
}

impl Shelf {
    pub(super) fn draw(dice: &mut Dice, nodes: &[String]) -> Self {
        let mut shelf = Self::default();
        for n in 0..18 {
            shelf.add_claim(dice, n, nodes);
        }
        for n in 0..dice.between(2, 7) {
            shelf.add_spare(dice, n, nodes);
        }
        for name in nodes {
            if dice.percent(75) {
                shelf.fixtures.push(csi_node(dice, name));
            }
        }
        for n in 0..3 {
            shelf.fixtures.push(capacity(dice, n));
        }
        shelf.add_attachments(dice, nodes);
        shelf
    }

    /// Claims that a pod could be running with.
    pub(super) fn usable(&self, namespace: &str) -> Vec<&str> {
        let usable = |claim: &&DrawnClaim| claim.namespace == namespace && claim.kind != ClaimKind::Broken;
        self.claims.iter().filter(usable).map(|claim| claim.name.as_str()).collect()
    }

    fn add_claim(&mut self, dice: &mut Dice, n: u64, nodes: &[String]) {
        use ClaimKind::{Bound, Broken, Made, OnePod, Open, Zoned};
        let namespace = dice.pick(&NAMESPACES);
        let kind = *dice.one_of(&[Bound, Bound, Zoned, OnePod, Open, Open, Made, Made, Broken]);
        let name = format!("claim-{n}");
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
        let mut fixture = Fixture::new(path, claim(&name));
        match kind {
            Bound | Zoned | OnePod => {
                bind(&mut fixture.body, &name);
                self.fixtures.push(volume(dice, namespace, &name, kind, nodes));
            }
            Open => open(dice, &mut fixture.body),
            Made => made(dice, &mut fixture.body, nodes),
            Broken => broken(dice, &mut fixture),
        }
        if kind == OnePod {
            fixture.body["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
        }
        self.fixtures.push(fixture);
        self.claims.push(DrawnClaim { namespace, name, kind });
    }

    /// A volume that waits for a claim. Where two would do equally well, because they are of one size or meant for
    /// the same claim, kube-scheduler takes either, now this and now that: no two are drawn so.
    fn add_spare(&mut self, dice: &mut Dice, n: u64, nodes: &[String]) {
        let gibibytes = *dice.one_of(&[1, 5, 20]);
        let mut body = json!({
            "metadata": {"name": format!("spare-{n}"), "labels": {"speed": dice.pick(&["fast", "slow"])}},
            "spec": {
                "storageClassName": "local",
                "capacity": {"storage": format!("{}Mi", gibibytes * 1024 + n)},
                "accessModes": if dice.percent(80) { json!(["ReadWriteOnce"]) } else { json!(["ReadOnlyMany"]) },
                "hostPath": {"path": "/nowhere"},
            },
        });
        if dice.percent(85) {
            body["spec"]["nodeAffinity"] = affinity(dice, nodes);
        }
        let open = self.claims.iter().filter(|claim| claim.kind == ClaimKind::Open);
        let open: Vec<DrawnClaim> = open.filter(|claim| !self.meant.contains(&claim.name)).cloned().collect();
        if dice.percent(20) && !open.is_empty() {
            let claim = dice.one_of(&open);
            self.meant.insert(claim.name.clone());
            body["spec"]["claimRef"] = json!({"namespace": claim.namespace, "name": claim.name});
        }
        let mut fixture = Fixture::new("/api/v1/persistentvolumes", body);
        fixture.status = dice.percent(90).then(|| json!({"phase": "Available"}));
        self.fixtures.push(fixture);
    }

    fn add_attachments(&mut self, dice: &mut Dice, nodes: &[String]) {
        let bound = self.claims.iter().filter(|claim| claim.kind == ClaimKind::Bound);
        let bound: Vec<String> = bound.map(|claim| claim.name.clone()).collect();
        for (n, claim) in bound.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            let body = json!({"metadata": {"name": format!("attachment-{n}")}, "spec": {
                "attacher": dice.pick(&DRIVERS), "nodeName": dice.one_of(nodes),
                "source": {"persistentVolumeName": claim},
            }});
            self.fixtures.push(Fixture::new("/apis/storage.k8s.io/v1/volumeattachments", body));
        }
    }
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": {"requests": {"storage": "2Gi"}},
    }})
}

fn bind(claim: &mut Value, volume: &str) {
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["spec"]["volumeName"] = volume.into();
}

fn open(dice: &mut Dice, claim: &mut Value) {
    claim["spec"]["storageClassName"] = "local".into();
    claim["spec"]["resources"]["requests"]["storage"] = dice.pick(&["500Mi", "2Gi", "10Gi"]).into();
    if dice.percent(25) {
        claim["spec"]["selector"] = json!({"matchLabels": {"speed": "fast"}});
    }
}

fn made(dice: &mut Dice, claim: &mut Value, nodes: &[String]) {
    claim["spec"]["storageClassName"] = dice.pick(&["zoned", "strict", "measured"]).into();
    if dice.percent(15) {
        let node = dice.one_of(nodes);
        claim["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": node});
    }
}

fn broken(dice: &mut Dice, fixture: &mut Fixture) {
    match dice.between(0, 4) {
        0 => fixture.body["spec"]["storageClassName"] = "now".into(),
        1 => bind(&mut fixture.body, "no-such-volume"),
        2 => fixture.body["spec"]["volumeName"] = "promised".into(),
        3 => {
            fixture.body["spec"]["storageClassName"] = "strict".into();
            fixture.status = Some(json!({"phase": "Lost"}));
        }
        _ => {
            fixture.body["spec"]["storageClassName"] = "zoned".into();
            fixture.body["metadata"]["finalizers"] = json!(["example.com/stay"]);
            fixture.leaving = true;
        }
    }
}

fn volume(dice: &mut Dice, namespace: &str, name: &str, kind: ClaimKind, nodes: &[String]) -> Fixture {
    let mut body = json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": [if kind == ClaimKind::OnePod { "ReadWriteOncePod" } else { "ReadWriteOnce" }],
        "claimRef": {"namespace": namespace, "name": name},
    }});
    if dice.percent(75) {
        body["spec"]["csi"] = json!({"driver": dice.pick(&DRIVERS), "volumeHandle": name});
    } else {
        body["spec"]["hostPath"] = json!({"path": "/nowhere"});
    }
    if kind == ClaimKind::Zoned {
        let key = dice.pick(&[ZONE, "failure-domain.beta.kubernetes.io/zone"]);
        body["metadata"]["labels"] = json!({key: dice.pick(&["z1", "z2", "z1__z3"])});
    } else if dice.percent(80) {
        body["spec"]["nodeAffinity"] = affinity(dice, nodes);
    }
    Fixture::new("/api/v1/persistentvolumes", body)
}

fn affinity(dice: &mut Dice, nodes: &[String]) -> Value {
    let (key, values) = match dice.between(0, 2) {
        0 => (HOST, json!([dice.one_of(nodes), dice.one_of(nodes), dice.one_of(nodes)])),
        1 => (ZONE, json!([dice.pick(&["z1", "z2", "z3"])])),
        _ => ("disk", json!([dice.pick(&["ssd", "hdd"])])),
    };
    let expressions = json!([{"key": key, "operator": "In", "values": values}]);
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}})
}

fn csi_node(dice: &mut Dice, name: &str) -> Fixture {
    let mut drivers = Vec::new();
    for driver in DRIVERS {
        if dice.percent(75) {
            let mut present = json!({"name": driver, "nodeID": name, "topologyKeys": []});
            if dice.percent(70) {
                present["allocatable"] = json!({"count": dice.between(1, 3)});
            }
            drivers.push(present);
        }
    }
    let body = json!({"metadata": {"name": name}, "spec": {"drivers": drivers}});
    Fixture::new("/apis/storage.k8s.io/v1/csinodes", body)
}

fn capacity(dice: &mut Dice, n: u64) -> Fixture {
    let namespace = dice.pick(&NAMESPACES);
    let mut body = json!({
        "metadata": {"name": format!("capacity-{n}")},
        "storageClassName": dice.pick(&["measured", "measured", "zoned"]),
        "capacity": dice.pick(&["1Gi", "100Gi"]),
        "nodeTopology": {"matchLabels": {ZONE: dice.pick(&["z1", "z2", "z3"])}},
    });
    if dice.percent(30) {
        body["maximumVolumeSize"] = dice.pick(&["1Gi", "4Gi"]).into();
    }
    let path = format!("/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities");
    Fixture::new(path, body)
}
