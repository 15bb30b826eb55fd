//! What a pod takes of a node and what a node has: containers, init containers, sidecars in their order, overhead,
//! pod-level requests, host ports, and the pod itself.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::objects::{Container, ContainerStatus, Node, Pod};
use crate::rules::Refusal;
use crate::rules::load::Load;
use crate::rules::ports::count_ports;
use crate::rules::quantity::Amount;

type Quantities = BTreeMap<String, Quantity>;
type Amounts<'a> = BTreeMap<&'a str, Amount>;

/// What a pod that has no node yet asks for.
pub fn wanted(pod: &Pod) -> Result<Load, Refusal> {
    let containers = in_sum(pod, asked)?;
    counted(pod, containers, pod_level(pod)?)
}

/// What a pod on a node holds: while its resources are being changed, the greatest of what was asked for, promised
/// and made real.
pub fn held(pod: &Pod) -> Result<Load, Refusal> {
    let containers = held_by_containers(pod)?;
    let mut level = pod_level(pod)?;
    if !level.is_empty() && pod.status.resources.is_some() {
        if resize_is_infeasible(pod) {
            level.clear();
        }
        raise(&mut level, read(requests(pod.status.resources.as_ref()))?);
        raise(&mut level, read(pod.status.allocated_resources.as_ref())?);
        level.retain(|name, _| is_pod_level(name));
    }
    counted(pod, containers, level)
}

/// What a node has to give.
pub fn supply(node: &Node) -> Load {
    let allocatable = node.status.allocatable.iter().flatten();
    let amounts = allocatable.filter_map(|(name, text)| Some((name.as_str(), Amount::parse(&text.0)?)));
    Load::of_node(&amounts.collect())
}

pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn counted<'a>(pod: &'a Pod, containers: Amounts<'a>, level: Amounts<'a>) -> Result<Load, Refusal> {
    let mut amounts = containers;
    amounts.extend(level);
    add(&mut amounts, read(pod.spec.overhead.as_ref())?);
    amounts.insert("pods", Amount::ONE);
    let mut load = Load::of(&amounts);
    count_ports(pod, &mut load);
    Ok(load)
}

/// Pod-level requests stand in for the sum of the containers', for the resources that can be given there.
fn pod_level(pod: &Pod) -> Result<Amounts<'_>, Refusal> {
    let mut level = read(requests(pod.spec.resources.as_ref()))?;
    level.retain(|name, _| is_pod_level(name));
    Ok(level)
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn held_by_containers(pod: &Pod) -> Result<Amounts<'_>, Refusal> {
    let infeasible = resize_is_infeasible(pod);
    let status = |container: &Container| status_of(pod, &container.name);
    let promised = |container| {
        let promised = status(container).and_then(|status| status.allocated_resources.as_ref());
        promised.or_else(|| if infeasible { None } else { asked(container) })
    };
    let real = |container| {
        let real = status(container).and_then(|status| requests(status.resources.as_ref()));
        real.or_else(|| promised(container))
    };
    let mut held = match (&pod.status.allocated_resources, requests(pod.status.resources.as_ref())) {
        (Some(promised), Some(real)) => greater(read(Some(promised))?, read(Some(real))?),
        _ => greater(in_sum(pod, promised)?, in_sum(pod, real)?),
    };
    if !infeasible {
        raise(&mut held, in_sum(pod, asked)?);
    }
    Ok(held)
}

fn status_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let regular = pod.status.container_statuses.iter().flatten();
    let initial = pod.status.init_container_statuses.iter().flatten();
    regular.chain(initial).find(|status| status.name == name)
}

/// Whether a pod was asked to have what its node will never have.
pub fn resize_is_infeasible(pod: &Pod) -> bool {
    let pending =
        pod.status.conditions.iter().flatten().find(|condition| condition.kind == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

/// Regular containers run together. An init container runs beside the sidecars started before it, and the pod takes
/// the most that any moment takes.
fn in_sum<'a>(
    pod: &'a Pod,
    of: impl Fn(&'a Container) -> Option<&'a Quantities>,
) -> Result<Amounts<'a>, Refusal> {
    let (mut running, mut sidecars, mut at_start) = (Amounts::new(), Amounts::new(), Amounts::new());
    for container in &pod.spec.containers {
        add(&mut running, read(of(container))?);
    }
    for container in pod.spec.init_containers.iter().flatten() {
        let mut moment = read(of(container))?;
        if is_sidecar(container) {
            add(&mut running, moment.clone());
            add(&mut sidecars, moment);
            moment = sidecars.clone();
        } else {
            add(&mut moment, sidecars.clone());
        }
        raise(&mut at_start, moment);
    }
    raise(&mut running, at_start);
    Ok(running)
}

fn asked(container: &Container) -> Option<&Quantities> {
    requests(container.resources.as_ref())
}

fn requests(needs: Option<&crate::objects::Needs>) -> Option<&Quantities> {
    needs.and_then(|needs| needs.requests.as_ref())
}

fn read(quantities: Option<&Quantities>) -> Result<Amounts<'_>, Refusal> {
    quantities.into_iter().flatten().map(|(name, text)| Ok((name.as_str(), amount(name, text)?))).collect()
}

