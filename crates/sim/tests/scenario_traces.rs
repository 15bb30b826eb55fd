//! Bad traces: every error says file and line.

use std::fs;
use std::io::Write;
use std::path::Path;

use metronome_sim::scenario::{InputError, Scenario};

const SCENARIO: &str = "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {nodes: [{count: 24, gpus: 4}]}
---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {name: traced}
spec: {arrivals: {trace: jobs.csv}}
";

/// The error for a trace beside a sound scenario.
fn trace_error(trace: &[u8]) -> InputError {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.csv"), trace).unwrap();
    let error = Scenario::read_from(SCENARIO.as_bytes(), "lab.yaml", folder.path());
    error.expect_err(&String::from_utf8_lossy(trace))
}

#[test]
fn a_bad_row_is_named_by_file_and_line() {
    const HEADER: &str = "job,submit_s,gpus,duration_s\n";
    let cases = [
        ("a,0,1,10\nb,1,1", Some(3), "the row has 3 fields instead of 4"),
        ("a,0,1,10\na,1,1,10\n", Some(3), "a second job is called `a`"),
        ("a,-1,1,10\n", Some(2), "submit_s: `-1s` is negative"),
        ("a,NaN,1,10\n", Some(2), "submit_s: `NaN` is not a number with a unit"),
        ("a,0,1,1e30\n", Some(2), "duration_s: `1e30s` is too large"),
        ("a,5m,1,10\n", Some(2), "submit_s: `5m` is not a number with a unit"),
        ("a,0,0,10\n", Some(2), "gpus: a job has more than 0 GPUs"),
        ("a,0,1e9,10\n", Some(2), "gpus: `1e9` is more than 1000000 GPUs"),
        ("a,0,1,0\n", Some(2), "job `a` has no duration"),
        (",0,1,10\n", Some(2), "a name is not empty"),
        ("a,,1,10\n", Some(2), "submit_s is empty"),
        ("\"a,0,1,10\nb,0,1,10\n", Some(2), "a quoted field does not end on its line"),
        ("", None, "there are no jobs in it"),
    ];
    for (rows, line, message) in cases {
        let error = trace_error(format!("{HEADER}{rows}").as_bytes());
        assert!(error.file().ends_with("jobs.csv"), "{error}");
        assert_eq!((error.message(), error.position().map(|at| at.line)), (message, line), "{rows}");
    }
}

#[test]
fn a_trace_has_the_columns_that_are_known() {
    let cases = [
        ("", None, "it is empty", "the first line is a header with job,submit_s,gpus,duration_s"),
        (
            "job,submit_s,gpus\n",
            Some(1),
            "column `duration_s` is missing",
            "the first line is a header with job,submit_s,gpus,duration_s",
        ),
        (
            "job,submit_s,gpus,duration_s,prority\n",
            Some(1),
            "unknown column `prority`",
            "did you mean `priority`?",
        ),
    ];
    for (text, line, message, hint) in cases {
        let error = trace_error(text.as_bytes());
        assert_eq!((error.message(), error.position().map(|at| at.line)), (message, line), "{text}");
        assert_eq!(error.hint(), Some(hint));
    }
    let error = trace_error(b"job,submit_s,gpus,duration_s\n\xff,0,1,10\n");
    assert_eq!((error.message(), error.position().map(|at| at.line)), ("it is not UTF-8 text", Some(2)));
    let error = trace_error(b"job,submit_s,gpus,duration_s,queue\na,0,1,10,defualt\n");
    assert_eq!(
        (error.message(), error.hint()),
        ("there is no queue `defualt`", Some("did you mean `default`?"))
    );
}

#[test]
fn a_missing_trace_is_traced_to_the_line_that_names_it() {
    let error = Scenario::read_from(SCENARIO.as_bytes(), "lab.yaml", Path::new("")).unwrap_err();
    assert_eq!(error.to_string(), "read jobs.csv: there is no such file");
    assert_eq!(error.hint(), Some("it is the trace of lab.yaml:9"));
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_gzip_bomb_is_stopped() {
    let mut bomb = zipped(b"job,submit_s,gpus,duration_s\n");
    bomb.extend(zipped(&vec![b'\n'; 1 << 20]).repeat(1025));
    assert!(bomb.len() < 2 << 20);
    assert_eq!(trace_error(&bomb).message(), "it is larger than 1024 MiB");
    assert_eq!(trace_error(&bomb[..200]).message(), "it ends in the middle of its compressed data");
}
