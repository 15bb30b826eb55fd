//! Recorded intents: one ConfigMap for each gang whose binds have begun.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::deed::{Intent, IntentName};

/// The label that tells intents from other ConfigMaps.
pub const INTENT_LABEL: &str = "metronome.dev/intent";
/// Where in the ConfigMap the intent stands, as JSON.
pub const INTENT_KEY: &str = "intent.json";

/// An intent as it stands at the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub name: IntentName,
    pub version: String,
    /// What it says, or why that cannot be read.
    pub intent: Result<Intent, String>,
}

impl Recorded {
    pub(crate) fn read(map: ConfigMap) -> Self {
        let name = IntentName(map.metadata.name.unwrap_or_default());
        let body = map.data.and_then(|mut data| data.remove(INTENT_KEY));
        let intent =
            body.ok_or_else(|| format!("{INTENT_KEY} is missing")).and_then(|text| parse(&text, &name));
        Self { name, version: map.metadata.resource_version.unwrap_or_default(), intent }
    }
}

fn parse(text: &str, name: &IntentName) -> Result<Intent, String> {
    let intent: Intent = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Intent { name: Some(name.clone()), ..intent })
}
