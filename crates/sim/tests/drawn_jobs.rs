//! Jobs that are drawn: the stated load, shares and sizes, the same jobs for the same seed.

use std::collections::BTreeMap;
use std::path::Path;

use metronome_core::model::job::{Priority, RoleKind};
use metronome_core::model::policy::Policy;
use metronome_core::model::units::{Cpu, Duration, GpuTime, Gpus, Instant, Memory, Share};
use metronome_sim::compare::compare;
use metronome_sim::model::Pattern;
use metronome_sim::noise::Noise;
use metronome_sim::scenario::{Arrival, Scenario};
use metronome_sim::world::Keep;

fn experiment(load: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/thirteen-models");
    Scenario::read(&folder.join(format!("load-{load}.yaml"))).unwrap()
}

/// A drawn workload on the lab of the experiments, with some lines of its spec replaced.
fn drawn(lines: &[(&str, &str)]) -> Scenario {
    let mut spec: BTreeMap<&str, &str> = BTreeMap::from([
        ("jobs", "120"),
        ("arrivals", "{poisson: {load: 0.8}}"),
        ("models", "all"),
        ("gpus", "{powersOfTwo: 0.6, from: 2, to: 32, perMember: 4}"),
        ("duration", "{median: 10m, sigma: 1.0, atMost: 1h}"),
        ("priorities", "{high: 0.2, normal: 0.5, low: 0.3}"),
    ]);
    spec.extend(lines.iter().copied());
    let spec: String = spec.iter().map(|(field, value)| format!("  {field}: {value}\n")).collect();
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: lab}}\nspec:\n  levels: [rack, node]\n  \
         nodes: [{{count: 24, perRack: 6, gpus: 4}}]\n  links: {{node: 100Gbps, rack: 150Gbps}}\n\
         ---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {{name: drawn}}\nspec:\n{spec}"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap()
}

fn size(job: &Arrival) -> u64 {
    job.spec.gpus().0 / Gpus::whole(1).0
}

fn alone(job: &Arrival) -> Duration {
    job.spec.work.alone.unwrap()
}

fn all_jobs(scenario: &Scenario, seeds: u64) -> Vec<Arrival> {
    (1..=seeds).flat_map(|seed| scenario.arrivals(seed)).collect()
}

fn share(jobs: &[Arrival], wanted: impl Fn(&Arrival) -> bool) -> f64 {
    jobs.iter().filter(|job| wanted(job)).count() as f64 / jobs.len() as f64
}

#[test]
fn jobs_offer_the_load_that_is_asked_for() {
    for load in ["0.6", "0.8", "0.95"] {
        let scenario = experiment(load);
        let (mut work, mut span) = (0.0, 0.0);
        for seed in 1..=200 {
            let jobs = scenario.arrivals(seed);
            let total = jobs.iter().map(|job| GpuTime::of(job.spec.gpus(), alone(job)));
            work += total.map(GpuTime::as_gpu_seconds_f64).sum::<f64>();
            span += jobs.last().unwrap().at.as_secs_f64();
        }
        let (offered, asked) = (work / (96.0 * span), load.parse::<f64>().unwrap());
        assert!((offered / asked - 1.0).abs() < 0.02, "{offered} instead of {asked}");
    }
}

