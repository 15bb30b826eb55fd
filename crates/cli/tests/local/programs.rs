//! Programs of users: the host that a program sees, and the output when it fails.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::ground::{Ground, PROGRAM};
use crate::jobs::{CLUSTER, job_that};

impl Ground {
    fn logs(&self, more: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(["local", "logs", "--world", &self.world, "--dir"]).arg(self.root()).args(more);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// What `local logs` prints.
    fn printed(&self, more: &[&str]) -> String {
        let output = self.logs(more);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a member has printed so far; nothing before it runs.
    pub(crate) fn log_of(&self, job: &str, member: &str) -> String {
        String::from_utf8_lossy(&self.logs(&[job, "-m", member]).stdout).into_owned()
    }

    fn refused(&self, more: &[&str]) -> String {
        let output = self.logs(more);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// A job of two members, each of which fills a node, that runs a line of shell.
fn shell(name: &str, retries: u32, line: &str) -> String {
    let says = format!(
        "  backoffLimit: {retries}
  command: [sh, -c]
  args:
    - |
      {line}
  work: {{duration: 5s}}"
    );
    job_that(name, 2, 4, &says)
}

#[test]
fn a_member_sees_a_host_of_its_own_and_knows_its_gang() {
    let Some(ground) = Ground::new() else { return };
    let line = "hostname; cat /etc/hosts; getent hosts $(hostname); getent hosts worker-$((1 - RANK));
      ls /sys/class/net; ls /sys/fs/cgroup | wc -l; ls $METRONOME_DIR/spec.json";
    let before = (fs::read_to_string("/etc/hosts").unwrap(), fs::read_to_string("/proc/mounts").unwrap());
    let ran = ground.run(&format!("{CLUSTER}{}", shell("Named_job", 0, line)), &[]);
    ran.assert_all_completed();
    let log = ground.printed(&["Named_job", "--member", "worker-1"]);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..2], ["named-job-worker-1", "127.0.0.1 localhost"], "{log}");
    assert_eq!(lines[2], "10.77.0.1 named-job-worker-0 named-job-worker-0.named-job worker-0");
    assert!(lines[4].starts_with("10.77.0.2") && lines[4].contains("named-job-worker-1"), "{log}");
    assert!(lines[5].starts_with("10.77.0.1") && lines[5].contains("named-job-worker-0"), "{log}");
    assert_eq!(lines[6..8], ["eth0", "lo"], "{log}");
    assert_ne!(lines[8], "0", "control groups are still mounted: {log}");
    let after = (fs::read_to_string("/etc/hosts").unwrap(), fs::read_to_string("/proc/mounts").unwrap());
    assert_eq!(before.0, after.0);
    let mounts = |text: &str| text.lines().filter(|line| !line.contains("netns")).count();
    assert_eq!(mounts(&before.1), mounts(&after.1), "nothing is mounted outside: {}", after.1);
    ground.assert_clean();
}

#[test]
fn a_member_that_fails_is_shown_at_once_and_in_the_summary() {
    let Some(ground) = Ground::new() else { return };
    let line = "echo attempt $METRONOME_ATTEMPT of $METRONOME_MEMBER; test $RANK = 1 || exec sleep 60;
      seq 100; echo no data >&2; exit 7";
    let ran = ground.run(&format!("{CLUSTER}{}", shell("fails", 1, line)), &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let job = ran.job("fails");
    assert_eq!(job["why"], "worker-1 ended with 7");
    let attempts = job["starts"].as_u64().unwrap();
    let log = job["log"].as_str().unwrap();
    assert!(log.ends_with(&format!("jobs/default/fails/worker-1.attempt-{attempts}.log")), "{log}");
    let text = fs::read_to_string(log).unwrap();
    assert!(text.starts_with(&format!("attempt {attempts} of worker-1\n1\n")), "{text}");
    let lines: Vec<&str> =
        job["lastLines"].as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert_eq!((lines.len(), lines[0], lines[19]), (20, "82", "no data"));
    // At once: every attempt is shown before the next begins.
    let shown = "fails: worker-1 ended with 7\n  | 82\n";
    assert_eq!(ran.said.matches(shown).count() as u64, attempts, "{}", ran.said);
    assert!(ran.said.contains(&format!("  | no data\n  its log: {log}\n")), "{}", ran.said);
    // Logs of earlier attempts are kept.
    let kept = fs::read_dir(ground.of_job("fails")).unwrap().flatten();
    let names = kept.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.ends_with(".log")).collect();
    let of = |member: &str| names.iter().filter(|name| name.starts_with(member)).count();
    assert!(attempts > 1, "{}", ran.document);
    assert_eq!((of("worker-0."), of("worker-1.")), (attempts as usize, attempts as usize), "{names:?}");
    ground.assert_clean();

    assert_eq!(ground.printed(&["fails", "-m", "worker-1", "--tail", "1"]), "no data\n");
    let previous = ground.printed(&["fails", "--previous", "-m", "worker-0"]);
    assert_eq!(previous, format!("attempt {} of worker-0\n", attempts - 1));
    let both = ground.printed(&["--tail", "1"]);
    assert_eq!(both, format!("worker-0 | attempt {attempts} of worker-0\nworker-1 | no data\n"));
    assert!(
        ground.refused(&["fail"]).contains("hint: did you mean `fails`?"),
        "{}",
        ground.refused(&["fail"])
    );
    assert!(ground.refused(&["fails", "-m", "chief-0"]).contains("worker-0, worker-1"));
    let output = Command::new(PROGRAM)
        .args(["local", "logs", "--world", "nosuch", "--dir"])
        .arg(ground.root())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains(&ground.world), "it names the worlds there are");
}

#[test]
fn logs_are_followed_while_members_run_and_printed_after_an_interrupt() {
    let Some(ground) = Ground::new() else { return };
    let go = ground.folder.path().join("go");
    let line = format!(
        "echo first of $RANK; while ! test -e {}; do sleep 0.05; done; echo last of $RANK; exec sleep 60",
        go.display()
    );
    let scenario = ground.scenario(&format!("{CLUSTER}{}", shell("long", 0, &line)));
    let mut scheduler = ground.start(&scenario, &[]);
    let begun = |member: &str| ground.log_of("long", member).contains("first of");
    ground.wait_until(|| begun("worker-0") && begun("worker-1"));
    let out = ground.folder.path().join("followed");
    let mut follower = Command::new(PROGRAM)
        .args(["local", "logs", "long", "--follow", "--world", &ground.world, "--dir"])
        .arg(ground.root())
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let followed = || fs::read_to_string(&out).unwrap();
    ground.wait_until(|| followed().lines().count() == 2);
    fs::write(&go, "").unwrap();
    ground.wait_until(|| followed().lines().count() == 4);
    crate::ground::signal(scheduler.id() as i32, "TERM");
    ground.finish(&mut scheduler);
    assert!(follower.wait().unwrap().success(), "it ends with the run");
    let text = followed();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let all =
        ["worker-0 | first of 0", "worker-0 | last of 0", "worker-1 | first of 1", "worker-1 | last of 1"];
    assert_eq!(lines, all);
    assert_eq!(ground.printed(&["long", "-m", "worker-1"]), "first of 1\nlast of 1\n");
    assert!(ground.of_job("long").join("worker-0.attempt-1.log").exists());
    ground.assert_clean();
}
