//! A network and an API server as bad as they get: the loop recovers, and nothing that must not happen does.

use std::time::{Duration, Instant};

use metronome_testcluster::control_plane::Shared;
use metronome_testcluster::proxy::{Chance, Fault, Proxy, Rule, Verb};
use metronome_testcluster::{Options, shared};

use crate::scheduler::Scheduled;

const GANGS: usize = 12;
const MEMBERS: u32 = 6;
const SINGLES: usize = 48;

fn bad_weather(proxy: &Proxy) {
    let ms = Duration::from_millis;
    let faults = [
        (Fault::Answer(409), 6),
        (Fault::Busy { retry_after: ms(1000) }, 4),
        (Fault::Answer(500), 6),
        (Fault::Drop, 4),
        (Fault::LoseAnswer, 6),
        (Fault::HideAnswer, 6),
    ];
    for (fault, percent) in faults {
        let writes = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::Get];
        proxy.inject(Rule::new(fault).on(writes).with(Chance::percent(percent)));
    }
    proxy.inject(Rule::new(Fault::Delay(ms(0)..=ms(300))).with(Chance::percent(40)));
    proxy.inject(
        Rule::new(Fault::CutWatch { after_events: 3..=60 }).on([Verb::Watch]).with(Chance::percent(50)),
    );
}

async fn create_everything(corner: &Scheduled) {
    for gang in 0..GANGS {
        corner.create(corner.gang(&format!("g{gang}"), MEMBERS, 1)).await;
    }
    corner.create((0..SINGLES).map(|at| corner.pod(&format!("p-{at}"), 1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_lost_answers_and_cut_watches_delay_but_break_nothing() {
    let Some(plane) = shared().await else { return };
    let proxy = Proxy::start(plane, 7).await.unwrap();
    bad_weather(&proxy);
    let mut corner = Scheduled::not_yet(plane, "weather", 30).await;
    corner.start_through(proxy.kubeconfig_path(), |_| {}).await;
    let begin = Instant::now();
    create_everything(&corner).await;
    let all = GANGS * MEMBERS as usize + SINGLES;
    corner.until_bound(all).await;
    let took = begin.elapsed();
    corner.until("no intent is left", async |corner| (corner.intents().await == 0).then_some(())).await;
    let seen = proxy.total();
    eprintln!("{all} pods bound in {took:?} through faults: {seen:?}");
    assert!(seen.refused > 20 && seen.lost > 10, "the weather was not bad: {seen:?}");
    corner.judge();
    proxy.heal();
    corner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_restarted_is_found_again() {
    static OWN: Shared = Shared::new(Options::from_env);
    let Some(plane) = OWN.get().await else { return };
    let mut corner = Scheduled::new(plane, "restart", 30).await;
    for round in 0..3 {
        corner.create(corner.gang(&format!("before{round}"), 8, 1)).await;
        plane.restart_api_server().await.unwrap();
        let begin = Instant::now();
        corner.create((0..8).map(|at| corner.pod(&format!("after{round}-{at}"), 1))).await;
        corner.until_bound((round + 1) * 16).await;
        eprintln!("round {round}: all bound {:?} after the API server was back", begin.elapsed());
    }
    corner.judge();
    corner.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_waited_out() {
    let Some(plane) = shared().await else { return };
    let proxy = Proxy::start(plane, 8).await.unwrap();
    let mut corner = Scheduled::not_yet(plane, "partition", 4).await;
    corner.start_through(proxy.kubeconfig_path(), |_| {}).await;
    corner.create([corner.pod("before", 1)]).await;
    corner.until_bound(1).await;
    proxy.pause();
    corner.create(corner.gang("during", 8, 1)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(corner.seats().await.len(), 1);
    proxy.resume();
    corner.until_bound(9).await;
    corner.judge();
    corner.stop().await;
}
