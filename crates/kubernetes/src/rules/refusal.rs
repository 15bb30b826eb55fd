//! Why a pod cannot be placed at all, whatever the nodes: what is not supported is refused by name, never ignored.

use crate::rules::storage::VolumeTrouble;

/// Longer texts are cut in messages: a refusal must stay readable whatever was read.
const LONGEST: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{text}` is not an amount of {resource}")]
    Quantity { resource: String, text: String },
    #[error("{resource} asks for less than nothing: `{text}`")]
    Negative { resource: String, text: String },
    #[error("devices claimed dynamically (`resourceClaims`) are not supported")]
    DeviceClaims,
    #[error("{what} `{value}` is not known here")]
    Unknown { what: &'static str, value: String },
    #[error("{what} of `{key}` is malformed")]
    Malformed { what: &'static str, key: String },
    #[error("an inline volume of kind {0} is not supported; use a claim")]
    InlineVolume(&'static str),
    #[error("volume claim `{claim}`: {trouble}")]
    Volume { claim: String, trouble: VolumeTrouble },
    #[error(
        "the cluster knows {most} different counted resources and ports already; `{name}` is one too many"
    )]
    TooManyCounters { name: String, most: usize },
}

impl Refusal {
    pub(crate) fn unknown(what: &'static str, value: &str) -> Self {
        Self::Unknown { what, value: shortened(value) }
    }

    pub(crate) fn malformed(what: &'static str, key: &str) -> Self {
        Self::Malformed { what, key: shortened(key) }
    }

    pub(crate) fn quantity(resource: &str, text: &str) -> Self {
        Self::Quantity { resource: shortened(resource), text: shortened(text) }
    }

    pub(crate) fn negative(resource: &str, text: &str) -> Self {
        Self::Negative { resource: shortened(resource), text: shortened(text) }
    }

    /// Whether it may pass by itself as claims, volumes and classes come and go: then asking again is worth it.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Volume { trouble, .. } if trouble.may_pass())
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
