//! What somebody has asked of an API server, by its own record.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::jiff::Timestamp;
use metronome_testcluster::Options;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Audit {
    folder: TempDir,
}

/// One thing asked for: as roles say it, where and when, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) group: String,
    /// With its part, as in `pods/binding`.
    pub(crate) resource: String,
    pub(crate) verb: String,
    pub(crate) namespace: String,
    pub(crate) at: Timestamp,
    code: u64,
}

impl Audit {
    pub(crate) fn new() -> Self {
        let audit = Self { folder: tempfile::tempdir().unwrap() };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            // A watch is recorded when it starts: it ends long after the test has.
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}],
        });
        fs::write(audit.policy(), policy.to_string()).unwrap();
        audit
    }

    fn policy(&self) -> PathBuf {
        self.folder.path().join("policy.json")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    /// An API server that keeps this record.
    pub(crate) fn options(&self) -> Options {
        let options = Options::from_env();
        let options = options.api_server_flag(format!("--audit-policy-file={}", self.policy().display()));
        options.api_server_flag(format!("--audit-log-path={}", self.log().display()))
    }

    /// All that a user has asked for about objects, in the order in which it was recorded.
    pub(crate) fn of(&self, user: &str) -> Vec<Asked> {
        let text = fs::read_to_string(self.log()).unwrap();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_of = |record: &Value| {
            record["impersonatedUser"]["username"] == user || record["user"]["username"] == user
        };
        let own = records.filter(is_of);
        own.filter(|record| record["objectRef"]["resource"].is_string())
            .map(|record| Asked::read(&record))
            .collect()
    }
}

impl Asked {
    fn read(record: &Value) -> Self {
        let object = &record["objectRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = match object["subresource"].as_str() {
            Some(part) => format!("{}/{part}", text(&object["resource"])),
            None => text(&object["resource"]),
        };
        Self {
            group: text(&object["apiGroup"]),
            resource,
            verb: text(&record["verb"]),
            namespace: text(&object["namespace"]),
            at: text(&record["requestReceivedTimestamp"]).parse().unwrap(),
            code: record["responseStatus"]["code"].as_u64().unwrap_or_default(),
        }
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.code == 403
    }
}
