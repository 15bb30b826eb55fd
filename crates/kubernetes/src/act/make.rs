//! Making what a job needs, and deleting it again.

use serde_json::json;

use super::hands::{Hands, Stop};
use super::promise::Result as Became;
use super::status::path;
use crate::deed::{NewObject, ObjectRef};
use crate::request::{Answer, Call, Verb};

impl Hands {
    /// Names are unique, so that nothing is made twice, however often it is asked for.
    pub(super) async fn make(&self, object: &NewObject) -> Became {
        let NewObject { namespace, plural, body, .. } = object;
        let path = format!("/api/v1/namespaces/{namespace}/{plural}");
        match self.settle(&self.urgent, &Call::with(Verb::Create, plural, path, body)).await {
            Ok(Answer::Done(_) | Answer::Conflict) => Became::Made,
            Ok(Answer::Refused(why) | Answer::Guarded(why)) => Became::NotMade(why),
            Ok(Answer::Absent) => Became::NotMade(format!("there is no namespace {namespace}")),
            Ok(Answer::Busy { .. }) => Became::GivenUp("the API server is busy".into()),
            Ok(Answer::Lost(why)) => Became::GivenUp(why),
            Err(stop) => stop.into(),
        }
    }

    /// Only this one is meant, and none that took its name.
    pub(super) async fn remove(&self, object: &ObjectRef) -> Became {
        let options = json!({
            "propagationPolicy": "Background",
            "preconditions": {"uid": &*object.uid},
        });
        let call = Call::with(Verb::Delete, "objects", path(object), &options);
        match self.settle(&self.urgent, &call).await {
            Ok(Answer::Done(_) | Answer::Absent | Answer::Conflict) => Became::Deleted,
            Ok(other) => {
                let why = format!("{}/{} cannot be deleted: {other:?}", object.namespace, object.name);
                Stop::Unreachable(why).into()
            }
            Err(stop) => stop.into(),
        }
    }
}
