//! Kinds that declare gangs. Which of them a cluster has is found out by asking, and asked again now and then:
//! custom resources may be installed later, or removed.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::task::{AbortHandle, JoinSet};

use super::follow::{Closed, Outlet, follow as follow_kind};
use super::{Change, Delta, Settings};
use crate::objects::{Group, GroupKind};

/// Where each kind may be found, the newest version first.
const PLACES: [(GroupKind, &str, &str, &str); 5] = [
    (GroupKind::Upstream, "scheduling.k8s.io/v1beta1", "PodGroup", "podgroups"),
    (GroupKind::Upstream, "scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups"),
    (GroupKind::Workload, "scheduling.k8s.io/v1alpha1", "Workload", "workloads"),
    (GroupKind::Plugins, "scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups"),
    (GroupKind::Volcano, "scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
];

/// Follows every kind there is, and those that come, until nobody listens.
pub(super) async fn follow(client: Client, settings: Settings, outlet: Outlet) {
    let mut groups = Groups { client, settings, outlet, followed: BTreeMap::new(), watches: JoinSet::new() };
    // The first look must succeed: a cluster whose gangs are not known yet is not synced.
    let mut found = groups.discover().await;
    while found.is_none() {
        tokio::time::sleep(groups.settings.rediscover.min(FIRST_LOOK)).await;
        found = groups.discover().await;
    }
    loop {
        if let Some(found) = found
            && groups.adopt(found).await.is_err()
        {
            return;
        }
        groups.outlet.stop_waiting();
        tokio::time::sleep(groups.settings.rediscover).await;
        found = groups.discover().await;
    }
}

/// How soon to look again where the first look failed.
const FIRST_LOOK: std::time::Duration = std::time::Duration::from_secs(2);

struct Groups {
    client: Client,
    settings: Settings,
    outlet: Outlet,
    followed: BTreeMap<GroupKind, Followed>,
    watches: JoinSet<()>,
}

struct Followed {
    api_version: String,
    watch: AbortHandle,
}

impl Groups {
    /// The kinds that are served now; nothing where the API server did not say.
    async fn discover(&self) -> Option<BTreeMap<GroupKind, ApiResource>> {
        let mut found = BTreeMap::new();
        for (kind, api_version, name, plural) in PLACES {
            if !found.contains_key(&kind) && self.serves(api_version, plural).await? {
                found.insert(kind, api_resource(api_version, name, plural));
            }
        }
        Some(found)
    }

    async fn serves(&self, api_version: &str, plural: &str) -> Option<bool> {
        match self.client.list_api_group_resources(api_version).await {
            Ok(list) => Some(list.resources.iter().any(|resource| resource.name == plural)),
            Err(kube::Error::Api(status)) if status.code == 404 => Some(false),
            Err(error) => {
                tracing::warn!(api_version, %error, "cannot tell whether an API is served");
                None
            }
        }
    }

    /// Follows what is served and nothing else.
    async fn adopt(&mut self, found: BTreeMap<GroupKind, ApiResource>) -> Result<(), Closed> {
        let gone: Vec<_> = self.followed.keys().copied().filter(|kind| !found.contains_key(kind)).collect();
        for kind in gone {
            self.leave(kind);
            self.outlet.send(Change::Group(kind, Delta::Reset(Vec::new()))).await?;
        }
        for (kind, api) in found {
            self.take_up(kind, api);
        }
        Ok(())
    }

    fn leave(&mut self, kind: GroupKind) {
        if let Some(followed) = self.followed.remove(&kind) {
            followed.watch.abort();
        }
    }

    fn take_up(&mut self, kind: GroupKind, api: ApiResource) {
        if self.followed.get(&kind).is_some_and(|followed| followed.api_version == api.api_version) {
            return;
        }
        self.leave(kind);
        let api_version = api.api_version.clone();
        let objects = Api::<DynamicObject>::all_with(self.client.clone(), &api);
        let config = watcher::Config::default().page_size(self.settings.page);
        let outlet = self.outlet.of(label(kind));
        let watch = self.watches.spawn(follow_kind(objects, config, outlet, move |delta| {
            read(kind, &api, delta).into_iter().map(move |delta| Change::Group(kind, delta))
        }));
        self.followed.insert(kind, Followed { api_version, watch });
    }
}

/// The gangs that the objects declare; those that make no sense come with their complaints.
fn read(kind: GroupKind, api: &ApiResource, delta: Delta<DynamicObject>) -> Vec<Delta<Group>> {
    let groups = |object| Group::read(kind, api, object).into_iter();
    match delta {
        Delta::Reset(objects) => vec![Delta::Reset(objects.into_iter().flat_map(groups).collect())],
        Delta::Applied(object) => groups(object).map(Delta::Applied).collect(),
        Delta::Deleted(object) => groups(object).map(Delta::Deleted).collect(),
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

fn label(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Upstream => "upstream_groups",
        GroupKind::Workload => "workloads",
        GroupKind::Plugins => "plugins_groups",
        GroupKind::Volcano => "volcano_groups",
    }
}
