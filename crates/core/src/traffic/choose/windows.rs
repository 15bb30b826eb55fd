//! The rotation of service orders in which jobs on host-shaped links are predicted to lose least.
//!
//! **Problem.** Hosts serve queues in strict order of class, and nothing finer: shares of a link by bytes sent do not hold
//! for programs whose senders pause between buckets. So on links that hosts shape there are only a few *orders*. Each is good
//! for some jobs. A rotation gives each order a number of the windows of a cycle; a job's rate is then the mean of its
//! rates in all windows.
//!
//! **Orders.** Fair sharing always. Between two jobs: first come first served, least left first, and each job before the other.
//! Among three and more of one priority: *ranks*, one class for each job, with every job first in as many windows as any
//! other. A class that depends on other bursts changes only while a queue is empty, and with many jobs queues seldom are; ranks
//! need neither that nor any knowledge of bursts.
//!
//! **Choice.** All numbers of windows are tried, a few thousand at most. Of those under which no job is slower than its
//! bound, the division with the least weighted loss is chosen, if that is noticeably less than the loss of fair sharing.

use super::{Stake, TrafficPolicy, most_slowdown_of, total_weight, weight};
use crate::model::units::Duration;
use crate::traffic::{Rotation, Slot};
use crate::tuning::TrafficTuning;

/// Windows of a cycle that orders can have; the last one is the fair reference.
const DIVIDED_WINDOWS: usize = Rotation::REFERENCE;

/// Classes of a link, as HTB and the network have them: a part of the wire protocol, and no tuning entry.
const CLASSES: usize = 8;

/// The slots of all jobs in one window.
type Order = Vec<Slot>;

/// Orders that follow each other, window by window, in the windows that they have together.
#[derive(Clone, Debug, PartialEq)]
struct Series(Vec<Order>);

impl Series {
    fn always(order: Order) -> Self {
        Self(vec![order])
    }

    /// The order in one of the windows of the series.
    fn order(&self, window: usize) -> &Order {
        &self.0[window % self.0.len()]
    }
}

/// What each job's slowdown is in each order of a series.
type SeriesSlowdowns = Vec<Vec<f64>>;

