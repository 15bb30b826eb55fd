//! A cluster and a training job in it, as people name them on the command line.

use clap::Args;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};

use metronome_kubernetes::objects::{TrainingJob, TrainingJobObject};
use metronome_sim::near::{listed, nearest};

use crate::cluster_args::ClusterArgs;
use crate::failure::Failure;

impl ClusterArgs {
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        let cannot = |error: &dyn std::error::Error| Failure::world("find the API server").because(error);
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        match &self.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).map_err(|error| cannot(&error))?;
                Config::from_custom_kubeconfig(read, &options).await.map_err(|error| cannot(&error))
            }
            None if self.context.is_some() => {
                Config::from_kubeconfig(&options).await.map_err(|error| cannot(&error))
            }
            None => Config::infer().await.map_err(|error| {
                cannot(&error).hint("give --kubeconfig, or set KUBECONFIG, or run inside a cluster")
            }),
        }
    }
}

/// Which training job.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Name of the training job, or `namespace/name`
    job: String,
    /// Namespace of the job; if not given, the one of the kubeconfig's context
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl JobArgs {
    pub(crate) async fn open(&self) -> Result<JobRef, Failure> {
        let config = self.cluster.config().await?;
        let usual = config.default_namespace.clone();
        let [namespace, name] = place(&self.job, self.namespace.as_deref(), &usual)?;
        let client = Client::try_from(config);
        let client = client.map_err(|error| Failure::world("talk to the API server").because(&error))?;
        Ok(JobRef { client, namespace, name })
    }
}

/// The namespace and the name of a job that people call `name` or `namespace/name`.
pub(crate) fn place(job: &str, namespace: Option<&str>, usual: &str) -> Result<[String; 2], Failure> {
    match (job.split_once('/'), namespace) {
        (None, namespace) => Ok([namespace.unwrap_or(usual).to_owned(), job.to_owned()]),
        (Some((said, _)), Some(other)) if other != said => {
            Err(Failure::input(format!("look for {job} in the namespace {other}"))
                .hint("say the namespace once: `--namespace NAME`, or before the job's name"))
        }
        (Some((namespace, name)), _) => Ok([namespace.to_owned(), name.to_owned()]),
    }
}

/// A training job that may or may not be there.
#[derive(Clone)]
pub(crate) struct JobRef {
    client: Client,
    namespace: String,
    pub(crate) name: String,
}

impl std::fmt::Display for JobRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl JobRef {
    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn jobs(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource())
    }

    /// The job as it is now; where there is none, what may have been meant.
    pub(crate) async fn get(&self) -> Result<TrainingJob, Failure> {
        let found = self.jobs().get_opt(&self.name).await.map_err(|error| self.cannot_ask(&error))?;
        match found {
            Some(object) => Ok(TrainingJob::read(&resource(), &object)),
            None => Err(self.is_missing().await),
        }
    }

    async fn is_missing(&self) -> Failure {
        let failure = Failure::input(format!("find a training job {self}"));
        let names = match self.jobs().list(&ListParams::default()).await {
            Ok(all) => all.items.into_iter().filter_map(|job| job.metadata.name),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return failure
                    .hint("this cluster knows no training jobs: `metronome install` prints what it needs");
            }
            Err(error) => return self.cannot_ask(&error),
        };
        let names: Vec<String> = names.collect();
        let known = names.iter().map(String::as_str);
        match nearest(&self.name, known.clone()) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None if names.is_empty() => failure
                .hint(format!("there are none in the namespace {}: is it another one?", self.namespace)),
            None => failure.hint(format!("in this namespace there are {}", listed(known))),
        }
    }

    pub(crate) fn cannot_ask(&self, error: &kube::Error) -> Failure {
        Failure::world(format!("ask the API server about {self}")).because(error)
    }

    /// The job whenever something about it changes, and nothing where it is gone. After a failure it is tried again.
    pub(crate) fn watch(&self) -> impl Stream<Item = watcher::Result<Option<TrainingJob>>> + use<> {
        let read = |object: DynamicObject| TrainingJob::read(&resource(), &object);
        let seen = watcher::watch_object(self.jobs(), &self.name).default_backoff();
        seen.map(move |seen| seen.map(|object| object.map(read)))
    }
}

fn resource() -> ApiResource {
    ApiResource::erase::<TrainingJobObject>(&())
}

/// Runs what talks to a cluster.
pub(crate) fn wait_for<T>(asked: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::world("start a thread").because(&error))?.block_on(asked)
}
