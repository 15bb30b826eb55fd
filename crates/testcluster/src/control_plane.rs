//! etcd and kube-apiserver, if asked also kube-controller-manager and kube-scheduler, on loopback.
//!
//! The programs are plain processes, bound to no runtime: a control plane may be shared by tests that each have their
//! own. A `kube::Client` is bound to one, so every test makes its own with [`ControlPlane::client`].

mod apply;
mod certificates;
mod companion;
mod component;
mod flags;
mod guard;
pub(crate) mod kubeconfig;
mod operators;
mod options;
mod ports;
mod process;
mod requests;
mod shared;
mod site;
mod usage;
mod webhooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;

use crate::error::{Error, Result};
use guard::Guard;
use process::Process;
use site::Site;

pub use companion::Companion;
pub use component::Component;
pub use operators::{MpiGroups, Operator};
pub use options::Options;
pub use requests::Requests;
pub use shared::{Shared, provide_or_skip, shared, shared_with_controllers};
pub use usage::Usage;

/// How often to choose other ports when somebody was quicker.
const ATTEMPTS: usize = 5;
/// How long a program may take until it is ready, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

/// A control plane that runs. Dropping it ends its processes and removes its files; so does the end of this process.
#[derive(Debug)]
pub struct ControlPlane {
    // The order matters: processes are ended before the folder they write to is removed.
    processes: Mutex<BTreeMap<Component, Process>>,
    site: Site,
    guard: Guard,
}

impl ControlPlane {
    /// Builds what is missing, starts everything and waits until it is ready.
    pub async fn start(options: Options) -> Result<Self> {
        for _ in 1..ATTEMPTS {
            match Self::attempt(&options).await {
                Err(Error::Ended { log, .. }) if log.contains("address already in use") => {}
                done => return done,
            }
        }
        Self::attempt(&options).await
    }

    async fn attempt(options: &Options) -> Result<Self> {
        let site = prepare(options.clone()).await?;
        let guard = Guard::over(site.folder()).map_err(spawning("sh"))?;
        let plane = Self { processes: Mutex::default(), site, guard };
        plane.launch(Component::Etcd)?;
        plane.start_component(Component::ApiServer).await?;
        let others: Vec<Component> =
            plane.site.components().filter(|component| component.is_client()).collect();
        others.iter().try_for_each(|component| plane.launch(*component))?;
        for component in others {
            plane.until_ready(component).await?;
        }
        Ok(plane)
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        self.site.url(Component::ApiServer)
    }

    /// The kubeconfig of a user that may do everything.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.site.kubeconfig(Component::ApiServer)
    }

    /// The kubeconfig of a user that may do what RBAC says.
    pub fn user_kubeconfig(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        self.site.user_kubeconfig(name, groups)
    }

    /// A client that may do everything, bound to the caller's runtime.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig_path()).await
    }

    /// A client that may do what RBAC says.
    pub async fn user_client(&self, name: &str, groups: &[&str]) -> Result<Client> {
        kubeconfig::client(&self.user_kubeconfig(name, groups)?).await
    }

    /// Files that last as long as the control plane may be put here.
    pub fn folder(&self) -> &Path {
        self.site.folder()
    }

    /// Kills a program, without a chance to say goodbye.
    pub fn stop(&self, component: Component) {
        drop(self.processes().remove(&component));
    }

    /// Starts a program that was stopped, with the same port and data, and waits until it is ready.
    pub async fn start_component(&self, component: Component) -> Result<()> {
        self.launch(component)?;
        self.until_ready(component).await
    }

    pub async fn restart_api_server(&self) -> Result<()> {
        self.stop(Component::ApiServer);
        self.start_component(Component::ApiServer).await
    }

    pub fn pid(&self, component: Component) -> Result<u32> {
        self.processes().get(&component).map(Process::pid).ok_or(Error::NotPart(component))
    }

    /// What a program has used since it was last started.
    pub fn usage(&self, component: Component) -> Result<Usage> {
        Usage::of(self.pid(component)?)
    }

    /// What a program serves at a path, for instance `/metrics`.
    pub async fn get(&self, component: Component, path: &str) -> Result<String> {
        component::get(&self.site.client(component).await?, path).await
    }

    fn launch(&self, component: Component) -> Result<()> {
        let recipe = self.site.recipe(component)?;
        let started = Process::start(recipe.command(), &recipe.log, self.guard.group());
        let process = started.map_err(spawning(component.name()))?;
        self.processes().insert(component, process);
        Ok(())
    }

    async fn until_ready(&self, component: Component) -> Result<()> {
        let client = self.site.probing_client(component).await?;
        let begin = Instant::now();
        while !component.is_ready(&client).await {
            self.check_alive(component)?;
            if begin.elapsed() > PATIENCE {
                return Err(Error::NotReady {
                    component,
                    waited: PATIENCE,
                    log: self.site.log_tail(component),
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Fails with the log of a program that has ended by itself: this one, or etcd, without which none can work.
    fn check_alive(&self, component: Component) -> Result<()> {
        for looked_at in [Component::Etcd, component] {
            let status = self.processes().get_mut(&looked_at).and_then(Process::ended);
            if let Some(status) = status {
                let log = self.site.log_tail(looked_at);
                return Err(Error::Ended { component: looked_at, status, log });
            }
        }
        Ok(())
    }

    /// A test that panics elsewhere does not make the processes unusable.
    fn processes(&self) -> MutexGuard<'_, BTreeMap<Component, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Apart from the runtime's threads: programs may have to be built.
async fn prepare(options: Options) -> Result<Site> {
    let prepared = tokio::task::spawn_blocking(move || Site::prepare(&options)).await;
    prepared.expect("preparing does not panic")
}

fn spawning(what: &str) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_owned();
    move |source| Error::Spawn { what, source }
}
