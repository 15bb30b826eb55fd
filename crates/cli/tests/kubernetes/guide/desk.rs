//! Somebody's desk: a folder to work in, the programs at hand, and a cluster that they reach.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::Client;
use metronome_testcluster::binaries::{self, Program};
use metronome_testcluster::corner::PATIENCE;
use metronome_testcluster::kubelets::Pace;
use metronome_testcluster::{ControlPlane, Kubelets, Options, SimNode};
use tempfile::TempDir;

use super::page::{self, Step, is_as_shown};
use crate::kubelet::Logs;

/// How long pods run on the nodes of this cluster: long enough to be looked at.
const PODS_RUN: Duration = Duration::from_secs(25);
/// What pages take for granted that do not bring it themselves.
const INSTALL: &str =
    "helm install metronome deploy/chart/metronome --namespace metronome --create-namespace";
/// Nothing hangs for ever.
const ONE_COMMAND: Duration = Duration::from_secs(120);
const WHOLE_PAGE: Duration = Duration::from_secs(1200);
const PAUSE: Duration = Duration::from_millis(300);

pub(crate) struct Desk {
    folder: TempDir,
    page: String,
    /// The scheduler that was started last, as people do in another window.
    scheduler: Option<Child>,
    _kubelets: Kubelets,
    _plane: ControlPlane,
}

impl Desk {
    /// Four nodes of 8 GPUs, Kubernetes' own controllers and scheduler, and nothing of ours. Nothing, where these cannot
    /// be had.
    pub(crate) async fn new(page: &str) -> Option<Self> {
        let options = Options::from_env().controllers().scheduler("");
        let plane = ControlPlane::start_or_skip(options).await?;
        let client = plane.client().await.unwrap();
        let kubelets = nodes(client.clone()).await;
        Logs::serve(&client, "kubernetes.io/os=linux").await;
        let folder = tempfile::tempdir().unwrap();
        furnish(folder.path(), &plane.kubeconfig_path());
        Some(Self { folder, page: page.to_owned(), scheduler: None, _kubelets: kubelets, _plane: plane })
    }

    pub(crate) fn follow(&mut self, steps: Vec<Step>) {
        if !steps.iter().any(Step::brings_metronome) {
            self.run(0, INSTALL, None);
            self.keep_up(INSTALL);
        }
        for step in steps {
            match step {
                Step::Write { name, text } => fs::write(self.folder.path().join(name), text).unwrap(),
                Step::Take { line, text } => self.take(line, &text),
                Step::Run { command, .. } if command.starts_with("metronome run") => self.schedule(&command),
                Step::Run { line, command, shown } => {
                    self.run(line, &command, shown.as_deref());
                    self.keep_up(&command);
                }
            }
        }
    }

    /// What a page shows is taken, though it is not kept.
    fn take(&self, line: usize, text: &str) {
        fs::write(self.folder.path().join("shown.yaml"), text).unwrap();
        self.run(line, "kubectl apply --dry-run=server -f shown.yaml", None);
    }

