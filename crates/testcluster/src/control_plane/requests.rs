//! How much an API server has been asked, as it counts itself.

use std::collections::BTreeMap;
use std::ops::Sub;

use super::{Component, ControlPlane};
use crate::error::Result;

/// The metric, which has one line for each combination of its labels.
const REQUESTS: &str = "apiserver_request_total{";
const CHANGING: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];

/// Requests, refused ones among them, by what they ask: `POST pods/binding`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<String, u64>);

impl ControlPlane {
    /// All requests for resources since the API server started, whoever made them: its counters know no users.
    pub async fn requests(&self) -> Result<Requests> {
        Ok(Requests::parse(&self.get(Component::ApiServer, "/metrics").await?))
    }
}

impl Requests {
    fn parse(metrics: &str) -> Self {
        let mut counts = BTreeMap::new();
        for (kind, count) in metrics.lines().filter_map(request) {
            *counts.entry(kind).or_default() += count;
        }
        Self(counts)
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Those that change something.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(|kind| CHANGING.iter().any(|verb| kind.split(' ').next() == Some(verb)))
    }

    /// Only those that are wanted, by what they ask.
    #[must_use]
    pub fn filter(mut self, wanted: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|kind, _| wanted(kind));
        self
    }
}

/// What came after an earlier count.
impl Sub for Requests {
    type Output = Self;

    fn sub(mut self, earlier: Self) -> Self {
        for (kind, count) in &mut self.0 {
            *count -= earlier.0.get(kind).copied().unwrap_or(0);
        }
        self.0.retain(|_, count| *count > 0);
        self
    }
}

/// What a line of the metrics counts, and how often, if it counts requests for resources.
fn request(line: &str) -> Option<(String, u64)> {
    let (labels, count) = line.strip_prefix(REQUESTS)?.rsplit_once("} ")?;
    let label = |name: &str| labels.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let value = |name: &str| Some(label(name)?.trim_matches('"'));
    let verb = value("verb")?;
    let kind = match (value("resource").filter(|resource| !resource.is_empty())?, value("subresource")?) {
        (resource, "") => format!("{verb} {resource}"),
        (resource, subresource) => format!("{verb} {resource}/{subresource}"),
    };
    // A count is a float to Prometheus, and may be written as one.
    Some((kind, count.parse::<f64>().ok()? as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"
# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 3
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="status",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 9
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+03
"#;

    fn counted(requests: &Requests) -> Vec<(&str, u64)> {
        requests.iter().collect()
    }

    #[test]
    fn requests_are_summed_over_their_answers() {
        let requests = Requests::parse(BEFORE);
        assert_eq!(counted(&requests), [("LIST pods", 9), ("PATCH pods/status", 5), ("POST pods", 1200)]);
    }

    #[test]
    fn reads_are_no_writes() {
        let writes = Requests::parse(BEFORE).writes();
        assert_eq!(counted(&writes), [("PATCH pods/status", 5), ("POST pods", 1200)]);
        assert_eq!(writes.total(), 1205);
    }

    #[test]
    fn a_difference_holds_only_what_was_added() {
        let after = BEFORE.replace("} 2", "} 7");
        assert_eq!(counted(&(Requests::parse(&after) - Requests::parse(BEFORE))), [("PATCH pods/status", 5)]);
    }
}