/// The best rotation by a predictor that says how much slower than alone each job is in its traffic policy. `alone` are iteration
/// times without others.
pub fn choose_windows(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    alone: &[Duration],
    mut predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Vec<TrafficPolicy> {
    let all = series(tuning, stakes);
    let slowdowns: Vec<SeriesSlowdowns> =
        all.iter().map(|series| series.0.iter().map(|order| predict(&fixed(order))).collect()).collect();
    let fair = &slowdowns[0][0];
    if fair.iter().all(|slowdown| *slowdown <= 1.0 + tuning.prediction_tolerance) {
        return vec![TrafficPolicy::default(); stakes.len()];
    }
    // A loss counts more the larger it is: of two rotations in which all lose as much, the more even one is better.
    let loss = |mixed: &[f64]| -> f64 {
        stakes
            .iter()
            .zip(mixed)
            .map(|(stake, slowdown)| weight(tuning, stake) * slowdown * (slowdown - 1.0))
            .sum()
    };
    let bounds = bounds_of_windows(tuning, stakes, fair);
    let noticeable = tuning.prediction_tolerance * total_weight(tuning, stakes);
    let mut least = loss(fair) - noticeable.max(tuning.min_rotation_gain * loss(fair));
    let mut best: Option<Vec<usize>> = None;
    for_each_division(DIVIDED_WINDOWS, all.len(), &mut |counts| {
        let mixed = mix(counts, &slowdowns);
        let is_allowed = mixed.iter().zip(&bounds).all(|(slowdown, most)| slowdown <= most);
        if is_allowed && loss(&mixed) < least {
            least = loss(&mixed);
            best = Some(counts.to_vec());
        }
    });
    let Some(counts) = best else { return vec![TrafficPolicy::default(); stakes.len()] };
    let slowest =
        alone.iter().zip(fair).map(|(alone, slowdown)| alone.0 as f64 * slowdown).fold(1.0, f64::max);
    let window = Duration(slowest as u64).times(tuning.iterations_per_rotation_window);
    rotating(&all, &counts, window)
}

/// How much slower than alone each job is over a whole cycle, by a predictor of single windows. Traffic policies without a rotation
/// are predicted as they are.
pub fn predict_windows(
    traffic: &[TrafficPolicy],
    mut predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Vec<f64> {
    if traffic.iter().all(|traffic| traffic.rotation.is_none()) {
        return predict(traffic);
    }
    let mut orders: Vec<Order> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for window in 0..Rotation::WINDOWS {
        let slot = |traffic: &TrafficPolicy| {
            traffic.rotation.map_or(Slot { class: traffic.class, follows: traffic.follows }, |rotation| {
                rotation.slots[window]
            })
        };
        let order: Order = traffic.iter().map(slot).collect();
        match orders.iter().position(|known| *known == order) {
            Some(known) => counts[known] += 1,
            None => {
                orders.push(order);
                counts.push(1);
            }
        }
    }
    let slowdowns: Vec<Vec<f64>> = orders.iter().map(|order| predict(&fixed(order))).collect();
    mean_rates(counts.into_iter().zip(&slowdowns))
}

/// The series of orders that are tried; fair sharing comes first. Those that depend on bursts keep to the order of priorities.
fn series(tuning: &TrafficTuning, stakes: &[Stake]) -> Vec<Series> {
    let jobs = stakes.len();
    let in_tiers = |slot: fn(u8) -> Slot| {
        let class = |stake: &Stake| 2 * stake.tier.min(3);
        stakes.iter().map(|stake| slot(class(stake))).collect::<Order>()
    };
    let fair = Series::always(vec![Slot::FAIR; jobs]);
    let by_bursts = [in_tiers(Slot::first_come), in_tiers(Slot::least_left)].map(Series::always);
    match (is_one_tier(stakes), jobs <= tuning.max_jobs_in_burst_order) {
        (true, true) => {
            let before = |first: usize| -> Order {
                let slot = |job| if job == first { Slot::in_class(0) } else { Slot::first_come(1) };
                (0..jobs).map(slot).collect()
            };
            let by_bursts =
                [Slot::first_come(0), Slot::least_left(0)].map(|slot| Series::always(vec![slot; jobs]));
            let before = (0..jobs).map(|first| Series::always(before(first)));
            [fair].into_iter().chain(by_bursts).chain(before).collect()
        }
        (true, false) => vec![fair, ranks(jobs)],
        (false, _) => [fair].into_iter().chain(by_bursts).collect(),
    }
}

fn is_one_tier(stakes: &[Stake]) -> bool {
    stakes.iter().all(|stake| stake.tier == stakes[0].tier)
}

/// Every job has every rank once; jobs share a class where there are more of them than classes.
fn ranks(jobs: usize) -> Series {
    let class = |rank: usize| (rank * CLASSES.min(jobs) / jobs) as u8;
    let order =
        |first: usize| (0..jobs).map(|job| Slot::in_class(class((job + jobs - first) % jobs))).collect();
    Series((0..jobs).map(order).collect())
}

/// How slow each job may become in a rotation. Among equals no job is slower than under fair sharing, as far as can be predicted;
/// a lower priority may be served later.
pub(super) fn bounds_of_windows(tuning: &TrafficTuning, stakes: &[Stake], fair: &[f64]) -> Vec<f64> {
    let is_one_tier = is_one_tier(stakes);
    let most = most_slowdown_of(tuning, stakes, fair);
    let bound = |(stake, fair): (&Stake, &f64)| match is_one_tier {
        true => fair + tuning.max_rotation_loss_vs_fair,
        false if stake.is_first => *fair,
        false => fair.max(most),
    };
    stakes.iter().zip(fair).map(bound).collect()
}

fn fixed(order: &[Slot]) -> Vec<TrafficPolicy> {
    let traffic =
        |slot: &Slot| TrafficPolicy { class: slot.class, follows: slot.follows, ..TrafficPolicy::default() };
    order.iter().map(traffic).collect()
}

/// Slowdowns over a cycle in which series have these numbers of windows, and fair sharing, the first one, one more.
fn mix(counts: &[usize], slowdowns: &[SeriesSlowdowns]) -> Vec<f64> {
    let windows = counts.iter().zip(slowdowns).enumerate().flat_map(|(at, (count, series))| {
        let count = if at == 0 { count + 1 } else { *count };
        (0..series.len())
            .map(move |order| ((count + series.len() - 1 - order) / series.len(), &series[order]))
    });
    mean_rates(windows)
}

/// The mean slowdowns over windows, given the number of windows and the slowdowns of each order.
fn mean_rates<'a>(windows: impl IntoIterator<Item = (usize, &'a Vec<f64>)>) -> Vec<f64> {
    let (mut all, mut rates) = (0, Vec::new());
    for (count, slowdowns) in windows {
        all += count;
        rates.resize(slowdowns.len(), 0.0);
        rates.iter_mut().zip(slowdowns).for_each(|(rate, slowdown)| *rate += count as f64 / slowdown);
    }
    rates.into_iter().map(|rate| all as f64 / rate).collect()
}

