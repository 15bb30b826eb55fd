//! Waiting for jobs, through a real API server.

use kube::api::{Api, DeleteParams, DynamicObject};
use metronome_kubernetes::objects::TrainingJobObject;
use metronome_testcluster::{Corner, shared_with_controllers};

use crate::replica::Replica;
use crate::training::{ask, submit};

#[tokio::test(flavor = "multi_thread")]
async fn people_wait_for_jobs_and_learn_how_they_end() {
    let Some(plane) = shared_with_controllers().await else { return };
    let corner = Corner::new(plane, "wait", 1).await;
    let _replica = Replica::start(&plane.kubeconfig_path(), &corner.namespace, "only");
    submit(&corner, "good", 2, "runs-for: 1s").await;
    submit(&corner, "bad", 1, "fails-after: 500ms").await;
    submit(&corner, "too-large", 9, "runs-for: 1s").await;
    let expected = [
        (&["good", "--for", "placed"][..], 0, "good has all its members on nodes"),
        (&["good"], 0, "good has succeeded"),
        (&["good", "--for", "running"], 1, "good is over"),
        (&["bad"], 1, "bad has failed: "),
        (&["bad", "--for", "ended"], 0, "bad has failed: "),
        (&["too-large", "--timeout", "2s"], 3, "error: cannot wait longer than 2s for "),
        (&["too-large", "--timeout", "2s"], 3, "the last that is known: it waits"),
        (&["god"], 2, "hint: did you mean `good`?"),
        (&["bert"], 2, "hint: in this namespace there are bad, good, too-large"),
    ];
    for (arguments, code, said) in expected {
        let asked = ask(&corner, "wait", arguments);
        assert_eq!(asked.code, code, "{arguments:?}: {asked:?}");
        assert!(asked.err.contains(said), "{arguments:?}: {asked:?}");
        assert_eq!(asked.out, "", "words go to standard error");
    }
    let resource = kube::api::ApiResource::erase::<TrainingJobObject>(&());
    let jobs: Api<DynamicObject> = Api::namespaced_with(corner.client.clone(), &corner.namespace, &resource);
    jobs.delete("too-large", &DeleteParams::default()).await.unwrap();
    let gone = ask(&corner, "wait", &["good", "--for", "deleted", "--timeout", "1s"]);
    assert_eq!(gone.code, 3);
}
