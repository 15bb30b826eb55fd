//! What was asked, what came of it, and whether enough of everything was.

use std::collections::BTreeMap;
use std::fmt;

use metronome_kubernetes::objects::Pod;
use serde_json::{Value, json};

use crate::draw::{Dice, Pending, Rule, Scene, listed};
use crate::ours::{Ours, Verdict};
use crate::reference::Answer;
use crate::server::Everything;

/// From so many pods on, every rule must have decided something.
const ENOUGH: u64 = 2000;

#[derive(Default)]
pub(crate) struct Tally {
    pods: u64,
    nowhere: u64,
    everywhere: u64,
    somewhere: u64,
    by_rule: BTreeMap<Rule, InPlay>,
    /// What keeps pods off nodes without their asking for anything.
    by_surroundings: BTreeMap<&'static str, u64>,
    mismatches: Vec<String>,
}

#[derive(Default)]
struct InPlay {
    pods: u64,
    /// How often it kept the pod off a node where it could have gone otherwise, or led it to one.
    decisive: u64,
}

/// The same scene, had one thing in it been different.
pub(crate) struct Otherwise(Vec<(&'static str, Ours)>);

impl Otherwise {
    pub(crate) fn of(everything: &Everything, dice: &mut Dice) -> Self {
        let mut variant = |what: &'static str, change: fn(&mut Everything)| {
            let mut changed = everything.clone();
            change(&mut changed);
            (what, Ours::of(&changed, dice))
        };
        Self(vec![
            variant("taints", |all| all.nodes.iter_mut().for_each(|node| node.spec.taints = None)),
            variant("cordons", |all| all.nodes.iter_mut().for_each(|node| node.spec.unschedulable = None)),
            variant("others", |all| all.pods.retain(|pod| pod.spec.node_name.is_none())),
            variant("their affinity", |all| all.pods.iter_mut().for_each(|pod| pod.spec.affinity = None)),
            variant("those leaving", |all| all.pods.retain(|pod| pod.metadata.deletion_timestamp.is_none())),
            variant("drivers' limits", |all| all.csi_nodes.clear()),
            variant("attachments", |all| all.attachments.clear()),
            variant("capacities", |all| all.capacities.clear()),
            variant("namespaces' labels", |all| {
                all.namespaces.iter_mut().for_each(|namespace| namespace.metadata.labels = None);
            }),
        ])
    }
}

impl Tally {
    pub(crate) fn count(&mut self, scene: &Scene, pending: &Pending, verdict: &Verdict, theirs: &Answer) {
        self.pods += 1;
        match theirs.nodes.len() {
            0 => self.nowhere += 1,
            all if all == scene.nodes.len() => self.everywhere += 1,
            _ => self.somewhere += 1,
        }
        if verdict.nodes != theirs.nodes {
            self.mismatches.push(describe(pending, verdict, theirs));
        }
    }

    /// Finds out what decided.
    pub(crate) fn weigh(
        &mut self,
        pending: &Pending,
        verdict: &Verdict,
        ours: &mut Ours,
        otherwise: &mut Otherwise,
    ) {
        for rule in pending.rules() {
            let freer = ours.verdict(&pod(pending, pending.without(rule)));
            let in_play = self.by_rule.entry(rule).or_default();
            in_play.pods += 1;
            in_play.decisive += u64::from(freer.nodes != verdict.nodes);
        }
        let as_it_is = ours.verdict(&pod(pending, pending.body.clone()));
        for (what, ours) in &mut otherwise.0 {
            let other = ours.verdict(&pod(pending, pending.body.clone()));
            *self.by_surroundings.entry(what).or_default() += u64::from(other.nodes != as_it_is.nodes);
        }
    }

    /// Every rule was in play and decided something, most answers were mixed, and all were equal.
    pub(crate) fn check(&self) {
        assert!(
            self.mismatches.is_empty(),
            "{} of {} pods:\n{}",
            self.mismatches.len(),
            self.pods,
            self.first()
        );
        assert!(self.somewhere * 2 > self.pods, "too few answers are mixed");
        assert!(self.nowhere > 0 && self.everywhere > 0);
        if self.pods >= ENOUGH {
            for rule in Rule::all() {
                let decisive = self.by_rule.get(&rule).map_or(0, |in_play| in_play.decisive);
                assert!(decisive > 0, "{rule:?} never decided anything");
            }
            for (what, decisive) in &self.by_surroundings {
                assert!(*decisive > 0, "{what} never decided anything");
            }
        }
    }

    fn first(&self) -> String {
        self.mismatches.iter().take(5).cloned().collect::<Vec<_>>().join("\n")
    }
}

/// A pod as the API server would have it, as far as it matters here.
fn pod(pending: &Pending, mut body: Value) -> Pod {
    body["metadata"]["namespace"] = pending.namespace.into();
    body["metadata"]["uid"] = "of-the-tally".into();
    serde_json::from_value(body).unwrap()
}

fn describe(pending: &Pending, verdict: &Verdict, theirs: &Answer) -> String {
    format!(
        "- {} in {}: {}\n  ours:   {}\n  theirs: {}\n  because {}\n  refusal {:?}",
        pending.body["metadata"]["name"],
        pending.namespace,
        json!({"labels": pending.body["metadata"]["labels"], "spec": pending.body["spec"]}),
        listed(&verdict.nodes),
        listed(&theirs.nodes),
        theirs.message,
        verdict.refusal,
    )
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} pods: {} nowhere, {} everywhere, {} somewhere; {} mismatches",
            self.pods,
            self.nowhere,
            self.everywhere,
            self.somewhere,
            self.mismatches.len()
        )?;
        for (rule, in_play) in &self.by_rule {
            writeln!(
                f,
                "  {:<18} in play {:>4}, decided {:>4}",
                format!("{rule:?}"),
                in_play.pods,
                in_play.decisive
            )?;
        }
        for (what, decisive) in &self.by_surroundings {
            writeln!(f, "  {what:<18} {:>12}  decided {decisive:>4}", "")?;
        }
        Ok(())
    }
}
