//! Whole jobs, each member on a thread of its own, over real TCP on loopback.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as Time;

use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bytes, Duration};
use metronome_trainer::{Checkpoint, Compute, Ended, Notes, Place, Saves, Task, TrainingError, train};

fn task(iterations: u64) -> Task {
    let bucket = |ready: u64, bytes: u64| Bucket { ready: Duration::from_millis(ready), bytes: Bytes(bytes) };
    Task {
        iteration: Iteration {
            compute: Duration::from_millis(6),
            buckets: vec![bucket(1, 400_000), bucket(2, 30_000), bucket(6, 7)],
            finish: Duration::from_millis(1),
        },
        iterations,
        stretches: vec![1.0, 1.1, 0.95],
        compute: Compute::Sleeps,
        learns: Default::default(),
        saves: Saves::default(),
        notes: Notes::default(),
    }
}

/// Ports that were free a moment ago.
fn addresses(count: usize) -> Vec<SocketAddr> {
    let open: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    open.iter().map(|listener| listener.local_addr().unwrap()).collect()
}

fn places(nodes: &[&str], servers: usize, folder: Option<&Path>) -> Vec<Place> {
    let peers = addresses(nodes.len());
    let place = |rank: usize| Place {
        job: "default/test".into(),
        member: format!("worker-{rank}"),
        rank,
        peers: peers.clone(),
        servers,
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        folder: folder.map(Path::to_owned),
        checkpoints: folder.map(Path::to_owned),
        record: folder.map(|folder| folder.join("iterations.csv")),
        ..Place::default()
    };
    (0..nodes.len()).map(place).collect()
}

fn run(task: &Task, places: Vec<Place>, leave: &[Arc<AtomicBool>]) -> Vec<Result<Ended, TrainingError>> {
    let members: Vec<_> = places
        .into_iter()
        .enumerate()
        .map(|(rank, place)| {
            let (task, leave) = (task.clone(), leave.get(rank).cloned().unwrap_or_default());
            thread::spawn(move || train(&task, &place, &leave))
        })
        .collect();
    members.into_iter().map(|member| member.join().unwrap()).collect()
}

#[test]
fn everybody_has_the_sum_of_all_whatever_the_way() {
    let ways: [(&[&str], usize); 8] = [
        (&["a"], 0),
        (&["a", "b"], 0),
        (&["a", "b", "c", "d", "e"], 0),
        (&["a", "a", "a"], 0),
        (&["a", "a", "b", "c", "c", "c"], 0),
        (&["s", "a"], 1),
        (&["s", "a", "b", "c"], 1),
        (&["s", "t", "u", "a", "b"], 3),
    ];
    for (nodes, servers) in ways {
        let ended = run(&task(5), places(nodes, servers, None), &[]);
        for (rank, ended) in ended.into_iter().enumerate() {
            assert_eq!(
                ended.unwrap(),
                Ended::Done { iterations: 5 },
                "{nodes:?}, {servers} servers, member {rank}"
            );
        }
    }
}

#[test]
fn when_one_is_asked_to_leave_all_leave_after_the_same_iteration_and_go_on_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let leave: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::default()).collect();
    let asked = leave[2].clone();
    let asks = thread::spawn(move || {
        thread::sleep(Time::from_millis(60));
        asked.store(true, Ordering::Relaxed);
    });
    let ended = run(&task(1_000), places(&["a", "b", "c"], 0, Some(folder.path())), &leave);
    asks.join().unwrap();
    let after: Vec<Ended> = ended.into_iter().map(Result::unwrap).collect();
    let Ended::Left { iterations } = after[0] else { panic!("{after:?}") };
    assert!(after.iter().all(|other| *other == after[0]) && iterations > 0, "{after:?}");
    assert_eq!(Checkpoint::load(Some(folder.path())).unwrap().iterations, iterations);

    let whole = iterations + 3;
    let ended = run(&task(whole), places(&["a", "b"], 0, Some(folder.path())), &[]);
    assert!(ended.into_iter().all(|ended| ended.unwrap() == Ended::Done { iterations: whole }));
    let table = std::fs::read_to_string(folder.path().join("iterations.csv")).unwrap();
    let done: Vec<u64> =
        table.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert_eq!(done, (0..whole).collect::<Vec<u64>>(), "every iteration once, with other members");
}

#[test]
fn what_the_leader_sends_is_noted_by_who_hears_it() {
    let folder = tempfile::tempdir().unwrap();
    let noted = Task { notes: Notes::Bytes, ..task(8) };
    let ended = run(&noted, places(&["a", "b", "c"], 0, Some(folder.path())), &[]);
    assert!(ended.into_iter().all(|ended| ended.is_ok()));
    let rows = |file: &str| -> Vec<Vec<u64>> {
        let table = std::fs::read_to_string(folder.path().join(file)).unwrap();
        let row = |line: &str| line.split(',').map(|field| field.parse().unwrap()).collect();
        table.lines().skip(1).map(row).collect()
    };
    let (iterations, heard) = (rows("iterations.csv"), rows("heard.csv"));
    assert!(heard.is_sorted_by(|one, next| one[0] < next[0] && one[1] <= next[1]));
    // Each of three sends 4/3 of the bytes, and a little more, as every part is made a multiple of three.
    let (least, most) = (573_000, 575_000);
    let last = heard.last().unwrap();
    assert!((8 * least..=8 * most).contains(&last[1]), "{last:?}");
    let by = iterations[4][1];
    let half = heard.iter().take_while(|row| row[0] < by).last().unwrap()[1];
    assert!((3 * least..=4 * most).contains(&half), "what was sent last may still come in: {half}");
}

#[test]
fn whoever_loses_a_member_says_so_and_does_not_hang() {
    let mut places = places(&["a", "b", "c"], 0, None);
    let quits = places.pop().unwrap();
    let short = thread::spawn(move || train(&task(3), &quits, &Arc::default()).unwrap());
    let ended = run(&task(1_000), places, &[]);
    assert_eq!(short.join().unwrap(), Ended::Done { iterations: 3 });
    for ended in ended {
        assert!(matches!(ended, Err(TrainingError::Exchange { iteration: 3, .. })), "{ended:?}");
    }
}

#[test]
fn a_stranger_at_the_door_changes_nothing() {
    let places = places(&["a", "b"], 0, None);
    let door = places[1].peers[1];
    let knocks = thread::spawn(move || {
        use std::io::Write;
        for _ in 0..20 {
            if let Ok(mut stream) = std::net::TcpStream::connect(door) {
                let _ = stream.write_all(&[0x55; 24]);
            }
            thread::sleep(Time::from_millis(3));
        }
    });
    let ended = run(&task(3), places, &[]);
    knocks.join().unwrap();
    assert!(ended.into_iter().all(|ended| ended.unwrap() == Ended::Done { iterations: 3 }));
}

#[test]
fn what_is_computed_on_cores_takes_the_time_of_cores() {
    let burns =
        Task { compute: Compute::Burns { serial: 0.5, most_cores: 2.0 }, stretches: Vec::new(), ..task(3) };
    let begin = std::time::Instant::now();
    let ended = run(&burns, places(&["a"], 0, None), &[]);
    assert_eq!(ended.into_iter().next().unwrap().unwrap(), Ended::Done { iterations: 3 });
    // Half of 6 ms on one core, the other half on two, and 1 ms at the end; never less, whatever the machine.
    let least = Time::from_micros(3 * (3_000 + 1_500 + 1_000));
    assert!(begin.elapsed() >= least, "{:?}", begin.elapsed());
}
