//! How many pods a `JobSet` runs at once.

use super::super::fields::{Complaint, Fields, MOST_MEMBERS};

/// The pods of all its jobs. Where some of them are only made once others run or are done, they cannot start together.
pub(super) fn members(spec: &Fields<'_>) -> Result<u32, Complaint> {
    let order = spec.at("startupPolicy").at("startupPolicyOrder");
    if order.text()?.is_some_and(|order| order == "InOrder") {
        return Err(Complaint::Unsupported { field: format!("{} InOrder in a gang", order.path()) });
    }
    let jobs = spec.at("replicatedJobs");
    let mut members = 0_u64;
    for job in jobs.items() {
        members = of_replicated(&job)?.saturating_add(members);
    }
    match u32::try_from(members) {
        Ok(0) => Err(Complaint::Missing { field: jobs.path().to_owned() }),
        Ok(count) if members <= MOST_MEMBERS => Ok(count),
        _ => Err(Complaint::OutOfRange {
            field: format!("the number of pods of {}", jobs.path()),
            found: members.to_string(),
        }),
    }
}

fn of_replicated(job: &Fields<'_>) -> Result<u64, Complaint> {
    let depends = job.at("dependsOn");
    if !depends.items().is_empty() {
        return Err(Complaint::Unsupported { field: format!("{} in a gang", depends.path()) });
    }
    let spec = job.at("template").at("spec");
    let replicas = job.at("replicas").integer::<u32>()?.unwrap_or(1);
    let parallelism = spec.at("parallelism").integer::<u32>()?.unwrap_or(1);
    let completions = spec.at("completions").integer::<u32>()?.unwrap_or(parallelism);
    Ok(u64::from(replicas).saturating_mul(parallelism.min(completions).into()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(spec: &Value) -> Result<u32, String> {
        members(&Fields::of(spec)).map_err(|complaint| complaint.to_string())
    }

    fn job(replicas: &Value, spec: &Value) -> Value {
        json!({"name": "j", "replicas": replicas, "template": {"spec": spec}})
    }

    #[test]
    fn all_pods_of_all_jobs_count() {
        let workers = job(&json!(2), &json!({"parallelism": 4, "completions": 4}));
        let few = job(&json!(1), &json!({"parallelism": 4, "completions": 3}));
        let plain = json!({"name": "driver", "template": {"spec": {}}});
        assert_eq!(said(&json!({"replicatedJobs": [workers, few, plain]})), Ok(12));
    }

    #[test]
    fn jobs_that_wait_for_one_another_are_no_gang() {
        let mut later = job(&json!(1), &json!({}));
        later["dependsOn"] = json!([{"name": "j", "status": "Ready"}]);
        let spec = json!({"replicatedJobs": [job(&json!(1), &json!({})), later]});
        assert_eq!(said(&spec), Err("replicatedJobs[1].dependsOn in a gang is not supported".into()));
        let spec = json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [job(&json!(1), &json!({}))]});
        assert!(said(&spec).unwrap_err().contains("InOrder"));
    }

    #[test]
    fn hostile_numbers_become_complaints() {
        let huge = job(&json!(u32::MAX), &json!({"parallelism": u32::MAX}));
        assert!(said(&json!({"replicatedJobs": [huge.clone()]})).unwrap_err().contains("out of range"));
        assert!(said(&json!({"replicatedJobs": [huge.clone(), huge]})).is_err());
        assert!(said(&json!({"replicatedJobs": [job(&json!(-1), &json!({}))]})).is_err());
        assert!(said(&json!({"replicatedJobs": [job(&json!("2"), &json!({}))]})).is_err());
        assert!(said(&json!({"replicatedJobs": [job(&json!(0), &json!({}))]})).is_err());
        assert!(said(&json!({"replicatedJobs": 3})).is_err());
        assert!(said(&json!({})).is_err());
    }
}
