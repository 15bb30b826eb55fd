//! What pods ask for and nodes have. Written anew, on purpose: it is to catch mistakes in the code under test.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Thousandths of each resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    pub(super) fn of<'a>(quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Self {
        let amount = |(name, quantity): (&'a String, &'a Quantity)| (name.clone(), thousandths(&quantity.0));
        Self(quantities.into_iter().map(amount).collect())
    }

    /// What a pod takes from its node, one of its places for pods included.
    pub(super) fn requested_by(pod: &Pod) -> Self {
        let mut amounts = pod.spec.as_ref().map(requested).unwrap_or_default();
        amounts.0.insert("pods".to_owned(), 1000);
        amounts
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() += amount;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() -= amount;
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
    }

    /// The first resource of which `wanted` does not fit beside `used`. A real kubelet overlooks an extended resource
    /// that its node does not have at all; for a scheduler under test that is a mistake like any other.
    pub(super) fn lacking<'a>(&self, used: &Self, wanted: &'a Self) -> Option<&'a str> {
        let amount = |amounts: &Self, name: &str| amounts.0.get(name).copied().unwrap_or_default();
        let lacks = |name: &str, wanted: i128| wanted > 0 && amount(used, name) + wanted > amount(self, name);
        wanted.0.iter().find(|(name, wanted)| lacks(name, **wanted)).map(|(name, _)| name.as_str())
    }
}

/// The most that is needed at one time: containers run together with the sidecars; each init container runs alone
/// but for the sidecars started before it.
fn requested(spec: &PodSpec) -> Amounts {
    let (mut sidecars, mut peak) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        let mut together = sidecars.clone();
        together.add(&of_container(container));
        peak.raise_to(&together);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = together;
        }
    }
    let mut amounts = sidecars;
    spec.containers.iter().for_each(|container| amounts.add(&of_container(container)));
    amounts.raise_to(&peak);
    let of_pod = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    amounts.0.extend(Amounts::of(of_pod.into_iter().flatten()).0);
    amounts.add(&Amounts::of(spec.overhead.iter().flatten()));
    amounts
}

fn of_container(container: &Container) -> Amounts {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    Amounts::of(requests.into_iter().flatten())
}

/// Reads what the API server has let pass, rounding up. More digits than an `f64` has do not occur in tests.
fn thousandths(text: &str) -> i128 {
    const SUFFIXES: [(&str, f64); 15] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let scaled =
        |(suffix, factor): &(&str, f64)| Some(text.strip_suffix(suffix)?.parse::<f64>().ok()? * factor);
    let number = SUFFIXES.iter().find_map(scaled).or_else(|| text.parse().ok());
    let number = number.unwrap_or_else(|| panic!("`{text}` is not a quantity"));
    // A hair below the next whole thousandth is the thousandth itself, written in binary.
    (number * 1000.0 - 1e-6).ceil() as i128
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn requests(spec: &Value) -> Amounts {
        Amounts::requested_by(&serde_json::from_value(json!({ "spec": spec })).unwrap())
    }

    fn amounts(pairs: &[(&str, &str)]) -> Amounts {
        let quantities: BTreeMap<String, Quantity> =
            pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity((*text).to_owned()))).collect();
        Amounts::of(&quantities)
    }

    fn container(cpu: &str) -> Value {
        json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
    }

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("1", 1000),
            ("250m", 250),
            ("0.1", 100),
            ("1e3", 1_000_000),
            ("2Ki", 2_048_000),
            ("1500u", 2),
            ("1G", 1_000_000_000_000),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }

    #[test]
    fn containers_and_sidecars_are_added_and_init_containers_are_not() {
        let mut sidecar = container("500m");
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "containers": [container("1"), container("2")],
            "initContainers": [container("3"), sidecar, container("3")],
            "overhead": { "cpu": "100m" },
        });
        assert_eq!(requests(&spec), amounts(&[("cpu", "3600m"), ("pods", "1")]));
        let small = json!({ "containers": [container("1")], "initContainers": [container("3")] });
        assert_eq!(requests(&small), amounts(&[("cpu", "3"), ("pods", "1")]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let node = amounts(&[("cpu", "4"), ("pods", "2")]);
        let used = amounts(&[("cpu", "3"), ("pods", "1")]);
        let wants = |pairs: &[(&str, &str)]| node.lacking(&used, &amounts(pairs)).map(str::to_owned);
        assert_eq!(wants(&[("cpu", "1"), ("pods", "1")]), None);
        assert_eq!(wants(&[("cpu", "1001m")]), Some("cpu".to_owned()));
        assert_eq!(wants(&[("pods", "2")]), Some("pods".to_owned()));
        assert_eq!(wants(&[("nvidia.com/gpu", "1")]), Some("nvidia.com/gpu".to_owned()));
        assert_eq!(wants(&[("nvidia.com/gpu", "0")]), None);
    }
}
