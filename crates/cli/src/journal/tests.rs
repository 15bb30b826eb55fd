//! Journals that were cut, that are none, and that tell of another history.

use metronome_core::engine::forecast::{Sought, look_ahead};
use metronome_core::engine::{Event, Settings};
use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::id::IdVec;
use metronome_core::model::job::{Gang, JobSpec};
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Gpus, Resources};
use metronome_words::{Foreseen, document, document_foreseeing};

use super::*;

/// A journal in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Journal for Lines {
    fn record(&mut self, record: &Record) {
        self.0.lock().unwrap().push(record.to_line());
    }
}

/// One node of four GPUs; `a` takes all of them at the beginning, `b` waits from second 10 on.
fn recorded() -> Vec<String> {
    let four = Resources { gpus: Gpus::whole(4), ..Resources::NONE };
    let mut cluster = Cluster::new(&[]).unwrap();
    cluster.add_node(&NodeSpec { name: "n".into(), capacity: four, ..NodeSpec::default() }).unwrap();
    let queues = IdVec::filled(Queue::open("default"), 1);
    let policy = Policy::named("fifo").unwrap();
    let mut engine = Engine::new(cluster, queues, policy, Settings::default());
    let lines = Lines::default();
    engine.keep_journal(Box::new(lines.clone()));
    for (name, at) in [("a", 0), ("b", 10)] {
        let spec = JobSpec::workers(name, Gang::rigid(1).unwrap(), four);
        engine.observe(Instant::from_secs(at), Event::JobSubmitted(Arc::new(spec)));
        let _ = engine.poll(Instant::from_secs(at));
    }
    drop(engine);
    lines.0.lock().unwrap().clone()
}

fn read(lines: &[String], until: Option<u64>) -> Result<Past, Trouble> {
    let until = until.map(Instant::from_secs);
    let replay = replayed(lines.join("\n").as_bytes(), until)?;
    let mismatches = replay.mismatches.iter().map(|(then, now)| difference(then, now)).collect();
    Ok(Past { replay, until, mismatches })
}

#[test]
fn a_journal_is_decided_again_without_differences() {
    let past = read(&recorded(), None).unwrap();
    assert!(past.decisions() > 0);
    assert_eq!(past.mismatches(), [""; 0]);
    assert_eq!(past.job_names().iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn whoever_waits_goes_on_waiting_between_records() {
    let past = read(&recorded(), Some(25)).unwrap();
    let (_, b) = past.explain("b").unwrap();
    assert_eq!((b.state, b.waited), (State::Queued, Duration::from_secs(15)));
}

#[test]
fn what_comes_after_the_time_asked_for_is_not_known() {
    let past = read(&recorded(), Some(5)).unwrap();
    assert!(past.explain("a").is_some());
    assert!(past.explain("b").is_none());
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let mut lines = recorded();
    let whole = read(&lines, None).unwrap().replay.records;
    let last = lines.last_mut().unwrap();
    last.truncate(last.len() / 2);
    assert_eq!(read(&lines, None).unwrap().replay.records, whole - 1);
}

#[test]
fn a_broken_line_before_others_is_trouble() {
    let mut lines = recorded();
    lines[2].truncate(5);
    let trouble = read(&lines, None).unwrap_err();
    assert_eq!(trouble, Trouble { line: 3, what: "the record is not whole".into() });
}

#[test]
fn something_else_is_not_a_journal() {
    let trouble = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        read(&lines, None).unwrap_err().what
    };
    assert_eq!(trouble(&["kind: Cluster"]), "it is not a journal");
    assert_eq!(trouble(&[]), "there is no state in it to begin from");
}

#[test]
fn another_history_is_a_difference() {
    let mut lines = recorded();
    let wider = lines[2].replace("4000", "1000");
    assert_ne!(lines[2], wider);
    lines[2] = wider;
    assert_ne!(read(&lines, None).unwrap().mismatches(), [""; 0]);
}

#[test]
fn explanations_for_programs_are_what_the_schema_says() {
    let past = read(&recorded(), None).unwrap();
    let names = past.state();
    for job in ["a", "b"] {
        let (id, explanation) = past.explain(job).unwrap();
        let outlook = look_ahead(past.state(), past.now(), Sought::One(id));
        let foreseen = Foreseen::of(&outlook, id).unwrap();
        crate::schema::assert_conforms("explain", &document(&explanation, names));
        crate::schema::assert_conforms("explain", &document_foreseeing(&explanation, names, &foreseen));
    }
}
