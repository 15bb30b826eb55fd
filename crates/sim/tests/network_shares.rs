//! Rates over random links and routes: no link over capacity, and a certificate that the rates are max-min fair in
//! each class, with weights and floors. Max-min fair rates are unique, so the certificate is a proof.

mod network_common;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::units::{Bandwidth, Duration, Instant, Share};
use metronome_core::network::{Network, Route, Training};
use metronome_core::traffic::TrafficPolicy;
use proptest::prelude::*;

use network_common::*;

#[derive(Clone, Debug)]
struct Flow {
    class: u8,
    weight: u32,
    route: Vec<(usize, f64)>,
}

#[derive(Clone, Debug)]
struct Case {
    /// Bits a second.
    links: Vec<u64>,
    flows: Vec<Flow>,
    floor: Share,
}

/// What is kept for a class is worked out here with rates in whole bits a second.
const EXACT: f64 = 1e-8;

/// The rates of these flows, all sending at once, in bytes of gradient a second.
fn rates_of(links: &[f64], flows: &[Flow], floor: Share) -> Vec<f64> {
    let rates: IdVec<LinkId, Bandwidth> = links.iter().map(|rate| Bandwidth(rate.round() as u64)).collect();
    let mut network = Network::new(&rates, sharing(floor));
    let endless = burst(Duration(1), Duration(u64::MAX / 4));
    for (key, flow) in flows.iter().enumerate() {
        let links: Vec<(LinkId, f64)> =
            flow.route.iter().map(|(link, load)| (LinkId(*link as u32), *load)).collect();
        let lane = TrafficPolicy { class: flow.class, weight: flow.weight, ..TrafficPolicy::default() };
        let route = Route::over(&links);
        network.start(Instant::START, key, Training { traffic: lane, route, ..training(&endless, 1) });
    }
    network.run_until(Instant(2));
    (0..flows.len()).map(|key| network.rate(key)).collect()
}

/// What these flows put on each link, in bits a second.
fn loads<'a>(links: usize, flows: impl Iterator<Item = (&'a Flow, f64)>) -> Vec<f64> {
    let mut loads = vec![0.0; links];
    for (flow, rate) in flows {
        for (link, load) in &flow.route {
            loads[*link] += 8.0 * load * rate;
        }
    }
    loads
}

fn level(flow: &Flow, rate: f64) -> f64 {
    let peak = flow.route.iter().map(|(_, load)| *load).fold(0.0, f64::max);
    rate * peak / f64::from(flow.weight)
}

/// Every flow crosses a link that its class fills and on which no flow of its class has a higher level.
fn certify(room: &[f64], whole: &[f64], class: &[(&Flow, f64)]) -> Result<(), TestCaseError> {
    let used = loads(room.len(), class.iter().map(|(flow, rate)| (*flow, *rate)));
    for link in 0..room.len() {
        prop_assert!(used[link] <= room[link] + EXACT * whole[link], "link {link} is over capacity");
    }
    for (flow, rate) in class {
        let holds_up = |link: usize| {
            let highest = class
                .iter()
                .filter(|(other, _)| other.route.iter().any(|(crossed, _)| *crossed == link))
                .map(|(other, rate)| level(other, *rate))
                .fold(0.0, f64::max);
            used[link] >= room[link] - EXACT * whole[link] && level(flow, *rate) >= highest * (1.0 - EXACT)
        };
        prop_assert!(flow.route.iter().any(|(link, _)| holds_up(*link)), "{flow:?} could have more");
    }
    Ok(())
}

/// What is kept of each link for one class, found by a network in which it has only its parts.
fn kept(case: &Case, whole: &[f64], class: u8) -> Result<Vec<f64>, TestCaseError> {
    let parts: Vec<f64> = (0..whole.len()).map(|link| whole[link] * part(case, link, class)).collect();
    let flows: Vec<Flow> = case.flows.iter().filter(|flow| flow.class == class).cloned().collect();
    let rates = rates_of(&parts, &flows, case.floor);
    let pairs: Vec<(&Flow, f64)> = flows.iter().zip(rates).collect();
    certify(&parts, whole, &pairs)?;
    Ok(loads(whole.len(), pairs.into_iter()))
}

fn part(case: &Case, link: usize, class: u8) -> f64 {
    let wants = |flow: &&Flow| flow.route.iter().any(|(crossed, _)| *crossed == link);
    let mut classes: Vec<u8> = case.flows.iter().filter(wants).map(|flow| flow.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let floor = case.floor.as_f64().min(1.0 / classes.len().max(1) as f64);
    match classes.first() {
        Some(highest) if *highest == class => 1.0 - floor * (classes.len() - 1) as f64,
        _ => floor,
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let whole: Vec<f64> = case.links.iter().map(|rate| *rate as f64).collect();
    let rates = rates_of(&whole, &case.flows, case.floor);
    let mut classes: Vec<u8> = case.flows.iter().map(|flow| flow.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut left = whole.clone();
    let mut keeps: Vec<Vec<f64>> = Vec::new();
    for class in &classes {
        keeps.push(kept(case, &whole, *class)?);
    }
    for (place, class) in classes.iter().enumerate() {
        let below = |link: usize| keeps[place + 1..].iter().map(|kept| kept[link]).sum::<f64>();
        let room: Vec<f64> = (0..whole.len()).map(|link| (left[link] - below(link)).max(0.0)).collect();
        let of_class = case.flows.iter().zip(rates.iter().copied()).filter(|(flow, _)| flow.class == *class);
        let of_class: Vec<(&Flow, f64)> = of_class.collect();
        certify(&room, &whole, &of_class)?;
        for (left, used) in left.iter_mut().zip(loads(whole.len(), of_class.into_iter())) {
            *left -= used;
        }
    }
    Ok(())
}

fn flow(links: usize, classes: u8) -> impl Strategy<Value = Flow> {
    let route = proptest::collection::btree_map(0..links, 1..40_u32, 1..=links.min(6));
    (0..classes, prop_oneof![1..6_u32, Just(65_536)], route).prop_map(|(class, weight, route)| Flow {
        class,
        weight,
        route: route.into_iter().map(|(link, load)| (link, f64::from(load) / 20.0)).collect(),
    })
}

fn case(classes: u8) -> impl Strategy<Value = Case> {
    (1..10_usize).prop_flat_map(move |links| {
        let rates = proptest::collection::vec(1_000_000_000..200_000_000_000_u64, links);
        let flows = proptest::collection::vec(flow(links, classes), 1..14);
        let floor = prop_oneof![Just(0), Just(50_000), Just(125_000), Just(500_000)].prop_map(Share);
        (rates, flows, floor).prop_map(|(links, flows, floor)| Case { links, flows, floor })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn flows_of_one_class_are_max_min_fair(case in case(1)) {
        check(&case)?;
    }

    #[test]
    fn classes_are_strict_down_to_the_floor(case in case(8)) {
        check(&case)?;
    }
}

#[test]
fn more_than_a_word_of_flows_are_shared_too() {
    let route = |index: usize| vec![(index % 5, 1.0), (5 + index % 3, 0.5)];
    let flow = |index| Flow { class: (index % 2) as u8, weight: 1 + (index % 4) as u32, route: route(index) };
    let links = (0..8).map(|link| 10_000_000_000 + link * 1_000_000_000).collect();
    check(&Case { links, flows: (0..100).map(flow).collect(), floor: Share(50_000) }).unwrap();
}