fn amount(name: &str, text: &Quantity) -> Result<Amount, Refusal> {
    let amount = Amount::parse(&text.0).ok_or_else(|| Refusal::quantity(name, &text.0))?;
    if amount.is_negative() { Err(Refusal::negative(name, &text.0)) } else { Ok(amount) }
}

fn add<'a>(sum: &mut Amounts<'a>, more: Amounts<'a>) {
    for (name, amount) in more {
        let total = sum.entry(name).or_default();
        *total = *total + amount;
    }
}

fn greater<'a>(mut one: Amounts<'a>, other: Amounts<'a>) -> Amounts<'a> {
    raise(&mut one, other);
    one
}

fn raise<'a>(most: &mut Amounts<'a>, other: Amounts<'a>) {
    for (name, amount) in other {
        let greatest = most.entry(name).or_default();
        *greatest = (*greatest).max(amount);
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests {
    use super::*;
    use crate::rules::load::Counter;
    use metronome_core::model::units::{Cpu, Memory};

    fn pod(spec: serde_json::Value) -> Pod {
        serde_json::from_value(serde_json::json!({"metadata": {}, "spec": spec})).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        serde_json::json!({"name": cpu, "resources": {"requests": {"cpu": cpu}}})
    }

    fn sidecar(cpu: &str) -> serde_json::Value {
        serde_json::json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
    }

    fn cpu(spec: serde_json::Value) -> Cpu {
        wanted(&pod(spec)).unwrap().resources.cpu
    }

    #[test]
    fn containers_add_up_and_init_containers_take_turns() {
        assert_eq!(cpu(serde_json::json!({"containers": [container("1"), container("500m")]})), Cpu(1500));
        let long_start = serde_json::json!({
            "containers": [container("1")], "initContainers": [container("3"), container("2")]
        });
        assert_eq!(cpu(long_start), Cpu(3000));
    }

    #[test]
    fn an_init_container_runs_beside_the_sidecars_before_it() {
        let before = serde_json::json!({
            "containers": [container("1")], "initContainers": [sidecar("2"), container("3")]
        });
        let after = serde_json::json!({
            "containers": [container("1")], "initContainers": [container("3"), sidecar("2")]
        });
        assert_eq!((cpu(before), cpu(after)), (Cpu(5000), Cpu(3000)));
    }

    #[test]
    fn pod_level_requests_stand_above_and_overhead_is_added() {
        let spec = serde_json::json!({
            "containers": [{"resources": {"requests": {"cpu": "1", "example.com/x": "2"}}}],
            "resources": {"requests": {"cpu": "4", "memory": "1Gi", "example.com/x": "9"}},
            "overhead": {"cpu": "100m"},
        });
        let load = wanted(&pod(spec)).unwrap();
        assert_eq!((load.resources.cpu, load.resources.memory), (Cpu(4100), Memory::gib(1)));
        assert_eq!(
            load.counters[&Counter::Resource("example.com/x".into())],
            2,
            "not given at the pod's level"
        );
        assert_eq!(load.counters[&Counter::Pods], 1);
    }

    #[test]
    fn fractions_are_rounded_up_once() {
        let tenth = serde_json::json!({"resources": {"requests": {"memory": "100m"}}});
        let load = wanted(&pod(serde_json::json!({"containers": [tenth, tenth]}))).unwrap();
        assert_eq!(load.resources.memory, Memory(1));
    }

    #[test]
    fn a_pod_being_resized_holds_the_greater() {
        let status = |reason: &str| {
            let mut pod = pod(serde_json::json!({"containers": [container("4")]}));
            pod.status = serde_json::from_value(serde_json::json!({
                "conditions": [{"type": "PodResizePending", "reason": reason}],
                "containerStatuses": [{
                    "name": "4", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}
                }],
            }))
            .unwrap();
            held(&pod).unwrap().resources.cpu
        };
        assert_eq!((status("Deferred"), status("Infeasible")), (Cpu(4000), Cpu(3000)));
    }

    #[test]
    fn absurd_requests_fit_nowhere_and_meaningless_ones_are_refused() {
        let huge = serde_json::json!({"resources": {"requests": {"cpu": "1e30", "memory": "1e30"}}});
        let node = serde_json::from_value(serde_json::json!({
            "metadata": {}, "status": {"allocatable": {"cpu": "1e30", "memory": "1e30", "pods": "-5"}}
        }));
        let (want, have) =
            (wanted(&pod(serde_json::json!({"containers": [huge]}))).unwrap(), supply(&node.unwrap()));
        assert!(!want.resources.fits_in(have.resources));
        assert_eq!(have.counters.get(&Counter::Pods), None);
        for (text, refused) in [("abc", true), ("-1", true), ("1", false)] {
            let spec = serde_json::json!({"containers": [container(text)]});
            assert_eq!(wanted(&pod(spec)).is_err(), refused, "{text}");
        }
    }
}
