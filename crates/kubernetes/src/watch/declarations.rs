//! Kinds that declare gangs, queues and links, or say how far training is. Which of them a cluster has is found out by asking, and asked again now and
//! then: custom resources may be installed later, or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use tokio::task::{AbortHandle, JoinSet};

use super::follow::{Closed, Outlet, follow as follow_kind};
use super::{Change, Delta, Settings, listed};
use crate::objects::{Fabric, Group, GroupKind, HyperNode, Queue, QueueKind, TrainJob, TrainingJob};

/// What is declared, by an object of which API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Declares {
    Gangs(GroupKind),
    Queues(QueueKind),
    /// What links carry.
    Links,
    /// Where nodes lie.
    Places,
    /// How far somebody's training is.
    Progress,
}

use Declares::{Gangs, Links, Places, Progress, Queues};

/// Where each kind may be found, the newest version first.
const PLACES: [(Declares, &str, &str, &str); 16] = [
    (Gangs(GroupKind::Upstream), "scheduling.k8s.io/v1beta1", "PodGroup", "podgroups"),
    (Gangs(GroupKind::Upstream), "scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups"),
    (Gangs(GroupKind::Workload), "scheduling.k8s.io/v1alpha1", "Workload", "workloads"),
    (Gangs(GroupKind::Plugins), "scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups"),
    (Gangs(GroupKind::Volcano), "scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    (Gangs(GroupKind::Training), "metronome.dev/v1alpha1", "TrainingJob", "trainingjobs"),
    (Gangs(GroupKind::JobSet), "jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"),
    (Gangs(GroupKind::PyTorchJob), "kubeflow.org/v1", "PyTorchJob", "pytorchjobs"),
    (Gangs(GroupKind::TfJob), "kubeflow.org/v1", "TFJob", "tfjobs"),
    (Gangs(GroupKind::MpiJob), "kubeflow.org/v2beta1", "MPIJob", "mpijobs"),
    (Gangs(GroupKind::RayCluster), "ray.io/v1", "RayCluster", "rayclusters"),
    (Queues(QueueKind::Own), "metronome.dev/v1alpha1", "Queue", "queues"),
    (Queues(QueueKind::Volcano), "scheduling.volcano.sh/v1beta1", "Queue", "queues"),
    (Links, "metronome.dev/v1alpha1", "Fabric", "fabrics"),
    (Places, "topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes"),
    (Progress, "trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs"),
];

/// Follows every kind there is, and those that come, until nobody listens.
pub(super) async fn follow(client: Client, settings: Settings, outlet: Outlet) {
    let mut kinds = Kinds { client, settings, outlet, followed: BTreeMap::new(), watches: JoinSet::new() };
    // The first look must succeed: a cluster whose gangs and queues are not known yet is not synced.
    let mut found = kinds.discover().await;
    while found.is_none() {
        tokio::time::sleep(kinds.settings.rediscover.min(FIRST_LOOK)).await;
        found = kinds.discover().await;
    }
    loop {
        if let Some(found) = found
            && kinds.adopt(found).await.is_err()
        {
            return;
        }
        kinds.outlet.stop_waiting();
        tokio::time::sleep(kinds.settings.rediscover).await;
        found = kinds.discover().await;
    }
}

/// How soon to look again where the first look failed.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// How often an API server is asked about one API in one look, and how soon it is asked again.
const MOST_QUESTIONS: usize = 5;
const BEFORE_THE_NEXT: Duration = Duration::from_millis(100);

struct Kinds {
    client: Client,
    settings: Settings,
    outlet: Outlet,
    followed: BTreeMap<Declares, Followed>,
    watches: JoinSet<()>,
}

struct Followed {
    api_version: String,
    watch: AbortHandle,
}

impl Kinds {
    /// The kinds that are served now; nothing where the API server did not say.
    async fn discover(&self) -> Option<BTreeMap<Declares, ApiResource>> {
        let mut served: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (kind, api_version, name, plural) in PLACES {
            if !served.contains_key(api_version) {
                served.insert(api_version, self.served(api_version).await?);
            }
            if !found.contains_key(&kind) && served[api_version].contains(plural) {
                found.insert(kind, api_resource(api_version, name, plural));
            }
        }
        Some(found)
    }

    /// The plurals that an API has. All APIs must have answered for any answer to count, so each is asked a few times.
    async fn served(&self, api_version: &str) -> Option<BTreeSet<String>> {
        for _ in 0..MOST_QUESTIONS {
            match self.client.list_api_group_resources(api_version).await {
                Ok(list) => return Some(list.resources.into_iter().map(|resource| resource.name).collect()),
                Err(kube::Error::Api(status)) if status.code == 404 => return Some(BTreeSet::new()),
                Err(error) => tracing::warn!(api_version, %error, "cannot tell whether an API is served"),
            }
            tokio::time::sleep(BEFORE_THE_NEXT).await;
        }
        None
    }

    /// Follows what is served and nothing else.
    async fn adopt(&mut self, found: BTreeMap<Declares, ApiResource>) -> Result<(), Closed> {
        let gone: Vec<_> = self.followed.keys().copied().filter(|kind| !found.contains_key(kind)).collect();
        for kind in gone {
            self.leave(kind);
            for change in kind.none() {
                self.outlet.send(change).await?;
            }
        }
        for (kind, api) in found {
            self.take_up(kind, api);
        }
        Ok(())
    }

    fn leave(&mut self, kind: Declares) {
        if let Some(followed) = self.followed.remove(&kind) {
            followed.watch.abort();
        }
    }

    fn take_up(&mut self, kind: Declares, api: ApiResource) {
        if self.followed.get(&kind).is_some_and(|followed| followed.api_version == api.api_version) {
            return;
        }
        self.leave(kind);
        let api_version = api.api_version.clone();
        let objects = Api::<DynamicObject>::all_with(self.client.clone(), &api);
        let outlet = self.outlet.of(kind.label());
        let bad_objects = outlet.bad_objects();
        let watch = self.watches.spawn(follow_kind(objects, listed(&self.settings), outlet, move |delta| {
            let (changes, bad) = kind.read(&api, delta);
            bad_objects.inc_by(bad);
            changes
        }));
        self.followed.insert(kind, Followed { api_version, watch });
    }
}

impl Declares {
    /// That there are none of these.
    fn none(self) -> Vec<Change> {
        match self {
            Gangs(GroupKind::Training) => vec![
                Change::Group(GroupKind::Training, Delta::Reset(Vec::new())),
                Change::TrainingJob(Delta::Reset(Vec::new())),
            ],
            Gangs(kind) => vec![Change::Group(kind, Delta::Reset(Vec::new()))],
            Queues(kind) => vec![Change::Queue(kind, Delta::Reset(Vec::new()))],
            Links => vec![Change::Fabric(Delta::Reset(Vec::new()))],
            Places => vec![Change::HyperNode(Delta::Reset(Vec::new()))],
            Progress => vec![Change::TrainJob(Delta::Reset(Vec::new()))],
        }
    }

    /// What changes, and how many of the objects that came make no sense.
    fn read(self, api: &ApiResource, delta: Delta<DynamicObject>) -> (Vec<Change>, u64) {
        match self {
            Gangs(kind) => {
                let deltas = gangs(kind, api, &delta);
                let is_bad = |group: &Group| group.min_members.is_err() || !group.complaints.is_empty();
                let bad = deltas.iter().map(|delta| count(delta, is_bad)).sum();
                // A job declares a gang, and is something to see to by itself.
                let jobs = (kind == GroupKind::Training)
                    .then(|| Change::TrainingJob(delta.map(|object| TrainingJob::read(api, &object))));
                let groups = deltas.into_iter().map(|delta| Change::Group(kind, delta));
                (groups.chain(jobs).collect(), bad)
            }
            Queues(kind) => {
                let delta = delta.map(|object| Queue::read(kind, api, &object));
                let bad = count(&delta, |queue| queue.described.is_err());
                (vec![Change::Queue(kind, delta)], bad)
            }
            Links => {
                let delta = delta.map(|object| Fabric::read(api, &object));
                let bad = count(&delta, |fabric| fabric.terrain.is_err());
                (vec![Change::Fabric(delta)], bad)
            }
            Places => {
                let delta = delta.map(|object| HyperNode::read(&object));
                let bad = count(&delta, |one| !one.is_clear);
                (vec![Change::HyperNode(delta)], bad)
            }
            Progress => (vec![Change::TrainJob(delta.map(|object| TrainJob::read(&object)))], 0),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Gangs(GroupKind::Upstream) => "upstream_groups",
            Gangs(GroupKind::Workload) => "workloads",
            Gangs(GroupKind::Plugins) => "plugins_groups",
            Gangs(GroupKind::Volcano) => "volcano_groups",
            Gangs(GroupKind::Training) => "training_jobs",
            Gangs(GroupKind::JobSet) => "job_sets",
            Gangs(GroupKind::PyTorchJob) => "pytorch_jobs",
            Gangs(GroupKind::TfJob) => "tf_jobs",
            Gangs(GroupKind::MpiJob) => "mpi_jobs",
            Gangs(GroupKind::RayCluster) => "ray_clusters",
            Queues(QueueKind::Own) => "queues",
            Queues(QueueKind::Volcano) => "volcano_queues",
            Links => "fabrics",
            Places => "hyper_nodes",
            Progress => "train_jobs",
        }
    }
}

/// The gangs that the objects declare; those that make no sense come with their complaints.
fn gangs(kind: GroupKind, api: &ApiResource, delta: &Delta<DynamicObject>) -> Vec<Delta<Group>> {
    let groups = |object| Group::read(kind, api, object).into_iter();
    match delta {
        Delta::Reset(objects) => vec![Delta::Reset(objects.iter().flat_map(groups).collect())],
        Delta::Applied(object) => groups(object).map(Delta::Applied).collect(),
        Delta::Deleted(object) => groups(object).map(Delta::Deleted).collect(),
    }
}

/// How many of those that came are like that.
fn count<T>(delta: &Delta<T>, is_so: impl Fn(&T) -> bool) -> u64 {
    match delta {
        Delta::Reset(all) => all.iter().map(|one| u64::from(is_so(one))).sum(),
        Delta::Applied(one) => is_so(one).into(),
        Delta::Deleted(_) => 0,
    }
}

fn api_resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
