//! Damaged inputs: whatever is read, the answer is a scenario or an error that names the file, never a panic.
//!
//! `METRONOME_FUZZ` is the number of damaged copies of each input; seeds are fixed, so a failure repeats.

use std::fs;
use std::io::Write;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use metronome_sim::import::{self, ImportOptions, MuriOptions, TimeFrom};
use metronome_sim::scenario::{InputError, Scenario};
use rand::Rng;
use rand_pcg::Pcg32;

const SCENARIO: &str = include_str!("inputs/everything.yaml");
const DRAWN: &str = include_str!("inputs/drawn.yaml");
const PIECES: &str = include_str!("inputs/pieces.yaml");
const TRACE: &str = include_str!("inputs/jobs.csv");
const MODELS: &str = include_str!("inputs/models.csv");
const TIRESIAS: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n\
    0,1,0,606,vgg19,164,30\r\n1,8,30,133,vgg11,147,23\r\n2,2,53.5,157,\"inception4\",127,26\r\n";
const PHILLY: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
    2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,16,2951.0,6214e9\n\n";
const MURI: &str = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time\n\
    0,8,0,10956,gpt2,4,5095000,91000,437\n1,8,1534000,1463,vgg16,16,281000,28000,214.5\n";

/// What a number, a name or a whole value is replaced with.
const NASTY: [&str; 24] = [
    "1e30",
    "99999999999999999999",
    "-1",
    "NaN",
    ".inf",
    "-.inf",
    "0",
    "1e-400",
    "1e999999999",
    "~",
    "null",
    "true",
    "''",
    "\"\\0\"",
    "&a [*a]",
    "*unknown",
    "!!binary aGk=",
    "!!int x",
    "<<",
    "{}",
    "[]",
    "? ",
    "\u{feff}",
    "|\n x",
];

fn iterations() -> u32 {
    std::env::var("METRONOME_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(800)
}

fn below(random: &mut Pcg32, bound: usize) -> usize {
    random.next_u32() as usize % bound.max(1)
}

fn damaged(original: &[u8], other: &[u8], random: &mut Pcg32) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=below(random, 3) {
        damage(&mut bytes, other, random);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Pcg32) {
    let at = below(random, bytes.len());
    match below(random, 10) {
        0 => flip(bytes, at, random),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..(at + below(random, 40)).min(bytes.len()))),
        3 => repeat_line(bytes, at, 1 + below(random, 3)),
        4 => splice(bytes, at, other, random),
        5 | 6 => replace_word(bytes, at, NASTY[below(random, NASTY.len())].as_bytes()),
        7 => replace_word(bytes, at, "x".repeat(1 << below(random, 18)).as_bytes()),
        8 => replace_word(bytes, at, nested(random).as_bytes()),
        _ => insert(bytes, at, &[random.next_u32() as u8]),
    }
}

fn flip(bytes: &mut [u8], at: usize, random: &mut Pcg32) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << below(random, 8);
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    bytes.splice(at..at, what.iter().copied());
}

fn repeat_line(bytes: &mut Vec<u8>, at: usize, times: usize) {
    let (start, end) = around(bytes, at, |byte| byte == b'\n');
    let line = [&bytes[start..end], b"\n"].concat().repeat(times);
    insert(bytes, start, &line);
}

fn splice(bytes: &mut Vec<u8>, at: usize, other: &[u8], random: &mut Pcg32) {
    let start = below(random, other.len());
    let end = (start + below(random, 200)).min(other.len());
    insert(bytes, at, &other[start..end]);
}

fn replace_word(bytes: &mut Vec<u8>, at: usize, with: &[u8]) {
    let (start, end) = around(bytes, at, |byte| b" ,:{}[]\n".contains(&byte));
    bytes.splice(start..end, with.iter().copied());
}

/// The stretch around `at` that no separator interrupts.
fn around(bytes: &[u8], at: usize, separates: impl Fn(u8) -> bool) -> (usize, usize) {
    let start = bytes[..at].iter().rposition(|byte| separates(*byte)).map_or(0, |before| before + 1);
    let end = bytes[at..].iter().position(|byte| separates(*byte)).map_or(bytes.len(), |after| at + after);
    (start, end)
}

/// Brackets without end, or aliases that double at every step.
fn nested(random: &mut Pcg32) -> String {
    let depth = 1 << below(random, 14);
    match below(random, 3) {
        0 => "[".repeat(depth),
        1 => "{a: ".repeat(depth),
        _ => {
            let step = |n: usize| format!("&a{} [*a{n},*a{n},*a{n},*a{n}]", n + 1);
            let steps: Vec<String> = (0..depth.min(40)).map(step).collect();
            format!("[&a0 x,{}]", steps.join(","))
        }
    }
}

