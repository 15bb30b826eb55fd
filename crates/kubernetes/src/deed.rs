//! What is to be done at the API server, said in full, and what became of it. The world makes deeds and hears
//! outcomes; `act` carries out and chooses nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names one deed, so that its outcome finds its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A pod as it was when the deed was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRef {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Not part of what an intent records: it changes with every write.
    #[serde(skip)]
    pub version: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    pub ticket: Ticket,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Binds every member, all to the nodes given. A gang's intent is recorded first; where one of that name exists
    /// already, it is taken over if it says the same placement or is an earlier leader's.
    Bind { members: Vec<Seat>, intent: Option<Intent> },
    /// Evicts all of these, after a dry run of every one has passed. Nobody is evicted where one may not be. Where they
    /// make room for others of their own, that is recorded first.
    Evict { victims: Vec<PodRef>, why: String, intent: Option<Intent> },
    /// Deletes what cannot be unbound, so that its owner makes it anew.
    Delete { pods: Vec<PodRef>, why: String },
    /// Gives a container of a running pod another number of cores.
    Resize { pod: PodRef, to: Resized },
    /// Says on a pod why it waits, and where it will go once there is room.
    Explain { pod: PodRef, verdict: Verdict },
    /// Says something on a pod, or takes it back where there is no value.
    Annotate { pod: PodRef, key: &'static str, value: Option<String> },
    /// Says on a pod whether its job will be in time.
    Foretell { pod: PodRef, foretold: Foretold },
    /// Tells about an object, for people: aggregated and rate-limited by whoever carries it out.
    Tell(Telling),
    /// The gang runs, or was given up: its recorded intent is of no more use.
    Forget { intent: IntentName, generation: Option<u64> },
    /// Writes back to an object what has become of what it declares.
    Status { object: ObjectRef, status: serde_json::Value },
    /// Makes an object that somebody's job needs. One of that name that is there already will do.
    Make(NewObject),
    /// Deletes an object, and what it owns with it.
    Remove { object: ObjectRef },
}

/// An object that is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NewObject {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Of which kind, as paths name it; one of the API server's own.
    pub plural: &'static str,
    pub body: serde_json::Value,
}

/// A pod and the node it goes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    pub pod: PodRef,
    pub node: Arc<str>,
}

/// The cores that a container is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resized {
    pub container: Arc<str>,
    pub cores: u32,
    /// It is also limited to them.
    pub limited: bool,
}

/// The name of the object that records a gang's intent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentName(pub String);

/// Where every member of a gang goes, recorded before the first is bound: whoever leads next completes it, or gives
/// it up knowingly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    #[serde(skip)]
    pub name: Option<IntentName>,
    /// `kind/namespace/name` of the gang.
    pub gang: String,
    /// The plan it comes from.
    pub generation: u64,
    /// Who recorded it: the number of times the lead had changed hands.
    pub epoch: u64,
    /// The whole gang, members that are bound already included.
    pub seats: Vec<Seat>,
    /// Pods that leave so that others are made in their place, where that is what is intended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<PodRef>,
}

/// What the condition `PodScheduled` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub why: Why,
    pub message: String,
    pub nominated: Option<Arc<str>>,
}

/// What the condition `metronome.dev/InTime` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foretold {
    pub certainty: Certainty,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Whoever comes.
    Promised,
    /// Unless others of whom more can be in time need its place.
    Planned,
    /// Perhaps, on what others leave.
    NotBooked,
    /// The deadline is over, or cannot be met any more.
    TooLate,
}

/// The reasons that other tools match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Unschedulable,
    SchedulerError,
}

/// One line for people about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    pub about: About,
    pub reason: EventReason,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Pod(PodRef),
    Object(ObjectRef),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventReason {
    Scheduled,
    FailedScheduling,
    Preempted,
    /// What a queue's object says cannot be, and is not in force.
    QueueRefused,
    /// What a pod says of its progress cannot be understood.
    ProgressIgnored,
    /// Several jobs failed on a node, and it takes nothing new for a while.
    NodeAvoided,
    /// Nothing was heard of a job's progress for so long that it seems to hang.
    Stalled,
    /// What a pod says may be done to it cannot be understood.
    AnnotationIgnored,
    /// It makes room where it is, to go on elsewhere.
    Moved,
    /// It was to go elsewhere, and stays.
    NotMoved,
}

/// An object that declares a gang or a queue. Without a namespace, it belongs to the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    pub plural: Arc<str>,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

/// What became of a deed whose outcome matters.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Each member with what became of it.
    Bound {
        ticket: Ticket,
        members: Vec<(Seat, Bound)>,
    },
    /// Another intent is recorded for this gang, and nothing was bound.
    IntentTaken {
        ticket: Ticket,
    },
    /// All are on their way out.
    Evicted {
        ticket: Ticket,
    },
    /// One of them may not be evicted: nobody was.
    NotEvicted {
        ticket: Ticket,
        refusal: String,
    },
    /// All might have been evicted when it was tried out, and then one might not: a budget shrank in between.
    /// The others are on their way out.
    EvictedInPart {
        ticket: Ticket,
        refusal: String,
    },
    Deleted {
        ticket: Ticket,
    },
    /// The API server has it; the kubelet will.
    Resized {
        ticket: Ticket,
    },
    NotResized {
        ticket: Ticket,
        refusal: String,
    },
    /// It is there, or another of its name is.
    Made {
        ticket: Ticket,
    },
    /// The API server will not have it.
    NotMade {
        ticket: Ticket,
        refusal: String,
    },
    /// What was to be written back is, or cannot be.
    Written {
        ticket: Ticket,
    },
    /// Nothing was done, and nothing more is tried: the lead is lost, or the API server cannot be reached.
    GivenUp {
        ticket: Ticket,
        why: String,
    },
}

impl Outcome {
    pub fn ticket(&self) -> Ticket {
        match self {
            Self::Bound { ticket, .. }
            | Self::IntentTaken { ticket }
            | Self::Evicted { ticket }
            | Self::NotEvicted { ticket, .. }
            | Self::EvictedInPart { ticket, .. }
            | Self::Deleted { ticket }
            | Self::Resized { ticket }
            | Self::NotResized { ticket, .. }
            | Self::Made { ticket }
            | Self::NotMade { ticket, .. }
            | Self::Written { ticket }
            | Self::GivenUp { ticket, .. } => *ticket,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// To the node we said, now or before.
    Here,
    /// Somebody bound it to another node.
    Elsewhere,
    /// It is gone, or another of its name is there.
    Gone,
    /// The API server will not have it.
    Refused,
    /// Nothing is known: the answer was lost too often.
    Unknown,
}