#[test]
fn gaps_are_exponential() {
    let scenario = experiment("0.8");
    let mut gaps = Vec::new();
    for seed in 1..=100 {
        let jobs = scenario.arrivals(seed);
        let work: f64 = jobs.iter().map(|job| size(job) as f64 * alone(job).as_secs_f64()).sum();
        let mean = work / 120.0 / (0.8 * 96.0);
        let mut last = Instant::START;
        for job in &jobs {
            gaps.push(job.at.since(last).as_secs_f64() / mean);
            last = job.at;
        }
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    let beyond = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    assert!((square - 2.0).abs() < 0.15, "{square}");
    assert!((beyond - (-1.0_f64).exp()).abs() < 0.02, "{beyond}");
}

#[test]
fn sizes_and_priorities_come_in_their_shares() {
    let jobs = all_jobs(&experiment("0.8"), 200);
    let powers = [2, 4, 8, 16, 32];
    for power in powers {
        let part = share(&jobs, |job| size(job) == power);
        assert!((part - (0.6 / 5.0 + 0.4 / 31.0)).abs() < 0.01, "{power} GPUs: {part}");
    }
    let odd = share(&jobs, |job| size(job) == 7);
    assert!((odd - 0.4 / 31.0).abs() < 0.004, "{odd}");
    assert!(jobs.iter().all(|job| (2..=32).contains(&size(job))));
    for (priority, wanted) in [(Priority::HIGH, 0.2), (Priority::NORMAL, 0.5), (Priority::LOW, 0.3)] {
        let part = share(&jobs, |job| job.spec.priority == priority);
        assert!((part - wanted).abs() < 0.01, "{priority:?}: {part}");
    }
    let models = share(&jobs, |job| {
        let training = job.training.as_ref().unwrap();
        matches!(&training.pattern, Pattern::Gradients(model) if model.name == "dlrm/2048")
    });
    assert!((models - 1.0 / 26.0).abs() < 0.005, "{models}");
}

#[test]
fn durations_are_lognormal_and_cut() {
    let scenario = drawn(&[("duration", "{median: 10m, sigma: 1.0, atMost: 1h}")]);
    let jobs = all_jobs(&scenario, 100);
    let below = |minutes: u64| share(&jobs, |job| alone(job) < Duration::from_secs(minutes * 60));
    assert!((below(10) - 0.5).abs() < 0.02, "the median: {}", below(10));
    assert!((below(27) - 0.84).abs() < 0.02, "one sigma: {}", below(27));
    let longest = jobs.iter().map(alone).max().unwrap();
    assert!(longest < Duration::from_secs(3601), "cut, but for the rounding to iterations: {longest}");
    let equal = drawn(&[("duration", "{median: 10m}")]);
    let off =
        |job: &Arrival| alone(job).0.abs_diff(Duration::from_secs(600).0) < Duration::from_millis(900).0;
    assert!(equal.arrivals(1).iter().all(off), "without sigma all are equal, but for the rounding");
}

#[test]
fn the_same_seed_gives_the_same_jobs_and_another_seed_others() {
    let scenario = experiment("0.8");
    assert_eq!(scenario.arrivals(7), scenario.clone().arrivals(7));
    assert_eq!(scenario.arrivals(7), experiment("0.8").arrivals(7));
    assert_ne!(scenario.arrivals(7), scenario.arrivals(8));
    assert_eq!((scenario.job_count(), scenario.arrivals(7).len()), (120, 120));
    assert!(scenario.arrivals(7).is_sorted_by_key(|job| job.at));
}

#[test]
fn every_policy_of_a_seed_sees_the_same_jobs() {
    let scenario = drawn(&[("jobs", "12"), ("models", "[dlrm/2048]"), ("duration", "{median: 1m}")]);
    let policies = ["metronome", "coscheduling"].map(|name| Policy::named(name).unwrap());
    let outcomes = compare(&scenario, &policies, 1..=2, Keep::Figures, &|_| {});
    let seen = |index: usize| -> Vec<_> {
        outcomes[index]
            .jobs
            .iter()
            .map(|job| (job.name.clone(), job.submit, job.priority, job.gpus))
            .collect()
    };
    let [first, second] = [1, 2].map(|seed| scenario.arrivals(seed));
    let arrives = |jobs: &[Arrival]| -> Vec<_> {
        jobs.iter().map(|job| (job.spec.name.clone(), job.at, job.spec.priority, job.spec.gpus())).collect()
    };
    assert_eq!([seen(0), seen(2)], [arrives(&first), arrives(&first)]);
    assert_eq!([seen(1), seen(3)], [arrives(&second), arrives(&second)]);
}

#[test]
fn a_change_to_one_part_leaves_the_others_as_they_were() {
    let of = |lines: &[(&str, &str)]| drawn(lines).arrivals(3);
    let plain = of(&[]);
    let sizes = |jobs: &[Arrival]| jobs.iter().map(size).collect::<Vec<_>>();
    let priorities = |jobs: &[Arrival]| jobs.iter().map(|job| job.spec.priority).collect::<Vec<_>>();
    let model = |job: &Arrival| match &job.training.as_ref().unwrap().pattern {
        Pattern::Gradients(model) => model.name.clone(),
        Pattern::Phases(_) => unreachable!("all have models"),
    };
    let models = |jobs: &[Arrival]| jobs.iter().map(model).collect::<Vec<_>>();

    let longer = of(&[("duration", "{median: 20m, sigma: 0.5}"), ("priorities", "{normal: 1}")]);
    assert_eq!((sizes(&longer), models(&longer)), (sizes(&plain), models(&plain)));
    let smaller = of(&[("gpus", "{from: 1, to: 4}"), ("models", "[dlrm/2048]")]);
    assert_eq!(priorities(&smaller), priorities(&plain));
    let near = |(a, b): (&Arrival, &Arrival)| alone(a).0.abs_diff(alone(b).0) < Duration::SECOND.0;
    assert!(smaller.iter().zip(&plain).all(near), "durations differ by the rounding to iterations alone");
    let more = of(&[("jobs", "240")]);
    assert_eq!(sizes(&more)[..120], sizes(&plain), "the first are the same however many there are");
    let busier = of(&[("arrivals", "{poisson: {load: 1.6}}")]);
    let halved = |(a, b): (&Arrival, &Arrival)| a.spec == b.spec && a.at.0.abs_diff(b.at.0 / 2) < 1000;
    assert!(busier.iter().zip(&plain).all(halved), "twice the load is the same jobs in half the time");
}

#[test]
fn a_drawn_job_is_a_training_loop_of_members() {
    let jobs = experiment("0.8").arrivals(1);
    for job in &jobs {
        let training = job.training.as_ref().unwrap();
        let Pattern::Gradients(model) = &training.pattern else { panic!("{training:?}") };
        assert_eq!(training.noise, Noise::Gaussian(Share(10_000)));
        assert_eq!(job.spec.work.iterations.unwrap().0, training.iterations);
        let members: u64 = job.spec.roles.iter().map(|role| u64::from(role.gang.min())).sum();
        assert_eq!(members, size(job).div_ceil(4), "members of up to 4 GPUs, the last takes the rest");
        let least = job.spec.least();
        assert_eq!((least.cpu, least.memory), (Cpu::cores(8 * size(job)), Memory::gib(64 * size(job))));
        let profile = job.spec.profile.as_ref().unwrap();
        let compute = model.iteration.compute + model.iteration.finish;
        assert_eq!(profile.compute(None, 1), Some(compute));
        // A ring over whole nodes of 100 Gbps; it leaves a rack over 150 Gbps, which is no narrower.
        let nodes = size(job).div_ceil(4) as u32;
        let rate = "100Gbps".parse().unwrap();
        let iteration = model.iteration.alone(metronome_core::model::profile::ring_load(nodes), rate);
        assert_eq!(alone(job), iteration.times(training.iterations));
    }
    assert_eq!(&*jobs[0].spec.name, "thirteen-models-0");
}

#[test]
fn drawn_jobs_without_models_send_nothing_and_need_no_links() {
    let text = "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec: {nodes: [{count: 4, gpus: 4}]}\n\
        ---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {name: it}\n\
        spec: {jobs: 50, arrivals: {poisson: {load: 0.5}}, gpus: {from: 1, to: 16}, duration: {median: 1m}}\n\
        ---\napiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: first}\nspec: {work: {duration: 1m}}\n";
    let jobs = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap().arrivals(1);
    assert_eq!((jobs.len(), &*jobs[0].spec.name), (51, "first"), "sources merge by time");
    assert!(jobs.iter().all(|job| job.training.is_none() && alone(job) == Duration::MINUTE));
}

/// The queue `default` with users of three standings, beside a drawn workload.
fn with_users(lines: &[(&str, &str)]) -> Scenario {
    let spec: String = lines.iter().map(|(field, value)| format!("  {field}: {value}\n")).collect();
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: lab}}\nspec: {{nodes: [{{count: 8, cpu: 16, gpus: 4}}]}}\n\
         ---\napiVersion: metronome.dev/v1alpha1\nkind: Queue\nmetadata: {{name: default}}\nspec: {{users: [{{name: ann, priority: high}}]}}\n\
         ---\napiVersion: metronome.dev/v1alpha1\nkind: Queue\nmetadata: {{name: side}}\nspec: {{users: [{{name: cid, priority: low}}]}}\n\
         ---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {{name: drawn}}\nspec:\n  jobs: 1000\n  \
         arrivals: {{poisson: {{load: 0.5}}}}\n  gpus: {{from: 1, to: 8, perMember: 1}}\n  duration: {{median: 1m}}\n{spec}"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap()
}

