//! The rotation of service orders in which jobs on host-shaped links are predicted to lose least.
//!
//! **Problem.** Hosts serve queues in strict order of class, and nothing finer: shares of a link by bytes sent do not hold
//! for programs whose senders pause between buckets. So on links that hosts shape there are only a few *orders*: fair
//! sharing, first come first served, and one job before all others. Every order is good for some jobs. A rotation gives each
//! order a number of the windows of a cycle; a job's rate is then the mean of its rates in all windows.
//!
//! **Choice.** All numbers of windows are tried, a few thousand at most. Of those under which no job is slower than its
//! bound, the one with the least weighted loss is taken, if it is noticeably less than that of fair sharing.

use super::{BLUR, Lane, Stake, most_slowdown_of, weight};
use crate::lane::{Rotation, Slot};
use crate::units::Duration;

/// Windows of a cycle that orders can have; the last one is the fair reference.
const SHARED_OUT: usize = Rotation::REFERENCE;

/// Among more jobs, no job is served before all others: its share of the windows would be too small to matter.
const MAX_JOBS_WITH_OWN_ORDER: usize = 4;

/// The part of its loss under fair sharing that a job of equal priority may keep: predictions err, and a job that is
/// predicted to gain nothing loses as often as not.
const MAX_LOSS_VS_FAIR: f64 = 0.9;

/// A window lasts so many iterations of the slowest job. Orders take one or two iterations to settle.
const ITERATIONS_PER_WINDOW: u64 = 6;

/// The slots of all jobs in one window.
type Order = Vec<Slot>;

/// The best rotation by a predictor that says how much slower than alone each job is in its lane. `alone` are iteration
/// times without others.
pub fn choose_windows(
    stakes: &[Stake],
    alone: &[Duration],
    mut predict: impl FnMut(&[Lane]) -> Vec<f64>,
) -> Vec<Lane> {
    let orders = orders(stakes);
    let slowdowns: Vec<Vec<f64>> = orders.iter().map(|order| predict(&fixed(order))).collect();
    let fair = &slowdowns[0];
    if fair.iter().all(|slowdown| *slowdown <= 1.0 + BLUR) {
        return vec![Lane::default(); stakes.len()];
    }
    let bounds: Vec<f64> = bounds(stakes, fair);
    let loss = |mixed: &[f64]| -> f64 {
        stakes.iter().zip(mixed).map(|(stake, slowdown)| weight(stake) * (slowdown - 1.0)).sum()
    };
    let mut least = loss(fair) - BLUR * stakes.iter().map(weight).sum::<f64>();
    let mut best: Option<Vec<usize>> = None;
    for_each_division(SHARED_OUT, orders.len(), &mut |counts| {
        let mixed = mix(counts, &slowdowns);
        let is_allowed = mixed.iter().zip(&bounds).all(|(slowdown, most)| slowdown <= most);
        if is_allowed && loss(&mixed) < least {
            least = loss(&mixed);
            best = Some(counts.to_vec());
        }
    });
    let Some(counts) = best else { return vec![Lane::default(); stakes.len()] };
    let slowest =
        alone.iter().zip(fair).map(|(alone, slowdown)| alone.0 as f64 * slowdown).fold(1.0, f64::max);
    let window = Duration(slowest as u64).times(ITERATIONS_PER_WINDOW);
    (0..stakes.len()).map(|job| rotating(job, &orders, &counts, window)).collect()
}

/// How much slower than alone each job is over a whole cycle, by a predictor of single windows. Lanes without a rotation
/// are predicted as they are.
pub fn predict_windows(lanes: &[Lane], mut predict: impl FnMut(&[Lane]) -> Vec<f64>) -> Vec<f64> {
    if lanes.iter().all(|lane| lane.rotation.is_none()) {
        return predict(lanes);
    }
    let mut orders: Vec<Order> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for window in 0..Rotation::WINDOWS {
        let slot = |lane: &Lane| {
            lane.rotation
                .map_or(Slot { class: lane.class, follows: lane.follows }, |rotation| rotation.slots[window])
        };
        let order: Order = lanes.iter().map(slot).collect();
        match orders.iter().position(|known| *known == order) {
            Some(known) => counts[known] += 1,
            None => {
                orders.push(order);
                counts.push(1);
            }
        }
    }
    let slowdowns: Vec<Vec<f64>> = orders.iter().map(|order| predict(&fixed(order))).collect();
    mean_rates(&counts, &slowdowns)
}

