//! Training jobs in a corner, and people who ask for them.

use std::process::Command;

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::Corner;
use serde_json::json;

/// So many members of one GPU, each of which ends as an annotation says, such as `runs-for: 1s`; none is made anew.
pub(crate) async fn submit(corner: &Corner, name: &str, members: u32, end: &str) {
    corner.plane.apply_yaml(&training_job_definition()).await.unwrap();
    let (ends, time) = end.split_once(": ").unwrap();
    let mut template = corner.pod("unnamed", 1);
    template["metadata"] = json!({"annotations": {format!("sim.metronome.dev/{ends}"): time}});
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
        "spec": {
            "schedulerName": corner.namespace, "members": members, "template": template, "backoffLimit": 0,
        },
    });
    let api = ApiResource::erase::<TrainingJobObject>(&());
    let jobs: Api<DynamicObject> = Api::namespaced_with(corner.client.clone(), &corner.namespace, &api);
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A command about a corner.
pub(crate) fn ask(corner: &Corner, command: &str, arguments: &[&str]) -> Asked {
    let output = Command::new(env!("CARGO_BIN_EXE_metronome"))
        .arg(command)
        .args(arguments)
        .args(["--namespace", &corner.namespace, "--kubeconfig"])
        .arg(corner.plane.kubeconfig_path())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Asked { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}