    /// Simulated nodes run nothing. After an installation the program is run here as its deployment says, where the API
    /// server takes its pods to be; after a removal it is stopped.
    fn keep_up(&mut self, command: &str) {
        if command.contains("helm uninstall") || command.contains("delete -f -") {
            self.stop();
        }
        if !page::installs(command) {
            return;
        }
        let installed = "kubectl --namespace metronome get deployment metronome --output";
        let (is_there, arguments) =
            self.shell(&format!("{installed} jsonpath='{{.spec.template.spec.containers[0].args[*]}}'"));
        if !is_there {
            return;
        }
        self.schedule(&format!("metronome {} --kubeconfig ~/.kube/config", arguments.trim()));
        let address = own_address();
        let status = format!(r#"{{"status":{{"podIP":"{address}","podIPs":[{{"ip":"{address}"}}]}}}}"#);
        let (is_good, said) = self.shell(&format!(
            "kubectl --namespace metronome rollout status deployment metronome --timeout=60s\n\
             kubectl --namespace metronome get pods --selector app.kubernetes.io/name=metronome --output name |\n\
             xargs -I POD kubectl --namespace metronome patch POD --subresource=status --type=merge -p '{status}'"
        ));
        assert!(is_good, "{}: {said}", self.page);
    }

    /// In another window, until it is started anew.
    fn schedule(&mut self, command: &str) {
        self.stop();
        let log = self.folder.path().join("scheduler.log");
        let child =
            self.bash(&format!("exec {command}"), WHOLE_PAGE).stderr(fs::File::create(&log).unwrap()).spawn();
        self.scheduler = Some(child.unwrap());
        let begin = Instant::now();
        while !fs::read_to_string(&log).unwrap().contains("listening on ") {
            assert!(begin.elapsed() < PATIENCE, "{}: {command} is silent", self.page);
            std::thread::sleep(PAUSE);
        }
    }

    /// It must go well, and print what is shown; a question may be asked again until it does.
    fn run(&self, line: usize, command: &str, shown: Option<&str>) {
        let begin = Instant::now();
        loop {
            let (is_good, printed) = self.shell(command);
            let is_good = is_good || answers_by_its_exit_code(command);
            let is_as_shown = shown.is_none_or(|shown| is_as_shown(&printed, shown));
            if is_good && is_as_shown {
                return;
            }
            let may_ask_again = is_question(command) && begin.elapsed() < PATIENCE;
            assert!(may_ask_again, "{}:{line}: {command}\nprinted:\n{printed}", self.page);
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a command went well, and all that it printed.
    fn shell(&self, command: &str) -> (bool, String) {
        let script = format!("set -euo pipefail\nexec 2>&1\n{command}");
        let output = self.bash(&script, ONE_COMMAND).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn bash(&self, script: &str, limit: Duration) -> Command {
        let home = self.folder.path();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("timeout");
        command
            .arg(limit.as_secs().to_string())
            .args(["bash", "-c", script])
            .current_dir(home)
            .stdin(Stdio::null());
        command.env("HOME", home).env_remove("KUBECONFIG");
        command.env("PATH", format!("{0}/bin:{0}/.local/bin:{path}", home.display()));
        command
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.scheduler.take() {
            // By a signal that `timeout` passes on.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One that others reach this machine by: API servers pass nothing on to loopback.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    // Nothing is sent: this only chooses a way.
    socket.connect(("203.0.113.1", 9)).unwrap();
    socket.local_addr().unwrap().ip()
}

/// Where that is not zero, nothing has gone wrong.
fn answers_by_its_exit_code(command: &str) -> bool {
    command.starts_with("kubectl auth can-i ")
}

fn is_question(command: &str) -> bool {
    let questions =
        [" --dry-run=server ", " get ", " describe ", " explain ", " logs ", " what-if ", " can-i ", "curl "];
    questions.iter().any(|question| command.contains(question))
}

async fn nodes(client: Client) -> Kubelets {
    let node = |at: usize| {
        let node = SimNode::new(format!("node-{at}")).label("example.org/rack", format!("rack-{}", at / 2));
        node.capacity("cpu", "64").capacity("memory", "512Gi").capacity("nvidia.com/gpu", "8")
    };
    let heartbeat = Some(Duration::from_secs(5));
    let pace = Pace { heartbeat, ends_after: Some(PODS_RUN), ..Pace::default() };
    Kubelets::start_at(pace, client, (0..4).map(node)).await.unwrap()
}

/// The programs that the guide asks for, a kubeconfig, and what lies in the repository.
fn furnish(home: &Path, kubeconfig: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for name in ["deploy", "examples"] {
        symlink(root.join(name), home.join(name)).unwrap();
    }
    fs::create_dir(home.join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_metronome"), home.join("bin/metronome")).unwrap();
    for (name, program) in [("kubectl", Program::Kubectl), ("helm", Program::Helm)] {
        symlink(binaries::provide(program).unwrap(), home.join("bin").join(name)).unwrap();
    }
    fs::create_dir(home.join(".kube")).unwrap();
    fs::copy(kubeconfig, home.join(".kube/config")).unwrap();
}