/// Fair sharing; the job with least left first; first come first served; both in the order of priorities where those differ.
/// Among few equals also each job before the others.
fn orders(stakes: &[Stake]) -> Vec<Order> {
    let class = |stake: &Stake| 2 * stake.tier.min(3);
    let mut orders: Vec<Order> = vec![vec![Slot::FAIR; stakes.len()]];
    orders.push(stakes.iter().map(|stake| Slot::first_come(class(stake))).collect());
    orders.push(stakes.iter().map(|stake| Slot::least_left(class(stake))).collect());
    let is_one_tier = stakes.iter().all(|stake| stake.tier == stakes[0].tier);
    if is_one_tier {
        orders[1].fill(Slot::first_come(0));
        orders[2].fill(Slot::least_left(0));
        if stakes.len() <= MAX_JOBS_WITH_OWN_ORDER {
            let before = |first: usize| -> Order {
                let slot = |job| if job == first { Slot::in_class(0) } else { Slot::first_come(1) };
                (0..stakes.len()).map(slot).collect()
            };
            orders.extend((0..stakes.len()).map(before));
        }
    }
    orders
}

/// How slow each job may become. Among equals every job gains; a lower priority may be served later.
fn bounds(stakes: &[Stake], fair: &[f64]) -> Vec<f64> {
    let is_one_tier = stakes.iter().all(|stake| stake.tier == stakes[0].tier);
    let most = most_slowdown_of(stakes, fair);
    let bound = |(stake, fair): (&Stake, &f64)| match is_one_tier {
        true => 1.0 + MAX_LOSS_VS_FAIR * (fair - 1.0),
        false if stake.is_first => *fair,
        false => fair.max(most),
    };
    stakes.iter().zip(fair).map(bound).collect()
}

fn fixed(order: &[Slot]) -> Vec<Lane> {
    let lane = |slot: &Slot| Lane { class: slot.class, follows: slot.follows, ..Lane::default() };
    order.iter().map(lane).collect()
}

/// Slowdowns over a cycle in which orders have these numbers of windows, and fair sharing, the first order, one more.
fn mix(counts: &[usize], slowdowns: &[Vec<f64>]) -> Vec<f64> {
    let mut counts = counts.to_vec();
    counts[0] += 1;
    mean_rates(&counts, slowdowns)
}

fn mean_rates(counts: &[usize], slowdowns: &[Vec<f64>]) -> Vec<f64> {
    let all: usize = counts.iter().sum();
    let rate = |job: usize| -> f64 {
        counts.iter().zip(slowdowns).map(|(count, slowdowns)| *count as f64 / slowdowns[job]).sum()
    };
    (0..slowdowns[0].len()).map(|job| all as f64 / rate(job)).collect()
}

/// A job's lane where orders have these numbers of windows, spread evenly over the cycle.
fn rotating(job: usize, orders: &[Order], counts: &[usize], window: Duration) -> Lane {
    let mut slots = [Slot::FAIR; Rotation::WINDOWS];
    let mut given = vec![0_usize; counts.len()];
    for (at, slot) in slots[..SHARED_OUT].iter_mut().enumerate() {
        // The order that is furthest behind its share; the first of those that are equally far.
        let behind =
            |order: usize| counts[order] as f64 * (at + 1) as f64 / SHARED_OUT as f64 - given[order] as f64;
        let next = (0..counts.len()).rev().max_by(|one, other| behind(*one).total_cmp(&behind(*other)));
        let next = next.expect("there is fair sharing at least");
        given[next] += 1;
        *slot = orders[next][job];
    }
    Lane { rotation: Some(Rotation { window, slots }), ..Lane::default() }
}

