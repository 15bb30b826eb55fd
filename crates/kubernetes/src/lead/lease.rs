//! The Lease as it is read and written.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::request::{Call, Verb};

const RESOURCE: &str = "leases";

/// A lease as somebody left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Lease {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: String,
    annotations: Annotations,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "metronome.dev/version")]
    version: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    lease_transitions: Option<u64>,
    /// Compared with what it was, never with a clock.
    renew_time: Option<String>,
}

impl Lease {
    pub(super) fn read(body: &Bytes) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    pub(super) fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// What its holder promised to renew within.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.spec.lease_duration_seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    pub(super) fn transitions(&self) -> u64 {
        self.spec.lease_transitions.unwrap_or(0)
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.metadata.annotations.version.as_deref()
    }

    pub(super) fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

/// What we write: to create, or to merge into what is there if it is still as we saw it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: WrittenMetadata<'a>,
    spec: WrittenSpec<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMetadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    annotations: WrittenAnnotations<'a>,
}

#[derive(Debug, Serialize)]
struct WrittenAnnotations<'a> {
    #[serde(rename = "metronome.dev/version")]
    version: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSpec<'a> {
    holder_identity: &'a str,
    lease_duration_seconds: u64,
    lease_transitions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<String>,
    renew_time: String,
}

/// What is to become of the lease.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claim<'a> {
    Create {
        epoch: u64,
    },
    /// From another holder, or from nobody.
    Take {
        lease: &'a Lease,
        epoch: u64,
    },
    Renew(&'a Lease),
    Release(&'a Lease),
}

pub(super) fn look(settings: &Settings) -> Call {
    Call::get(RESOURCE, format!("{}/{}", collection(settings), settings.lease))
}

pub(super) fn write(settings: &Settings, claim: Claim<'_>) -> Call {
    let body = Written {
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: WrittenMetadata {
            name: &settings.lease,
            resource_version: claim.seen().map(Lease::resource_version),
            annotations: WrittenAnnotations { version: &settings.version },
        },
        spec: claim.spec(settings),
    };
    match claim {
        Claim::Create { .. } => Call::with(Verb::Create, RESOURCE, collection(settings), &body),
        _ => Call::with(
            Verb::MergePatch,
            RESOURCE,
            format!("{}/{}", collection(settings), settings.lease),
            &body,
        ),
    }
}

impl<'a> Claim<'a> {
    fn seen(self) -> Option<&'a Lease> {
        match self {
            Self::Create { .. } => None,
            Self::Take { lease, .. } | Self::Renew(lease) | Self::Release(lease) => Some(lease),
        }
    }

    fn spec(self, settings: &Settings) -> WrittenSpec<'_> {
        let releases = matches!(self, Self::Release(_));
        let renews = matches!(self, Self::Renew(_));
        WrittenSpec {
            holder_identity: if releases { "" } else { &settings.identity },
            // As client-go leaves it: whoever waits need not wait.
            lease_duration_seconds: if releases { 1 } else { settings.duration.as_secs().max(1) },
            lease_transitions: self.epoch(),
            acquire_time: (!renews).then(now),
            renew_time: now(),
        }
    }

    /// Another whenever the lead changes hands.
    fn epoch(self) -> u64 {
        match self {
            Self::Create { epoch } | Self::Take { epoch, .. } => epoch,
            Self::Renew(lease) | Self::Release(lease) => lease.transitions(),
        }
    }
}

/// For people who read the lease; no replica decides by it.
fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

fn collection(settings: &Settings) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", settings.namespace)
}