/// Reads damaged copies; each gives something or an error with a name.
fn survives<T>(what: &str, original: &[u8], read: impl Fn(&[u8]) -> Result<T, InputError>) {
    let (mut good, mut bad) = (0, 0);
    for seed in 0..iterations() {
        let mut random = Pcg32::new(u64::from(seed), what.len() as u64);
        let bytes = damaged(original, SCENARIO.as_bytes(), &mut random);
        match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(Ok(_)) => good += 1,
            Ok(Err(error)) => {
                bad += 1;
                assert!(
                    !error.file().is_empty() && !error.message().is_empty(),
                    "{what}, seed {seed}: {error}"
                );
                assert!(error.to_string().len() < 2000, "{what}, seed {seed}: an error is short");
            }
            Err(_) => panic!("{what}, seed {seed}: reading panicked"),
        }
    }
    assert!(bad > good / 10, "{what}: {good} good, {bad} bad: the damage is real");
}

fn options() -> ImportOptions {
    ImportOptions { nodes: NonZeroU32::MIN, gpus_per_node: NonZeroU32::MIN, limit: None }
}

/// A folder with a file in it that is written again and again.
struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

#[test]
fn the_inputs_are_good_before_they_are_damaged() {
    let scratch = Scratch::new();
    scratch.put("jobs.csv", TRACE.as_bytes());
    scratch.put("models.csv", MODELS.as_bytes());
    for (text, jobs) in [(SCENARIO, 5), (DRAWN, 22), (PIECES, 4)] {
        let scenario = Scenario::read(&scratch.put("s.yaml", text.as_bytes())).unwrap();
        assert_eq!(scenario.arrivals(1).len(), jobs);
    }
    import::tiresias(&scratch.put("t.csv", TIRESIAS.as_bytes()), options()).unwrap();
    import::philly(&scratch.put("p.csv", PHILLY.as_bytes()), options()).unwrap();
    import::muri(&scratch.put("m.csv", MURI.as_bytes()), options(), MuriOptions::PUBLISHED).unwrap();
}

#[test]
fn a_damaged_scenario_never_panics() {
    let scratch = Scratch::new();
    scratch.put("jobs.csv", TRACE.as_bytes());
    scratch.put("models.csv", MODELS.as_bytes());
    for (what, text) in [("scenario", SCENARIO), ("drawn", DRAWN), ("links", PIECES)] {
        survives(what, text.as_bytes(), |bytes| {
            let scenario = Scenario::read_from(bytes, "damaged.yaml", scratch.folder.path())?;
            assert_eq!(scenario.arrivals(1).len(), scenario.job_count(), "what is read can be drawn");
            Ok(scenario)
        });
    }
}

#[test]
fn a_damaged_trace_never_panics() {
    let scratch = Scratch::new();
    let scenario = scratch.put("s.yaml", SCENARIO.as_bytes());
    survives("trace", TRACE.as_bytes(), |bytes| {
        scratch.put("jobs.csv", bytes);
        Scenario::read(&scenario)
    });
}

#[test]
fn a_damaged_trace_of_models_never_panics() {
    let scratch = Scratch::new();
    let scenario = scratch.put("s.yaml", PIECES.as_bytes());
    survives("models", MODELS.as_bytes(), |bytes| {
        scratch.put("models.csv", bytes);
        Scenario::read(&scenario)
    });
}

#[test]
fn a_damaged_gzipped_trace_never_panics() {
    let scratch = Scratch::new();
    let scenario = scratch.put("s.yaml", SCENARIO.as_bytes());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(TRACE.as_bytes()).unwrap();
    survives("gzip", &encoder.finish().unwrap(), |bytes| {
        scratch.put("jobs.csv", bytes);
        Scenario::read(&scenario)
    });
}

#[test]
fn a_damaged_public_trace_never_panics_and_what_is_imported_is_readable() {
    let scratch = Scratch::new();
    let out = scratch.folder.path().join("out.yaml");
    let read_back = |imported: import::Imported, out: &Path| {
        import::write(&imported, out).unwrap();
        Scenario::read(out)
    };
    survives("tiresias", TIRESIAS.as_bytes(), |bytes| {
        read_back(import::tiresias(&scratch.put("t.csv", bytes), options())?, &out)
    });
    survives("philly", PHILLY.as_bytes(), |bytes| {
        read_back(import::philly(&scratch.put("p.csv", bytes), options())?, &out)
    });
    survives("muri", MURI.as_bytes(), |bytes| {
        let muri = MuriOptions { time: TimeFrom::Iterations, ..MuriOptions::PUBLISHED };
        read_back(import::muri(&scratch.put("m.csv", bytes), options(), muri)?, &out)
    });
}
