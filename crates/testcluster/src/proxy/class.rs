//! Kinds of requests, in the words of Kubernetes' authorisation: a verb and a resource.

use http::Method;
use http::request::Parts;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Whether it may change something.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// What is done to what: `Create` of `pods/binding`. Paths that are no resources, such as `/readyz`, stand for
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub verb: Verb,
    pub resource: String,
}

impl Class {
    pub fn new(verb: Verb, resource: &str) -> Self {
        Self { verb, resource: resource.to_owned() }
    }

    pub(super) fn of(request: &Parts) -> Self {
        let (resource, named) = resource(request.uri.path());
        let watching = request.uri.query().is_some_and(|query| {
            query.split('&').any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1"))
        });
        let verb = match (&request.method, named) {
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, Named::One) => Verb::Delete,
            (&Method::DELETE, Named::All) => Verb::DeleteCollection,
            _ if watching => Verb::Watch,
            (_, Named::One) => Verb::Get,
            (_, Named::All) => Verb::List,
        };
        Self { verb, resource }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    One,
    All,
}

/// The resource with its subresource, and whether the path names one object. The shape is
/// `/api/v1` or `/apis/group/version`, maybe `/namespaces/x`, then `/resource/name/subresource`.
fn resource(path: &str) -> (String, Named) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return (path.to_owned(), Named::One),
    };
    // Namespaces are a resource themselves, with two subresources.
    let rest = match rest {
        ["namespaces", _, "status" | "finalize"] | ["namespaces", _] => rest,
        ["namespaces", _, rest @ ..] => rest,
        _ => rest,
    };
    match rest {
        [] => (path.to_owned(), Named::One),
        [resource] => ((*resource).to_owned(), Named::All),
        [resource, _] => ((*resource).to_owned(), Named::One),
        [resource, _, subresource, ..] => (format!("{resource}/{subresource}"), Named::One),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_classed_as_kubernetes_does() {
        for (method, path, expected) in [
            ("GET", "/api/v1/nodes", (Verb::List, "nodes")),
            ("GET", "/api/v1/nodes?watch=true&resourceVersion=7", (Verb::Watch, "nodes")),
            ("GET", "/api/v1/nodes/a", (Verb::Get, "nodes")),
            ("GET", "/api/v1/namespaces/x", (Verb::Get, "namespaces")),
            ("PUT", "/api/v1/namespaces/x/finalize", (Verb::Update, "namespaces/finalize")),
            ("POST", "/api/v1/namespaces/x/pods/p/binding", (Verb::Create, "pods/binding")),
            ("POST", "/api/v1/namespaces/x/pods", (Verb::Create, "pods")),
            ("PATCH", "/api/v1/namespaces/x/pods/p/status", (Verb::Patch, "pods/status")),
            ("DELETE", "/api/v1/namespaces/x/pods", (Verb::DeleteCollection, "pods")),
            ("DELETE", "/apis/batch/v1/namespaces/x/jobs/j", (Verb::Delete, "jobs")),
            ("GET", "/apis/metronome.dev/v1alpha1/queues", (Verb::List, "queues")),
            ("GET", "/readyz", (Verb::Get, "/readyz")),
            ("GET", "/apis/batch/v1", (Verb::Get, "/apis/batch/v1")),
        ] {
            let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
            let class = Class::of(&request.into_parts().0);
            assert_eq!((class.verb, class.resource.as_str()), expected, "{method} {path}");
        }
    }
}
