//! The events that a test executable prints with `--format json`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

/// Every event begins with this. A program that a test starts may write to the same output before it.
const EVENT: &str = "{ \"type\":";

/// An ignored test whose reason begins with this is a part of another test, which runs it in a process of its own.
const PART_OF_ANOTHER: &str = "run by ";

/// What one executable did, as far as it told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) passed: Vec<(String, Duration)>,
    /// With their output.
    pub(crate) failed: Vec<(String, String)>,
    /// With their reasons.
    pub(crate) ignored: Vec<(String, String)>,
    /// Tests that have begun and not ended.
    pub(crate) running: BTreeSet<String>,
    /// Whether it came to its end: only then all tests have run.
    pub(crate) is_complete: bool,
    /// Everything else on its output.
    pub(crate) noise: String,
}

impl Record {
    /// Takes in a line. Returns name and output of a test that has failed by it.
    pub(crate) fn read(&mut self, line: &str) -> Option<(&str, &str)> {
        let at = line.find(EVENT).unwrap_or(line.len());
        let (noise, event) = line.split_at(at);
        let Ok(event) = serde_json::from_str::<Value>(event) else {
            self.note(line);
            return None;
        };
        self.note(noise);
        match event["type"].as_str()? {
            "suite" => self.is_complete |= event["event"] != "started",
            "test" => return self.test(&event),
            _ => {}
        }
        None
    }

    fn test(&mut self, event: &Value) -> Option<(&str, &str)> {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let name = text("name");
        match event["event"].as_str()? {
            "started" => drop(self.running.insert(name)),
            "ok" => {
                self.running.remove(&name);
                let took = Duration::from_secs_f64(event["exec_time"].as_f64().unwrap_or_default());
                self.passed.push((name, took));
            }
            "failed" => {
                self.running.remove(&name);
                let message = event["message"].as_str().map(|message| format!("{message}\n"));
                self.failed.push((name, message.unwrap_or_default() + &text("stdout")));
                return self.failed.last().map(|(name, output)| (name.as_str(), output.as_str()));
            }
            "ignored" => {
                self.running.remove(&name);
                let reason = text("message");
                if !reason.starts_with(PART_OF_ANOTHER) {
                    self.ignored.push((name, reason));
                }
            }
            // It takes long, which is told at the end.
            _ => {}
        }
        None
    }

    fn note(&mut self, text: &str) {
        if !text.is_empty() {
            self.noise.push_str(text);
            self.noise.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Record {
        let mut record = Record::default();
        for line in text.lines() {
            record.read(line);
        }
        record
    }

    #[test]
    fn each_test_is_counted_once_with_its_time_or_output() {
        let record = record(
            r#"{ "type": "suite", "event": "started", "test_count": 5 }
{ "type": "test", "event": "started", "name": "a" }
{ "type": "test", "event": "started", "name": "b" }
a program of a test says this{ "type": "test", "name": "a", "event": "ok", "exec_time": 1.5 }
{ "type": "test", "event": "timeout", "name": "b" }
{ "type": "test", "name": "b", "event": "failed", "exec_time": 0.1, "stdout": "thread panicked\n" }
{ "type": "test", "event": "started", "name": "c" }
{ "type": "test", "name": "c", "event": "ignored" }
{ "type": "test", "event": "started", "name": "d" }
{ "type": "test", "name": "d", "event": "ignored", "message": "run by `a`" }
{ not an event
{ "type": "suite", "event": "failed", "passed": 1, "failed": 1 }"#,
        );
        assert_eq!(record.passed, [("a".to_owned(), Duration::from_millis(1500))]);
        assert_eq!(record.failed, [("b".to_owned(), "thread panicked\n".to_owned())]);
        assert_eq!(record.ignored, [("c".to_owned(), String::new())]);
        assert!(record.is_complete && record.running.is_empty());
        assert_eq!(record.noise, "a program of a test says this\n{ not an event\n");
    }

    #[test]
    fn an_executable_that_was_cut_off_leaves_the_tests_that_ran() {
        let record = record("{ \"type\": \"test\", \"event\": \"started\", \"name\": \"a\" }");
        assert!(!record.is_complete);
        assert_eq!(record.running.into_iter().collect::<Vec<_>>(), ["a"]);
    }
}
