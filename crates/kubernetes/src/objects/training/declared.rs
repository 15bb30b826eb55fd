//! A `TrainingJob` as an object that declares a gang: what it says about time and place, in the words in which pods and
//! other objects say it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::{DeadlineBinding, Rendezvous, TargetSpec, TopologySpec, TrainingJob, TrainingJobSpec};
use crate::objects::fields::Complaint;
use crate::objects::group::{Elastic, Group, GroupKind};

/// The gang that a job declares.
pub(in crate::objects) fn group(job: &TrainingJob) -> Group {
    let mut group = Group::plain(GroupKind::Training, job.reference.clone(), job.metadata.clone());
    match &job.spec {
        Ok(spec) => {
            group.min_members = Ok(spec.least().saturating_sub(ended(job)).max(1));
            group.elastic = elastic(spec).filter(|_| ended(job) == 0);
            group.queue.clone_from(&spec.queue);
            let words = words(spec, job.metadata.creation_timestamp.as_ref().map(|at| at.0));
            group.metadata.annotations.get_or_insert_default().extend(words);
        }
        Err(_) => group.min_members = Err(Complaint::Missing { field: "spec".into() }),
    }
    group
}

/// The role that may have more members than it needs: once some have done their part, it stays as it is.
fn elastic(spec: &TrainingJobSpec) -> Option<Elastic> {
    let role = spec.elastic_role()?;
    let joins = spec.rendezvous == Rendezvous::Elastic;
    Some(Elastic { role: role.name.to_owned(), min: role.least, max: role.most, joins })
}

/// Whoever has done its part is not waited for when another is made anew.
fn ended(job: &TrainingJob) -> u32 {
    job.status.roles.iter().map(|role| role.succeeded).sum()
}

fn words(spec: &TrainingJobSpec, made: Option<Timestamp>) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    let mut say = |key: &str, value: Option<String>| {
        words.extend(value.map(|value| (format!("metronome.dev/{key}"), value)));
    };
    say("deadline", deadline(spec, made));
    let binding = spec.deadline.as_ref().map(|deadline| match deadline.binding {
        DeadlineBinding::Strict => "Strict",
        DeadlineBinding::Soft => "Soft",
        DeadlineBinding::BestEffort => "BestEffort",
    });
    say("deadline-binding", binding.map(str::to_owned));
    let work = spec.work.clone().unwrap_or_default();
    let iterations = work.iterations.or(work.max_iterations);
    say("iterations", iterations.map(|iterations| iterations.to_string()));
    say("duration", work.duration.map(|span| span.0));
    say("target-loss", work.target.and_then(loss));
    say("checkpoint", checkpoint(spec));
    say("topology", topology(spec));
    say("model", spec.model.clone());
    say("traffic", spec.traffic.as_ref().map(|traffic| json!(traffic).to_string()));
    words
}

/// As a time: `after` counts from when the job was made, whenever its pods are.
fn deadline(spec: &TrainingJobSpec, made: Option<Timestamp>) -> Option<String> {
    let deadline = spec.deadline.as_ref()?;
    if let Some(at) = &deadline.at {
        return Some(at.clone());
    }
    let after = deadline.after.as_ref()?.0.parse::<metronome_core::model::units::Duration>().ok()?;
    let after = jiff::SignedDuration::from_nanos(i64::try_from(after.0).ok()?);
    Some(made?.checked_add(after).ok()?.to_string())
}

/// Only a loss that falls is understood as a target.
fn loss(target: TargetSpec) -> Option<String> {
    target.at_most.filter(|_| target.metric == "loss")
}

fn topology(spec: &TrainingJobSpec) -> Option<String> {
    let TopologySpec { preferred, required } = spec.topology.as_ref()?;
    let required = required.as_ref().map(|level| format!("required={level}"));
    required.or_else(|| preferred.as_ref().map(|level| format!("preferred={level}")))
}

fn checkpoint(spec: &TrainingJobSpec) -> Option<String> {
    let saving = spec.checkpoint.as_ref()?;
    let takes = saving.takes.as_ref().map_or("0s", |span| &span.0);
    let restart = saving.restart.as_ref().map_or("0s", |span| &span.0);
    Some(format!("takes={takes},restart={restart}"))
}
