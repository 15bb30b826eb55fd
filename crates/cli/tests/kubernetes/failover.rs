//! Two replicas; the leader is killed, or frozen past its lease, in the middle of binding a gang, again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use metronome_testcluster::proxy::{Fault, Proxy, Rule, Verb};
use metronome_testcluster::{Corner, shared};
use serde_json::Value;

use crate::replica::Replica;

const ROUNDS: usize = 50;
const MEMBERS: u32 = 8;

/// Every placement that was ever recorded for each gang: the seats as `pod@node`.
type Placements = BTreeMap<String, BTreeSet<BTreeSet<String>>>;

async fn record(client: Client, namespace: String, placements: Arc<Mutex<Placements>>) {
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let mut events = watcher(maps, watcher::Config::default().labels("metronome.dev/intent")).boxed();
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(map) | Event::InitApply(map)) = event else { continue };
        for text in map.data.iter().flat_map(BTreeMap::values) {
            let Ok(intent) = serde_json::from_str::<Value>(text) else { continue };
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let seat = |seat: &Value| format!("{}@{}", word(&seat["pod"]["name"]), word(&seat["node"]));
            let seats = intent["seats"].as_array().into_iter().flatten().map(seat).collect();
            placements.lock().unwrap().entry(word(&intent["gang"])).or_default().insert(seats);
        }
    }
}

async fn leader(corner: &Corner) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(corner.client.clone(), &corner.namespace);
    leases.get_opt("metronome").await.unwrap()?.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leads_next_completes_what_was_begun() {
    let Some(plane) = shared().await else { return };
    let corner = Corner::new(plane, "failover", 6).await;
    let proxy = Proxy::start(plane, 1).await.unwrap();
    // Slow enough that a gang is caught half bound.
    let slow = Fault::Delay(Duration::from_millis(5)..=Duration::from_millis(150));
    proxy.inject(Rule::new(slow).on([Verb::Create]).of("pods/binding"));
    let placements = Arc::<Mutex<Placements>>::default();
    let recorder = tokio::spawn(record(corner.client.clone(), corner.namespace.clone(), placements.clone()));
    let start = |identity: &str| Replica::start(proxy.kubeconfig_path(), &corner.namespace, identity);
    let mut replicas = vec![start("r0"), start("r1")];
    let begin = Instant::now();
    let mut caught_half_bound = 0;
    for round in 0..ROUNDS {
        let name = format!("g{round}");
        corner.create(corner.gang(&name, MEMBERS, 1)).await;
        let of_gang = async |corner: &Corner| {
            let prefix = format!("{name}-");
            corner
                .seats()
                .await
                .into_iter()
                .filter(|(pod, _)| pod.starts_with(&prefix))
                .collect::<BTreeMap<_, _>>()
        };
        corner
            .until("the first member is bound", async |corner| {
                (!of_gang(corner).await.is_empty()).then_some(())
            })
            .await;
        let holder = leader(&corner).await.unwrap();
        let at = replicas.iter().position(|replica| replica.identity() == holder).unwrap();
        let frozen = round % 2 == 1;
        if frozen {
            replicas[at].freeze();
        } else {
            replicas.remove(at).kill();
        }
        let bound = of_gang(&corner).await.len();
        caught_half_bound += usize::from(bound < MEMBERS as usize);
        if frozen {
            tokio::time::sleep(Duration::from_millis(1700)).await;
        } else {
            replicas.push(start(&format!("r{}", round + 2)));
        }
        let whole = corner
            .until("the gang is whole", async |corner| {
                let seats = of_gang(corner).await;
                (seats.len() == MEMBERS as usize).then_some(seats)
            })
            .await;
        if frozen {
            replicas[at].thaw();
        }
        let seats: BTreeSet<String> = whole.iter().map(|(pod, node)| format!("{pod}@{node}")).collect();
        let recorded = corner
            .until("the placement was recorded", async |_| {
                let gang = format!("label/{}/{name}", corner.namespace);
                placements.lock().unwrap().get(&gang).filter(|all| all.contains(&seats)).cloned()
            })
            .await;
        assert_eq!(recorded.len(), 1, "one plan for one gang: {recorded:?}");
        let all = ((round + 1) * MEMBERS as usize) as u64;
        let running = corner.kubelets.until(|counts| counts.started >= all);
        tokio::time::timeout(Duration::from_secs(30), running).await.expect("the whole gang runs");
        for pod in whole.keys() {
            corner.delete(pod).await;
        }
    }
    corner.until("no intent is left", async |corner| (corner.intents().await == 0).then_some(())).await;
    eprintln!(
        "{ROUNDS} leaders lost in {:?}, {caught_half_bound} of them with a gang half bound",
        begin.elapsed()
    );
    assert!(caught_half_bound > ROUNDS / 4, "only {caught_half_bound} gangs were caught half bound");
    assert_eq!(
        corner.kubelets.counts().started,
        (ROUNDS * MEMBERS as usize) as u64,
        "no pod was lost or run twice"
    );
    corner.judge();
    recorder.abort();
}
