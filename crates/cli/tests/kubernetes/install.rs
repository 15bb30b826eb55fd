//! The chart and `metronome install` say the same, and a real API server takes it.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use metronome_testcluster::shared;
use serde_json::Value;

use crate::helm::{Helm, chart, objects, printed};

/// Values for the chart, and the flags that say the same.
const CHOICES: [(&[&str], &[&str]); 3] = [
    (&[], &[]),
    (
        &[
            "image=registry.example/metronome:1",
            "replicas=3",
            "schedulerName=gangs",
            "policy=fifo-skip",
            "levels={example.org/room,example.org/rack}",
            "journal.enabled=true",
            "guard.enabled=true",
            "monitoring.enabled=true",
            "agent.enabled=true",
            "agent.image=registry.example/agent:1",
        ],
        &[
            "--image=registry.example/metronome:1",
            "--replicas=3",
            "--scheduler-name=gangs",
            "--policy=fifo-skip",
            "--level=example.org/room",
            "--level=example.org/rack",
            "--journal",
            "--guard",
            "--monitoring",
            "--agent",
            "--agent-image=registry.example/agent:1",
        ],
    ),
    (
        &["observe=true", "definitions.enabled=false", "monitoring.enabled=true"],
        &["--observe", "--without-definitions", "--monitoring"],
    ),
];

#[test]
fn the_chart_and_the_command_say_the_same() {
    let Some(helm) = Helm::get() else { return };
    for (values, flags) in CHOICES {
        // A namespace that YAML would read as a number if it were not quoted.
        let (rendered, printed) = (helm.template("123", values).unwrap(), printed("123", flags));
        let (rendered, printed) = (objects(&rendered), objects(&printed));
        assert!(rendered.len() > 7, "{rendered:?}");
        for (rendered, printed) in rendered.iter().zip(&printed) {
            assert_eq!(rendered, printed, "{values:?}");
        }
        assert_eq!(rendered.len(), printed.len(), "{values:?}");
    }
}

#[test]
fn the_chart_is_sound() {
    let Some(helm) = Helm::get() else { return };
    let output = helm.run(&["lint", "--strict", chart()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let Some(helm) = Helm::get() else { return };
    let wrong = [
        ("replicas=0", "/replicas"),
        ("replicas=many", "/replicas"),
        ("replica=3", "replica"),
        ("guard=true", "/guard"),
        ("policy=fifo skip", "/policy"),
        ("schedulerName=it's", "/schedulerName"),
        ("journal.size=much", "/journal/size"),
        ("levels={a b}", "/levels/0"),
        ("agent.uplink=-force", "/agent/uplink"),
        ("agent.uplinkRate=fast", "/agent/uplinkRate"),
    ];
    for (value, place) in wrong {
        let said = helm.template("metronome", &[value]).unwrap_err();
        assert!(said.contains(place), "{value}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_takes_what_the_chart_makes() {
    let (Some(helm), Some(plane)) = (Helm::get(), shared().await) else { return };
    let namespace = plane.namespace("install").await.unwrap();
    let values = [
        "levels={example.org/rack}",
        "journal.enabled=true",
        "guard.enabled=true",
        "agent.enabled=true",
        "agent.uplink=eth0",
    ];
    // Nothing here is the name of a scheduler that pods of other tests have.
    let rendered = helm.template(&namespace, &values).unwrap();
    let client = plane.client().await.unwrap();
    for object in objects(&rendered) {
        let dry = send(&client, &object, PatchParams::apply("test").dry_run()).await;
        dry.unwrap_or_else(|error| panic!("{error}: {object}"));
    }
    for object in objects(&rendered) {
        send(&client, &object, PatchParams::apply("test").force()).await.unwrap();
    }
    // Nothing is left out because the API server does not know it, and nothing is added that we contradict.
    for object in objects(&rendered) {
        let kept = send(&client, &object, PatchParams::apply("test").force()).await.unwrap();
        assert_contains(&serde_json::to_value(kept).unwrap(), &object, &object["kind"].to_string());
    }
}

/// An API server that is told to be strict refuses fields that it does not know.
async fn send(client: &Client, object: &Value, mut how: PatchParams) -> kube::Result<DynamicObject> {
    how.field_validation = Some(kube::api::ValidationDirective::Strict);
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &object.namespace().unwrap(), &resource),
    };
    api.patch(&object.name_any(), &how, &Patch::Apply(&object)).await
}

/// Every field of the second is in the first.
fn assert_contains(whole: &Value, part: &Value, place: &str) {
    match part {
        Value::Object(fields) => {
            for (name, field) in fields {
                assert_contains(&whole[name], field, &format!("{place}.{name}"));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                assert_contains(&whole[at], item, &format!("{place}[{at}]"));
            }
        }
        Value::Number(_) => assert_eq!(whole.as_f64(), part.as_f64(), "{place}"),
        _ => assert_eq!(whole, part, "{place}"),
    }
}
