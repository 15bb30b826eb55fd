//! How many pods the jobs of Kubeflow's operators, and the clusters of Ray's, run at once.

use super::super::fields::{Complaint, Fields, MOST_MEMBERS};

/// All replicas of all roles, unless the job itself says how many must start together.
pub(super) fn of_kubeflow(spec: &Fields<'_>, roles: &str) -> Result<u32, Complaint> {
    if let Some(least) = spec.at("runPolicy").at("schedulingPolicy").at("minAvailable").count_or_none()? {
        return Ok(least);
    }
    let roles = spec.at(roles);
    let replicas = roles.entries().into_iter().map(|(_, role)| said_or(&role.at("replicas"), 1));
    sum(&roles, replicas)
}

/// A launcher that is only made once its workers run cannot start together with them.
pub(super) fn of_mpi(spec: &Fields<'_>) -> Result<u32, Complaint> {
    let creation = spec.at("launcherCreationPolicy").text()?;
    if creation.is_none_or(|policy| policy == "AtStartup") {
        return of_kubeflow(spec, "mpiReplicaSpecs");
    }
    let workers = spec.at("mpiReplicaSpecs").at("Worker").at("replicas");
    sum(&workers, [said_or(&workers, 1)])
}

/// The head and all workers; of groups that Ray may shrink, the fewest.
pub(super) fn of_ray(spec: &Fields<'_>) -> Result<u32, Complaint> {
    let shrinks = spec.at("enableInTreeAutoscaling").flag()?.unwrap_or(false);
    let count = if shrinks { "minReplicas" } else { "replicas" };
    let groups = spec.at("workerGroupSpecs");
    let workers = groups.items().into_iter().map(|group| {
        if group.at("suspend").flag()?.unwrap_or(false) {
            return Ok(0);
        }
        let hosts = said_or(&group.at("numOfHosts"), 1)?;
        Ok(said_or(&group.at(count), 0)?.saturating_mul(hosts))
    });
    sum(&groups, [Ok(1)].into_iter().chain(workers))
}

fn said_or(count: &Fields<'_>, usual: u64) -> Result<u64, Complaint> {
    Ok(count.integer::<u32>()?.map_or(usual, u64::from))
}

fn sum(of: &Fields<'_>, parts: impl IntoIterator<Item = Result<u64, Complaint>>) -> Result<u32, Complaint> {
    let mut all = 0_u64;
    for part in parts {
        all = all.saturating_add(part?);
    }
    match u32::try_from(all) {
        Ok(0) => Err(Complaint::Missing { field: of.path().to_owned() }),
        Ok(count) if all <= MOST_MEMBERS => Ok(count),
        _ => Err(Complaint::OutOfRange {
            field: format!("the number of pods of {}", of.path()),
            found: all.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(members: Result<u32, Complaint>) -> Result<u32, String> {
        members.map_err(|complaint| complaint.to_string())
    }

    fn torch(spec: &Value) -> Result<u32, String> {
        said(of_kubeflow(&Fields::of(spec), "pytorchReplicaSpecs"))
    }

    fn ray(spec: &Value) -> Result<u32, String> {
        said(of_ray(&Fields::of(spec)))
    }

    #[test]
    fn all_replicas_count_unless_the_job_says_how_many_must_start() {
        let roles = json!({"Master": {}, "Worker": {"replicas": 3}});
        assert_eq!(torch(&json!({"pytorchReplicaSpecs": roles})), Ok(4));
        let policy = json!({"schedulingPolicy": {"minAvailable": 2}});
        assert_eq!(torch(&json!({"pytorchReplicaSpecs": roles, "runPolicy": policy})), Ok(2));
    }

    #[test]
    fn a_launcher_that_waits_for_its_workers_is_not_of_their_gang() {
        let roles = json!({"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}});
        let mut spec = json!({"mpiReplicaSpecs": roles});
        assert_eq!(said(of_mpi(&Fields::of(&spec))), Ok(5));
        spec["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        assert_eq!(said(of_mpi(&Fields::of(&spec))), Ok(4));
    }

    #[test]
    fn the_head_of_a_ray_cluster_counts_and_suspended_groups_do_not() {
        let groups = json!([
            {"replicas": 2, "minReplicas": 1, "numOfHosts": 2},
            {"replicas": 8, "suspend": true},
        ]);
        assert_eq!(ray(&json!({"workerGroupSpecs": groups})), Ok(5));
        assert_eq!(ray(&json!({"workerGroupSpecs": groups, "enableInTreeAutoscaling": true})), Ok(3));
        assert_eq!(ray(&json!({})), Ok(1));
    }

    #[test]
    fn hostile_numbers_become_complaints() {
        let huge = json!({"replicas": u32::MAX, "numOfHosts": u32::MAX});
        assert!(ray(&json!({"workerGroupSpecs": [huge, huge]})).unwrap_err().contains("out of range"));
        assert!(torch(&json!({"pytorchReplicaSpecs": {"Worker": {"replicas": -1}}})).is_err());
        assert!(torch(&json!({"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}})).is_err());
        assert!(torch(&json!({"pytorchReplicaSpecs": 3})).is_err());
    }
}
