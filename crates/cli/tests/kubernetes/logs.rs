//! What the members of a job have written, through a real API server.

use std::sync::atomic::Ordering;

use metronome_testcluster::{Corner, shared_with_controllers};

use crate::kubelet::{LINES, Logs};
use crate::replica::Replica;
use crate::training::{Asked, ask, submit};

#[tokio::test(flavor = "multi_thread")]
async fn people_read_what_the_members_of_a_job_write() {
    let Some(plane) = shared_with_controllers().await else { return };
    let corner = Corner::new(plane, "logs", 2).await;
    let kubelet = Logs::serve(&corner.client, &format!("corner={}", corner.namespace)).await;
    let _replica = Replica::start(&plane.kubeconfig_path(), &corner.namespace, "only");
    submit(&corner, "bert", 3, "runs-for: 4s").await;
    let runs = ask(&corner, "wait", &["bert", "--for", "running"]);
    assert_eq!(runs.code, 0, "{runs:?}");

    let all = ask(&corner, "logs", &["bert"]);
    assert_eq!((all.code, all.out.lines().count()), (0, 3 * LINES as usize), "{all:?}");
    assert!(all.out.starts_with("worker-0 | bert-worker-0 is at epoch 0\n"), "{}", all.out);

    let one = ask(&corner, "logs", &["bert", "--member", "worker-2", "--tail", "2"]);
    assert_eq!(one.out, "bert-worker-2 is at epoch 6\nbert-worker-2 is at epoch 7\n");

    for how in [&["bert", "--member", "worker-9"][..], &["bert", "--member", "worker-9", "--follow"]] {
        let wrong = ask(&corner, "logs", how);
        assert_eq!(wrong.code, 2);
        assert!(wrong.err.contains("hint: did you mean `worker-0`?"), "{}", wrong.err);
    }

    let Asked { code, out, err } = ask(&corner, "logs", &["bert", "--follow"]);
    assert_eq!(code, 0, "{err}");
    for member in 0..3 {
        let of = out.lines().filter_map(|line| line.strip_prefix(&format!("worker-{member} | ")));
        let expected = (0..LINES).map(|at| format!("bert-worker-{member} is at epoch {at}"));
        assert!(of.eq(expected), "every line once and in order: {out}\n{err}");
    }
    assert!(kubelet.cuts.load(Ordering::Relaxed) > 0, "somebody was cut off");
    assert!(err.contains("bert has succeeded"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_has_no_log_and_that_is_said() {
    let Some(plane) = shared_with_controllers().await else { return };
    let corner = Corner::new(plane, "logless", 1).await;
    let _replica = Replica::start(&plane.kubeconfig_path(), &corner.namespace, "only");
    submit(&corner, "too-large", 9, "runs-for: 1s").await;
    corner.until_verdict("too-large-worker-0", |reason, _| reason == "Unschedulable").await;
    corner
        .until("its job says so, too", async |corner| {
            let Asked { code, err, .. } = ask(corner, "logs", &["too-large"]);
            assert_eq!(code, 3);
            assert!(err.contains("no member of"), "{err}");
            assert!(err.contains("hint: `--follow` waits for it"), "{err}");
            err.contains("only 4 would fit").then_some(())
        })
        .await;
}
