//! The command lines, as pure functions of where things are and what was asked.

use std::path::{Path, PathBuf};

use super::certificates::Certificates;
use super::options::{Controllers, FlowControl, Options};
use super::ports::Ports;
use crate::binaries::Kubernetes;

const LOOPBACK: &str = "127.0.0.1";

pub(super) fn etcd(folder: &Path, ports: &Ports) -> Vec<String> {
    let url = format!("http://{LOOPBACK}:{}", ports.etcd);
    let data = folder.join("etcd");
    let mut flags = vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        // There are no peers, so any port will do and nobody needs to know it.
        format!("--listen-peer-urls=http://{LOOPBACK}:0"),
    ];
    // A test's data need not survive the machine, and need not be thrifty.
    flags.extend(
        ["--unsafe-no-fsync", "--quota-backend-bytes=8589934592", "--log-level=warn"].map(String::from),
    );
    flags
}

pub(super) fn api_server(options: &Options, certificates: &Certificates, ports: &Ports) -> Vec<String> {
    let mut flags = vec![
        format!("--etcd-servers=http://{LOOPBACK}:{}", ports.etcd),
        format!("--bind-address={LOOPBACK}"),
        format!("--secure-port={}", ports.api_server),
        // It refuses to publish a loopback address in the endpoints of the `kubernetes` service.
        "--endpoint-reconciler-type=none".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        // Nobody resolves the names of nodes; a test that has logs to show gives its nodes an address.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--runtime-config={}", group_api(options.kubernetes)),
        format!("--feature-gates={}", gates(options.kubernetes)),
    ];
    flags.extend(api_server_files(certificates));
    flags.extend(without_others(options));
    if options.flow_control == FlowControl::Off {
        flags.push("--enable-priority-and-fairness=false".to_owned());
        flags.extend(["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"].map(String::from));
    }
    flags.extend(options.api_server_flags.iter().cloned());
    flags
}

fn api_server_files(certificates: &Certificates) -> [String; 5] {
    let flag = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    [
        flag("tls-cert-file", certificates.certificate("server")),
        flag("tls-private-key-file", certificates.key("server")),
        flag("client-ca-file", certificates.certificate("ca")),
        flag("service-account-key-file", certificates.service_account_public_key()),
        flag("service-account-signing-key-file", certificates.key("service-account")),
    ]
}

/// Admission that waits for what controllers do would wait forever without them: default service accounts, and the
/// removal of the taint that every new node gets.
fn without_others(options: &Options) -> Option<String> {
    let alone = options.controllers.is_none();
    alone.then(|| "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned())
}

pub(super) fn controller_manager(options: &Options, controllers: &Controllers, own: &Own<'_>) -> Vec<String> {
    let certificates = own.certificates;
    let mut flags = own.flags(options);
    flags.extend([
        format!("--kubeconfig={}", own.kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials=true".to_owned(),
        format!("--root-ca-file={}", certificates.certificate("ca").display()),
        format!("--service-account-private-key-file={}", certificates.key("service-account").display()),
    ]);
    flags.extend(
        controllers.node_grace.map(|grace| format!("--node-monitor-grace-period={}ms", grace.as_millis())),
    );
    flags
}

pub(super) fn scheduler(options: &Options, own: &Own<'_>, configuration: &Path) -> Vec<String> {
    let mut flags = own.flags(options);
    flags.push(format!("--config={}", configuration.display()));
    flags
}

/// What a program that serves metrics and talks to the API server calls its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) kubeconfig: &'a Path,
    pub(super) certificates: &'a Certificates,
    pub(super) port: u16,
}

impl Own<'_> {
    fn flags(&self, options: &Options) -> Vec<String> {
        let kubeconfig = self.kubeconfig.display();
        vec![
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--client-ca-file={}", self.certificates.certificate("ca").display()),
            format!("--tls-cert-file={}", self.certificates.certificate("server").display()),
            format!("--tls-private-key-file={}", self.certificates.key("server").display()),
            format!("--bind-address={LOOPBACK}"),
            format!("--secure-port={}", self.port),
            format!("--feature-gates={}", gates(options.kubernetes)),
        ]
    }
}

/// The version of the API in which upstream serves groups of pods.
fn group_api(kubernetes: Kubernetes) -> &'static str {
    match kubernetes {
        Kubernetes::V1_35 => "scheduling.k8s.io/v1alpha1=true",
        Kubernetes::V1_37 => "scheduling.k8s.io/v1beta1=true",
    }
}

/// What turns them on, in every program. Later versions need no second gate for the scheduler's part.
fn gates(kubernetes: Kubernetes) -> &'static str {
    match kubernetes {
        Kubernetes::V1_35 => "GenericWorkload=true,GangScheduling=true",
        Kubernetes::V1_37 => "GenericWorkload=true",
    }
}
