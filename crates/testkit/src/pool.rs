//! The oracle: GPUs as one pool, whole seconds, free preemption, written with lists and loops as plainly as it can
//! be, sharing nothing with the scheduler. All events of an instant come before one pass; a pass sorts the
//! unfinished jobs, keeping the order of equals, and hands out GPUs down the list, skipping what does not fit.

/// A job of a pool trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolJob {
    pub submit: u64,
    pub gpus: u64,
    pub seconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPolicy {
    /// The first that does not fit holds up everybody behind it.
    Fifo,
    FifoSkip,
    Srtf,
    Srsf,
    /// Levels of attained GPU-seconds with two limits.
    TwoLevels(u64, u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolResult {
    pub ends: Vec<u64>,
    pub preemptions: u64,
}

struct Live {
    index: usize,
    gpus: u64,
    left: u64,
    attained: u64,
    level: usize,
    runs: bool,
}

/// Jobs must come in the order of submission.
pub fn simulate(jobs: &[PoolJob], capacity: u64, policy: PoolPolicy) -> PoolResult {
    let mut result = PoolResult { ends: vec![0; jobs.len()], preemptions: 0 };
    let mut list: Vec<Live> = Vec::new();
    let (mut now, mut next) = (0, 0);
    while next < jobs.len() || !list.is_empty() {
        let arrival = jobs.get(next).map(|job| job.submit);
        let Some(then) =
            arrival.into_iter().chain(list.iter().filter_map(|job| wakes(job, now, policy))).min()
        else {
            panic!("a job larger than the pool never ends");
        };
        for job in list.iter_mut().filter(|job| job.runs) {
            job.left -= then - now;
            job.attained += job.gpus * (then - now);
        }
        now = then;
        for job in list.iter().filter(|job| job.left == 0) {
            result.ends[job.index] = now;
        }
        list.retain(|job| job.left > 0);
        while next < jobs.len() && jobs[next].submit == now {
            let PoolJob { gpus, seconds, .. } = jobs[next];
            list.push(Live { index: next, gpus, left: seconds, attained: 0, level: 0, runs: false });
            next += 1;
        }
        sort(&mut list, policy);
        result.preemptions += hand_out(&mut list, capacity, policy);
        if let PoolPolicy::TwoLevels(..) = policy {
            list.sort_by_key(|job| (job.level, !job.runs));
        }
    }
    result
}

/// When a running job ends or reaches the limit of its level.
fn wakes(job: &Live, now: u64, policy: PoolPolicy) -> Option<u64> {
    if !job.runs {
        return None;
    }
    let end = now + job.left;
    match (policy, job.level) {
        (PoolPolicy::TwoLevels(first, _), 0) => {
            Some(end.min(now + (first - job.attained).div_ceil(job.gpus)))
        }
        (PoolPolicy::TwoLevels(_, second), 1) => {
            Some(end.min(now + (second - job.attained).div_ceil(job.gpus)))
        }
        _ => Some(end),
    }
}

fn sort(list: &mut Vec<Live>, policy: PoolPolicy) {
    match policy {
        PoolPolicy::Fifo | PoolPolicy::FifoSkip => list.sort_by_key(|job| (!job.runs, job.index)),
        PoolPolicy::Srtf => list.sort_by_key(|job| job.left),
        PoolPolicy::Srsf => list.sort_by_key(|job| job.left * job.gpus),
        PoolPolicy::TwoLevels(first, second) => {
            let limits = [first, second];
            let mut demoted: Vec<usize> = list
                .iter()
                .filter(|job| job.runs && job.level < 2 && job.attained >= limits[job.level])
                .map(|job| job.index)
                .collect();
            demoted.sort_unstable();
            // To the end of the next level, oldest job first.
            for index in demoted {
                let at =
                    list.iter().position(|job| job.index == index).expect("a demoted job is in the list");
                let mut job = list.remove(at);
                job.level += 1;
                list.push(job);
            }
            list.sort_by_key(|job| job.level);
        }
    }
}

/// Gives GPUs down the list; returns how many running jobs lost theirs.
fn hand_out(list: &mut [Live], capacity: u64, policy: PoolPolicy) -> u64 {
    let (mut free, mut preempted, mut blocked) = (capacity, 0, false);
    for job in list {
        let fits = job.gpus <= free && !blocked;
        blocked |= !fits && policy == PoolPolicy::Fifo;
        if fits {
            free -= job.gpus;
        } else if job.runs {
            preempted += 1;
        }
        job.runs = fits;
    }
    preempted
}