/// The jobs' traffic policies where series have these numbers of windows, spread evenly over the cycle.
fn rotating(all: &[Series], counts: &[usize], window: Duration) -> Vec<TrafficPolicy> {
    let mut given = vec![0_usize; counts.len()];
    let mut cycle: Vec<&Order> = Vec::new();
    for at in 1..=DIVIDED_WINDOWS {
        // The series that is furthest behind its share; the first of those that are equally far.
        let behind =
            |series: usize| counts[series] as f64 * at as f64 / DIVIDED_WINDOWS as f64 - given[series] as f64;
        let next = (0..counts.len()).rev().max_by(|one, other| behind(*one).total_cmp(&behind(*other)));
        let next = next.expect("there is fair sharing at least");
        cycle.push(all[next].order(given[next]));
        given[next] += 1;
    }
    let traffic = |job: usize| {
        let mut slots = [Slot::FAIR; Rotation::WINDOWS];
        slots.iter_mut().zip(&cycle).for_each(|(slot, order)| *slot = order[job]);
        TrafficPolicy { rotation: Some(Rotation { window, slots }), ..TrafficPolicy::default() }
    };
    (0..cycle[0].len()).map(traffic).collect()
}

/// Calls `visit` with every division of `total` windows among this number of orders.
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
    use crate::traffic::Follows;

    const EQUAL: Stake = Stake { counts: 1.0, tier: 0, is_first: false };
    const ALONE: [Duration; 2] = [Duration(100_000_000), Duration(200_000_000)];

    /// Slowdowns of two jobs under fair sharing, first come first served, with the job first that has least left, and with the
    /// first or second job first.
    fn predictor(by_order: [[f64; 2]; 5]) -> impl FnMut(&[TrafficPolicy]) -> Vec<f64> {
        move |traffic| {
            let order = match (traffic[0].class, traffic[1].class, traffic[0].follows, traffic[1].follows) {
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

    fn windows(traffic: &[TrafficPolicy], slots: [Slot; 2]) -> usize {
        let rotations: Vec<Rotation> = traffic.iter().filter_map(|traffic| traffic.rotation).collect();
        (0..Rotation::WINDOWS)
            .filter(|at| slots == [rotations[0].slots[*at], rotations[1].slots[*at]])
            .count()
    }

    #[test]
    fn jobs_of_one_model_are_served_first_come_first_served_in_all_windows_but_the_reference() {
        let by_order = [[1.4, 1.4], [1.0, 1.0], [1.01, 1.01], [1.0, 1.4], [1.4, 1.0]];
        let traffic = choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 2], &ALONE, predictor(by_order));
        assert_eq!(windows(&traffic, [Slot::first_come(0); 2]), 11);
        assert_eq!(windows(&traffic, [Slot::FAIR; 2]), 1);
        assert_eq!(
            traffic[0].rotation.unwrap().window,
            Duration(4 * 280_000_000),
            "four of the slower job's"
        );
    }

    #[test]
    fn two_orders_that_each_harm_a_job_serve_both_sooner_in_rotation() {
        // Iterations of 150 and 220 ms alone on a full link.
        let by_order = [[1.247, 1.25], [1.473, 1.005], [1.5, 1.2], [1.0, 1.373], [1.473, 1.005]];
        let traffic = choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 2], &ALONE, predictor(by_order));
        let mixed = predict_windows(&traffic, predictor(by_order));
        assert!(mixed[0] < 1.23 && mixed[1] < 1.23, "{mixed:?}: {traffic:?}");
        assert!(windows(&traffic, [Slot::in_class(0), Slot::first_come(1)]) > 3);
    }

    #[test]
    fn three_jobs_have_ranks_and_each_is_first_in_as_many_windows_give_or_take_one() {
        // Slowdowns of 1.3 in equal shares, and of 1.0, 1.1 and 1.3 in the first, second and third rank.
        let predict = |traffic: &[TrafficPolicy]| -> Vec<f64> {
            let is_fair = traffic.iter().all(TrafficPolicy::is_default);
            let by_rank = |traffic: &TrafficPolicy| [1.0, 1.1, 1.3][usize::from(traffic.class)];
            traffic.iter().map(|traffic| if is_fair { 1.3 } else { by_rank(traffic) }).collect()
        };
        let traffic =
            choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 3], &[Duration(100_000_000); 3], predict);
        let slots: Vec<_> = traffic.iter().map(|traffic| traffic.rotation.unwrap().slots).collect();
        for window in 0..Rotation::REFERENCE {
            let mut classes: Vec<u8> = slots.iter().map(|slots| slots[window].class).collect();
            classes.sort_unstable();
            assert_eq!(classes, [0, 1, 2]);
        }
        for slots in slots {
            assert_eq!(slots[Rotation::REFERENCE], Slot::FAIR);
            let first = slots[..Rotation::REFERENCE].iter().filter(|slot| slot.class == 0).count();
            assert!((3..=4).contains(&first), "{slots:?}");
        }
    }

    #[test]
    fn jobs_share_a_class_where_there_are_more_of_them_than_classes() {
        let Series(orders) = ranks(16);
        assert_eq!(orders.len(), 16);
        let mut classes: Vec<u8> = orders[3].iter().map(|slot| slot.class).collect();
        classes.sort_unstable();
        assert_eq!(classes, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
    }

    #[test]
    fn links_are_left_alone_where_every_rotation_harms_a_job_or_gains_little() {
        let harms = [[1.2, 1.2], [1.0, 1.5], [1.0, 1.5], [1.0, 1.5], [1.5, 1.19]];
        assert!(
            choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 2], &ALONE, predictor(harms))
                .iter()
                .all(TrafficPolicy::is_default)
        );
        let little = [[1.03, 1.22], [1.47, 1.02], [1.03, 1.215], [1.0, 1.25], [1.5, 1.02]];
        assert!(
            choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 2], &ALONE, predictor(little))
                .iter()
                .all(TrafficPolicy::is_default)
        );
        let nothing = [[1.004, 1.0]; 5];
        assert!(
            choose_windows(&TrafficTuning::DEFAULT, &[EQUAL; 2], &ALONE, predictor(nothing))
                .iter()
                .all(TrafficPolicy::is_default)
        );
    }

    #[test]
    fn a_lower_priority_may_be_served_later_than_under_fair_sharing() {
        let stakes = [Stake { counts: 4.0, tier: 0, is_first: true }, Stake { tier: 1, ..EQUAL }];
        let predict = |traffic: &[TrafficPolicy]| match traffic[1].class {
            0 => vec![1.2, 1.2],
            _ => vec![1.0, 1.25],
        };
        let traffic = choose_windows(&TrafficTuning::DEFAULT, &stakes, &ALONE, predict);
        assert_eq!(windows(&traffic, [Slot::first_come(0), Slot::first_come(2)]), 11);
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
