//! Where may a pod go? Asked of kube-scheduler and of ours, on the same objects of one real API server: nodes, pods
//! and storage are drawn at random over every rule, and the two answers must be equal.
//!
//! `METRONOME_CASES` says how many pods are asked about, `METRONOME_SEED` which.

mod draw;
mod ours;
mod reference;
mod server;
mod tally;

use std::time::{Duration, Instant};

use draw::{Dice, Scene};
use ours::Ours;
use reference::Reference;
use server::Server;
use tally::{Otherwise, Tally};

const PODS_PER_SCENE: u64 = 56;
const CASES: u64 = 40 * PODS_PER_SCENE;

/// Until kube-scheduler has seen a scene. What it has not seen when it answers, it has seen when it is asked again.
const LATENCY: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread")]
async fn every_pod_may_go_where_kube_scheduler_says() {
    let (seed, cases) = (number("METRONOME_SEED", 20_261_101), number("METRONOME_CASES", CASES));
    let Some(reference) = Reference::start().await else { return };
    let server = reference.server().await;
    let (begin, mut tally) = (Instant::now(), Tally::default());
    server.furnish(&draw::fixtures()).await;
    for scene in 0..cases.div_ceil(PODS_PER_SCENE) {
        let mut dice = Dice::new(seed, scene);
        let scene = Scene::draw(&mut dice, PODS_PER_SCENE);
        play(&reference, &server, &mut dice, &scene, &mut tally).await;
    }
    eprintln!("seed {seed}, {:?}\n{tally}", begin.elapsed());
    tally.check();
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Sets the scene, asks both about every pod in it, and clears the stage.
async fn play(reference: &Reference, server: &Server, dice: &mut Dice, scene: &Scene, tally: &mut Tally) {
    server.set(scene).await;
    tokio::time::sleep(LATENCY).await;
    let asked = server.ask(&scene.pending).await;
    let answers = reference.answers(server, &asked).await;
    let everything = server.everything().await;
    let mut ours = Ours::of(&everything, dice);
    let mut otherwise = Otherwise::of(&everything, dice);
    for (pending, pod) in scene.pending.iter().zip(&asked) {
        let verdict = ours.verdict(pod);
        let mut theirs = reference.answer(&answers, pod);
        for again in 1..=3 {
            if verdict.nodes != theirs.nodes {
                tokio::time::sleep(LATENCY).await;
                theirs = reference.ask_again(server, &pending.again(again)).await;
            }
        }
        tally.count(scene, pending, &verdict, &theirs);
        tally.weigh(pending, &verdict, &mut ours, &mut otherwise);
    }
    server.clear().await;
}
