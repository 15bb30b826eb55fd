//! A job on its own, read against a world that is already there.

use std::path::Path;

use metronome_core::model::job::Deadline;
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::scenario::{Arrival, InputError, Scenario, Setting};

const WORLD: &str = "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {nodes: [{count: 2, gpus: 4}]}
---
apiVersion: metronome.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {users: [{name: ada, priority: high}]}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: there}
spec: {members: 1, resources: {nvidia.com/gpu: 1}, work: {duration: 1m}}
";

const JOB: &str = "apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: asked, labels: {metronome.dev/user: ada}}
spec: {queue: research, members: 4, resources: {nvidia.com/gpu: 1}, work: {duration: 1m}, deadline: {after: 1h}}
";

fn read(text: &str) -> Result<Arrival, InputError> {
    let world = Scenario::read_from(WORLD.as_bytes(), "world.yaml", Path::new("")).unwrap();
    let setting = Setting { cluster: &world.cluster, queues: &world.queues, within_node: None };
    setting.read_job_from(text.as_bytes(), "job.yaml", Instant::from_secs(600))
}

#[test]
fn a_job_knows_the_queues_and_users_of_the_world_it_comes_to() {
    let world = Scenario::read_from(WORLD.as_bytes(), "world.yaml", Path::new("")).unwrap();
    let job = read(JOB).unwrap();
    assert_eq!(&*world.queues[job.spec.queue].name, "research");
    assert_eq!(job.spec.user, world.queues[job.spec.queue].users[0].priority);
    assert_eq!(job.at, Instant::from_secs(600));
    assert_eq!(
        job.spec.deadline,
        Some(Deadline::soft(job.at + Duration::HOUR)),
        "a deadline counts from submission"
    );
}

#[test]
fn what_is_no_job_on_its_own_is_refused_with_a_place() {
    let later = JOB.replace("metadata: {", "metadata: {annotations: {metronome.dev/submit-after: 5m}, ");
    let cases = [
        (WORLD.to_owned(), ":3:18: a Cluster beside the job"),
        (String::new(), ": there is no TrainingJob in it"),
        (
            format!("{JOB}---\n{}", JOB.replace("name: asked", "name: other")),
            ":8:18: a second TrainingJob; the first is at line 3",
        ),
        (later, ":3:54: `metronome.dev/submit-after` means nothing here: the job is submitted now"),
        (JOB.replace("queue: research", "queue: resaerch"), ":4:15: there is no queue `resaerch`"),
        (
            JOB.replace("members: 4", "members: 9"),
            ":3:18: job `asked` can never run: it needs 9 GPUs, the cluster has 8 GPUs",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(&text).unwrap_err().to_string(), format!("read job.yaml{expected}"), "{text}");
    }
}
