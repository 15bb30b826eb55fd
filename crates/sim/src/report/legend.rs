//! What colours mean, and the few numbers in large letters.

use super::text::{count, escape, number, percent, tidy};
use super::{Shown, verdict};
use crate::results::Comparison;

/// The look of a policy: ours has one of its own, the others take turns.
pub(super) fn class(policy: &str, index: usize) -> String {
    const LOOKS: usize = 6;
    match policy {
        "metronome" => "policy ours".to_owned(),
        _ => format!("policy p{}", index % LOOKS),
    }
}

/// The policies, as the lines of a picture show them.
pub(super) fn policies(shown: &[Shown]) -> String {
    let key = |shown: &Shown| {
        let policy = &shown.summary.policy;
        let line = r#"<svg viewBox="0 0 26 10" aria-hidden="true"><path class="curve" d="M0 5H26"/></svg>"#;
        format!("<li class=\"{}\">{line}{}</li>", class(policy, shown.index), escape(policy))
    };
    format!("<ul class=\"legend\">{}</ul>\n", shown.iter().map(key).collect::<String>())
}

/// What a job does, as the timeline shows it.
pub(super) fn uses() -> String {
    let key = |class: &str, look: &str, says: &str| {
        let block = format!(r#"<rect class="{look}" width="26" height="10"/>"#);
        format!(
            "<li class=\"{class}\"><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">{block}</svg>{says}</li>"
        )
    };
    let keys = [
        key("class high", "training", "high priority, training"),
        key("class normal", "training", "normal"),
        key("class low", "training", "low"),
        key("class normal", "waiting", "waiting"),
        key("class normal", "holding", "holding GPUs without training"),
    ];
    format!("{HATCH}<ul class=\"legend\">{}</ul>\n", keys.concat())
}

/// The pattern that every picture of the page refers to.
const HATCH: &str = "<svg class=\"patterns\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"5\" height=\"5\" \
     patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\"/>\
     <path d=\"M0 0V5\"/></pattern></defs></svg>\n";

/// The main figures, each with one line below it.
pub(super) fn tiles(comparison: &Comparison) -> String {
    let tiles: String = [gain(comparison), deadlocked(comparison), slowdown(comparison)]
        .into_iter()
        .flatten()
        .map(|(figure, says)| format!("<li><strong>{figure}</strong><span>{says}</span></li>\n"))
        .collect();
    format!("<ul class=\"tiles\">\n{tiles}</ul>\n")
}

fn gain(comparison: &Comparison) -> Option<(String, String)> {
    let gain = verdict::gain(comparison)?;
    let sign = if gain > 0.0 { "−" } else { "+" };
    Some((
        format!("{sign}{}", percent(gain.abs())),
        "mean completion time, metronome against coscheduling".into(),
    ))
}

fn deadlocked(comparison: &Comparison) -> Option<(String, String)> {
    let jobs = &verdict::find(comparison, "kubernetes")?.jobs;
    Some((
        count(jobs.deadlocked, "job"),
        format!("of {} deadlocked by kubernetes, pod by pod", number(jobs.submitted, 1)),
    ))
}

/// Only where the network was modelled.
fn slowdown(comparison: &Comparison) -> Option<(String, String)> {
    verdict::find(comparison, "metronome")?.link_utilisation.mean?;
    let mean = |policy| verdict::find(comparison, policy)?.slowdown.mean;
    let baseline = mean("coscheduling").map(|mean| format!("; {} × under coscheduling", tidy(mean)));
    let says = format!("iteration time over alone under metronome{}", baseline.unwrap_or_default());
    Some((format!("{} ×", tidy(mean("metronome")?)), says))
}
