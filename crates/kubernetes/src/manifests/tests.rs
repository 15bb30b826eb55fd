use super::*;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_text_and_the_list_say_the_same() {
    let everything = Values {
        levels: vec!["example.org/rack".to_owned()],
        guard: Part { enabled: true },
        monitoring: Part { enabled: true },
        agent: Agent { enabled: true, uplink: "eth0".to_owned(), ..Agent::default() },
        journal: Journal { enabled: true, ..Journal::default() },
        ..Values::default()
    };
    for values in [Values::default(), everything, Values { observe: true, ..Values::default() }] {
        let listed = list("lab", &values);
        assert_eq!(json!(documents(&yaml("lab", &values))), listed["items"]);
    }
}

#[test]
fn whoever_only_observes_may_only_read() {
    let observing = list("lab", &Values { observe: true, ..Values::default() });
    let roles = observing["items"].as_array().unwrap().iter().filter_map(|object| object["rules"].as_array());
    let verbs: Vec<&Value> = roles.flatten().flat_map(|rule| rule["verbs"].as_array().unwrap()).collect();
    assert!(!verbs.is_empty());
    assert!(verbs.iter().all(|verb| *verb == "list" || *verb == "watch"), "{verbs:?}");
}

#[test]
fn every_file_of_the_chart_leaves_nothing_to_be_named() {
    for name in FILES {
        let text = file(name).unwrap();
        assert!(!text.contains("HELM"), "{name}: {text}");
    }
    assert!(file("templates/scheduler.yaml").unwrap().contains("replicas: {{ .Values.replicas }}\n"));
    assert_eq!(file("templates/else.yaml"), None);
}

#[test]
fn what_is_installed_without_a_word_is_what_the_chart_says() {
    let said: Values = serde_saphyr::from_str(&file("values.yaml").unwrap()).unwrap();
    assert_eq!(said, Values::default());
}