#[test]
fn users_own_their_shares_of_the_jobs_with_their_standing_in_their_queue() {
    let users = "[{name: ann, share: 0.2}, {name: bob, share: 0.5}, {name: cid, share: 0.3, queue: side}]";
    let jobs = with_users(&[("users", users)]).arrivals(1);
    let part = |standing: u32, queue: u32| {
        share(&jobs, |job| job.spec.user == Share(standing) && job.spec.queue.0 == queue)
    };
    for (found, wanted) in [(part(1_000_000, 0), 0.2), (part(500_000, 0), 0.5), (part(0, 1), 0.3)] {
        assert!((found - wanted).abs() < 0.05, "{found} instead of {wanted}");
    }
    let plain = with_users(&[]).arrivals(1);
    let same = |(a, b): (&Arrival, &Arrival)| a.at == b.at && a.spec.roles == b.spec.roles;
    assert!(jobs.iter().zip(&plain).all(same), "whose they are changes nothing else");
}

#[test]
fn servers_come_beside_the_workers_and_are_no_more_than_them() {
    let jobs = with_users(&[("servers", "{from: 1, to: 3, resources: {cpu: 2}}")]).arrivals(1);
    let count = |job: &Arrival, kind| -> u32 {
        job.spec.roles.iter().filter(|role| role.kind == kind).map(|role| role.gang.min()).sum()
    };
    for job in &jobs {
        let (servers, workers) = (count(job, RoleKind::Ps), count(job, RoleKind::Worker));
        assert!((1..=3).contains(&servers) && servers <= workers, "{servers} beside {workers}");
        assert_eq!(job.spec.least().cpu, Cpu::cores(2 * u64::from(servers)));
    }
    let wide: Vec<Arrival> = jobs.into_iter().filter(|job| count(job, RoleKind::Worker) >= 3).collect();
    for servers in 1..=3 {
        let part = share(&wide, |job| count(job, RoleKind::Ps) == servers);
        assert!((part - 1.0 / 3.0).abs() < 0.06, "{servers}: {part}");
    }
}