/// Calls `visit` with every way to divide `total` windows among so many orders.
fn for_each_division(total: usize, orders: usize, visit: &mut impl FnMut(&[usize])) {
    fn divide(left: usize, counts: &mut Vec<usize>, orders: usize, visit: &mut impl FnMut(&[usize])) {
        if counts.len() + 1 == orders {
            counts.push(left);
            visit(counts);
            counts.pop();
            return;
        }
        for count in (0..=left).rev() {
            counts.push(count);
            divide(left - count, counts, orders, visit);
            counts.pop();
        }
    }
    divide(total, &mut Vec::with_capacity(orders), orders, visit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Follows;

    const EQUAL: Stake = Stake { counts: 1.0, tier: 0, is_first: false };
    const ALONE: [Duration; 2] = [Duration(100_000_000), Duration(200_000_000)];

    /// Slowdowns of two jobs under fair sharing, first come first served, with the job first that has least left, and with the
    /// first or second job first.
    fn predictor(by_order: [[f64; 2]; 5]) -> impl FnMut(&[Lane]) -> Vec<f64> {
        move |lanes| {
            let order = match (lanes[0].class, lanes[1].class, lanes[0].follows, lanes[1].follows) {
                (0, 0, Follows::Nothing, Follows::Nothing) => 0,
                (0, 0, Follows::FirstCome, _) => 1,
                (0, 0, Follows::LeastLeft, _) => 2,
                (0, 1, ..) => 3,
                (1, 0, ..) => 4,
                other => panic!("{other:?} is no order"),
            };
            by_order[order].to_vec()
        }
    }

    fn windows(lanes: &[Lane], slots: [Slot; 2]) -> usize {
        let rotations: Vec<Rotation> = lanes.iter().filter_map(|lane| lane.rotation).collect();
        (0..Rotation::WINDOWS)
            .filter(|at| slots == [rotations[0].slots[*at], rotations[1].slots[*at]])
            .count()
    }

    #[test]
    fn jobs_of_one_model_are_served_first_come_first_served_in_all_windows_but_the_reference() {
        let by_order = [[1.4, 1.4], [1.0, 1.0], [1.01, 1.01], [1.0, 1.4], [1.4, 1.0]];
        let lanes = choose_windows(&[EQUAL; 2], &ALONE, predictor(by_order));
        assert_eq!(windows(&lanes, [Slot::first_come(0); 2]), 11);
        assert_eq!(windows(&lanes, [Slot::FAIR; 2]), 1);
        assert_eq!(lanes[0].rotation.unwrap().window, Duration(6 * 280_000_000), "six of the slower job's");
    }

    #[test]
    fn two_orders_that_each_harm_a_job_serve_both_sooner_in_rotation() {
        // Iterations of 150 and 220 ms alone on a full link.
        let by_order = [[1.247, 1.25], [1.473, 1.005], [1.5, 1.2], [1.0, 1.373], [1.473, 1.005]];
        let lanes = choose_windows(&[EQUAL; 2], &ALONE, predictor(by_order));
        let mixed = predict_windows(&lanes, predictor(by_order));
        assert!(mixed[0] < 1.23 && mixed[1] < 1.23, "{mixed:?}: {lanes:?}");
        assert!(windows(&lanes, [Slot::in_class(0), Slot::first_come(1)]) > 3);
    }

    #[test]
    fn links_are_left_alone_where_every_rotation_harms_a_job_or_gains_nothing() {
        let harms = [[1.2, 1.2], [1.0, 1.5], [1.0, 1.5], [1.0, 1.5], [1.5, 1.19]];
        assert!(choose_windows(&[EQUAL; 2], &ALONE, predictor(harms)).iter().all(Lane::is_default));
        let nothing = [[1.004, 1.0]; 5];
        assert!(choose_windows(&[EQUAL; 2], &ALONE, predictor(nothing)).iter().all(Lane::is_default));
    }

    #[test]
    fn a_lower_priority_may_be_served_later_than_under_fair_sharing() {
        let stakes = [Stake { counts: 4.0, tier: 0, is_first: true }, Stake { tier: 1, ..EQUAL }];
        let predict = |lanes: &[Lane]| match lanes[1].class {
            0 => vec![1.2, 1.2],
            _ => vec![1.0, 1.25],
        };
        let lanes = choose_windows(&stakes, &ALONE, predict);
        assert_eq!(windows(&lanes, [Slot::first_come(0), Slot::first_come(2)]), 11);
    }

    #[test]
    fn windows_are_divided_in_every_way_once() {
        let mut seen = std::collections::BTreeSet::new();
        for_each_division(3, 3, &mut |counts| {
            assert_eq!(counts.iter().sum::<usize>(), 3);
            assert!(seen.insert(counts.to_vec()));
        });
        assert_eq!(seen.len(), 10);
    }
}
