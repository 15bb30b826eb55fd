//! Where a control plane lies: its folder, ports, certificates and the command lines made of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::certificates::{ADMIN, CONTROLLER_MANAGER, Certificates, SCHEDULER};
use super::component::Component;
use super::flags::{self, Own};
use super::kubeconfig::{self, Impersonated};
use super::options::{Options, SchedulerConfig};
use super::ports::Ports;
use super::process::{self, Recipe};
use crate::binaries;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Site {
    /// Removed on drop; where it does not come to that, by the guard.
    folder: TempDir,
    ports: Ports,
    certificates: Certificates,
    recipes: BTreeMap<Component, Recipe>,
    users: AtomicU32,
}

impl Site {
    /// Makes the folder with everything in it that is needed before the first program starts.
    pub(super) fn prepare(options: &Options) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("metronome-testcluster-").tempdir();
        let folder = folder.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        let ports =
            Ports::choose().map_err(|source| Error::Spawn { what: "on free ports".to_owned(), source })?;
        let certificates = Certificates::create(folder.path())?;
        let mut site =
            Self { folder, ports, certificates, recipes: BTreeMap::new(), users: AtomicU32::new(0) };
        site.write_kubeconfigs()?;
        site.write_recipes(options)?;
        Ok(site)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn components(&self) -> impl Iterator<Item = Component> {
        self.recipes.keys().copied()
    }

    pub(super) fn recipe(&self, component: Component) -> Result<&Recipe> {
        self.recipes.get(&component).ok_or(Error::NotPart(component))
    }

    pub(super) fn url(&self, component: Component) -> String {
        match component {
            Component::Etcd => format!("http://127.0.0.1:{}", self.ports.etcd),
            _ => format!("https://127.0.0.1:{}", self.port(component)),
        }
    }

    fn port(&self, component: Component) -> u16 {
        match component {
            Component::Etcd => self.ports.etcd,
            Component::ApiServer => self.ports.api_server,
            Component::ControllerManager => self.ports.controller_manager,
            Component::Scheduler => self.ports.scheduler,
        }
    }

    /// The kubeconfig with which we talk to a program: to the API server, it is the admin's.
    pub(super) fn kubeconfig(&self, component: Component) -> PathBuf {
        self.folder().join(format!("to-{component}.kubeconfig"))
    }

    /// A client of one program of the control plane.
    pub(super) async fn client(&self, component: Component) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig(component)).await
    }

    /// A client of the program that tells whether another is ready.
    pub(super) async fn probing_client(&self, component: Component) -> Result<Client> {
        match component {
            Component::ControllerManager => self.client(Component::ApiServer).await,
            _ => self.client(component).await,
        }
    }

    pub(super) fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        let path = self.folder().join(format!("user-{number}.kubeconfig"));
        let url = self.url(Component::ApiServer);
        let impersonated = Impersonated { user, groups };
        kubeconfig::write(&path, &kubeconfig::impersonating(&url, &self.certificates, ADMIN, impersonated))?;
        Ok(path)
    }

    pub(super) fn log_tail(&self, component: Component) -> String {
        process::tail(&self.log(component))
    }

    fn log(&self, component: Component) -> PathBuf {
        self.folder().join(format!("{component}.log"))
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        use Component::{ApiServer, ControllerManager, Etcd, Scheduler};
        for component in [Etcd, ApiServer, ControllerManager, Scheduler] {
            let document = kubeconfig::of(&self.url(component), &self.certificates, ADMIN);
            kubeconfig::write(&self.kubeconfig(component), &document)?;
        }
        let url = self.url(ApiServer);
        for identity in [CONTROLLER_MANAGER, SCHEDULER] {
            let document = kubeconfig::of(&url, &self.certificates, identity);
            kubeconfig::write(&self.own_kubeconfig(identity.file), &document)?;
        }
        Ok(())
    }

    /// The kubeconfig with which a program talks to the API server.
    fn own_kubeconfig(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}.kubeconfig"))
    }

    fn write_recipes(&mut self, options: &Options) -> Result<()> {
        let mut command_lines = vec![
            (Component::Etcd, flags::etcd(self.folder(), &self.ports)),
            (Component::ApiServer, flags::api_server(options, &self.certificates, &self.ports)),
        ];
        if let Some(controllers) = &options.controllers {
            let kubeconfig = self.own_kubeconfig(CONTROLLER_MANAGER.file);
            let own = self.own(&kubeconfig, Component::ControllerManager);
            let flags = flags::controller_manager(options, controllers, &own);
            command_lines.push((Component::ControllerManager, flags));
        }
        if let Some(configuration) = &options.scheduler {
            let kubeconfig = self.own_kubeconfig(SCHEDULER.file);
            let configuration = self.write_scheduler_configuration(configuration, &kubeconfig)?;
            let own = self.own(&kubeconfig, Component::Scheduler);
            command_lines.push((Component::Scheduler, flags::scheduler(options, &own, &configuration)));
        }
        for (component, flags) in command_lines {
            let program = binaries::provide(component.program(options.kubernetes))?;
            self.recipes.insert(component, Recipe { program, flags, log: self.log(component) });
        }
        Ok(())
    }

    fn own<'a>(&'a self, kubeconfig: &'a Path, component: Component) -> Own<'a> {
        Own { kubeconfig, certificates: &self.certificates, port: self.port(component) }
    }

    /// What the test wants, made to talk to our API server, and not waiting to be elected.
    fn write_scheduler_configuration(&self, wanted: &SchedulerConfig, kubeconfig: &Path) -> Result<PathBuf> {
        let mut document: Value = match wanted.0.trim() {
            "" => {
                json!({ "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration" })
            }
            text => serde_saphyr::from_str(text).map_err(|error| Error::Yaml(error.to_string()))?,
        };
        document["clientConnection"]["kubeconfig"] = json!(kubeconfig);
        document["leaderElection"]["leaderElect"] = json!(false);
        let path = self.folder().join("scheduler-configuration.json");
        kubeconfig::write(&path, &document)?;
        Ok(path)
    }
}
