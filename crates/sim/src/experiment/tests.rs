//! Definitions good and bad, bars met and missed, files that are the same every time.

use super::*;
use crate::results::{Figures, JctSeconds, Jobs, PolicySummary, RunResult};

const DEFINITION: &str = r#"{
  "version": 1, "scenarios": ["a.yaml", "b.yaml"], "policies": ["fifo", "metronome"], "seeds": 2,
  "bars": [{"metric": "jct_s.mean", "policy": "metronome", "against": "fifo", "atMost": 0.8, "scenario": "a.yaml"}],
  "charts": [{"metric": "jct_s.mean", "file": "jct.svg", "title": "Mean JCT < all"}]
}"#;

fn definition() -> Definition {
    Definition::parse(DEFINITION).unwrap()
}

/// Two policies, two seeds, with these means of `fifo` and `metronome`.
fn comparison(fifo: f64, metronome: f64) -> Comparison {
    let figures = |mean: f64| Figures {
        jobs: Jobs { submitted: 3, completed: 3, ..Jobs::default() },
        jct_s: JctSeconds { mean: Some(mean), ..JctSeconds::default() },
        ..Figures::default()
    };
    let means = |mean: f64| Figures {
        jobs: Jobs { submitted: 3.0, completed: 3.0, ..Jobs::default() },
        jct_s: JctSeconds { mean: Some(mean), ..JctSeconds::default() },
        ..Figures::default()
    };
    let policies = [("fifo", fifo), ("metronome", metronome)];
    let runs = policies.iter().flat_map(|(policy, mean)| [(policy, 1, mean - 1.0), (policy, 2, mean + 1.0)]);
    Comparison {
        version: 1,
        scenario: "sample".into(),
        results: runs
            .map(|(policy, seed, mean)| RunResult { policy: (*policy).into(), seed, figures: figures(mean) })
            .collect(),
        summary: policies
            .iter()
            .map(|(policy, mean)| PolicySummary { policy: (*policy).into(), figures: means(*mean) })
            .collect(),
    }
}

fn measured() -> Measured {
    let scenarios =
        vec![("a.yaml".to_owned(), comparison(100.0, 75.0)), ("b.yaml".to_owned(), comparison(100.0, 90.0))];
    Measured { experiment: "sample".into(), seeds: 2, scenarios, waits: Vec::new() }
}

#[test]
fn a_ratio_below_its_bar_is_met_and_one_above_is_missed() {
    let bar = definition().bars[0].clone();
    let everywhere = Bar { scenario: None, ..bar.clone() };
    let verdicts = judge(&[bar, everywhere], &measured());
    let told: Vec<(Option<f64>, bool)> = verdicts.iter().map(|of| (of.measured, of.met)).collect();
    assert_eq!(told, [(Some(0.75), true), (Some(0.75), true), (Some(0.9), false)]);
    assert_eq!(
        verdicts[2].sentence(),
        "MISSED: jct_s.mean of metronome over fifo in b.yaml is 0.900, at most 0.8"
    );
}

#[test]
fn a_figure_by_itself_can_be_a_bar_and_what_was_not_measured_clears_none() {
    let bar = |metric: &str, at_least| Bar {
        metric: metric.into(),
        policy: "fifo".into(),
        against: None,
        over: None,
        at_most: None,
        at_least: Some(at_least),
        scenario: Some("a.yaml".into()),
    };
    let verdicts = judge(&[bar("jobs.completed", 3.0), bar("link_utilisation.mean", 0.0)], &measured());
    assert!(verdicts[0].met);
    assert_eq!((verdicts[1].measured, verdicts[1].met), (None, false));
}

fn waits(metronome_low: f64) -> Vec<(String, Vec<PolicyWaits>)> {
    let cell = |user, wait_s| WaitCell { user, urgency: Rank::High, width: Width::Wide, jobs: 2, wait_s };
    let of = |policy: &str, low| PolicyWaits {
        policy: policy.into(),
        cells: vec![cell(Rank::High, 10.0), cell(Rank::Low, low)],
    };
    vec![("a.yaml".to_owned(), vec![of("fifo", 40.0), of("metronome", metronome_low)])]
}

#[test]
fn a_part_of_the_waits_is_measured_against_another_part_or_another_policy() {
    let bar = |against: Option<&str>, over: Option<&str>| Bar {
        metric: "wait_s{user=low}".into(),
        policy: "metronome".into(),
        against: against.map(str::to_owned),
        over: over.map(str::to_owned),
        at_most: Some(2.5),
        at_least: None,
        scenario: Some("a.yaml".into()),
    };
    let high = Some("wait_s{user=high}");
    let bars = [bar(None, high), bar(Some("fifo"), None), bar(Some("fifo"), high), bar(None, None)];
    let verdicts = judge(&bars, &Measured { waits: waits(20.0), ..measured() });
    let told: Vec<(Option<f64>, bool)> = verdicts.iter().map(|of| (of.measured, of.met)).collect();
    assert_eq!(told, [(Some(2.0), true), (Some(0.5), true), (Some(2.0), true), (Some(20.0), false)]);
    assert_eq!(
        verdicts[2].sentence(),
        "met: wait_s{user=low} of metronome over wait_s{user=high} of fifo in a.yaml is 2.000, at most 2.5"
    );
    assert_eq!(judge(&bars[..1], &measured())[0].measured, None, "nobody asked for the waits");
}

#[test]
fn waits_are_written_where_they_were_asked_for() {
    let asked = DEFINITION
        .replace("\"seeds\": 2,", "\"seeds\": 2, \"waits\": {\"title\": \"Mean wait\", \"wideFrom\": 4},");
    let definition = Definition::parse(&asked).unwrap();
    let measured = Measured { waits: waits(20.0), ..measured() };
    let json: serde_json::Value = serde_json::from_str(&document(&measured, &[])).unwrap();
    assert_eq!(json["waits"][1]["waits"]["cells"][1]["wait_s"], 20.0);
    let text = markdown(&measured, &definition, &[]);
    assert!(
        text.contains("**a.yaml: Mean wait**") && text.contains("| low | high | wide | 40.0 | 20.0 |"),
        "{text}"
    );
    assert!(!document(&super::tests::measured(), &[]).contains("waits"));
}

#[test]
fn a_definition_that_makes_no_sense_is_refused_with_the_reason() {
    for (good, bad, reason) in [
        ("\"version\": 1", "\"version\": 2", "version 2"),
        ("\"seeds\": 2", "\"seeds\": 0", "without seeds"),
        ("[\"a.yaml\", \"b.yaml\"]", "[]", "without scenarios"),
        ("\"against\": \"fifo\"", "\"against\": \"fofi\"", "`fofi` among the policies"),
        ("\"scenario\": \"a.yaml\"", "\"scenario\": \"c.yaml\"", "`c.yaml` among the scenarios"),
        ("\"jct_s.mean\", \"policy\"", "\"jct.mean\", \"policy\"", "figure called `jct.mean`"),
        (", \"atMost\": 0.8", "", "one of `atMost` and `atLeast`"),
        ("\"jct_s.mean\", \"policy\"", "\"wait_s{user=low}\", \"policy\"", "without `waits`"),
        ("\"atMost\": 0.8", "\"atMost\": 0.8, \"over\": \"jct.mean\"", "figure called `jct.mean`"),
        ("jct.svg", "../jct.svg", "own folder"),
        ("\"seeds\"", "\"seed\"", "definition of the experiment"),
    ] {
        assert!(DEFINITION.contains(good), "{good}");
        let error = Definition::parse(&DEFINITION.replace(good, bad)).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn results_are_json_and_the_same_every_time() {
    let text = || document(&measured(), &judge(&definition().bars, &measured()));
    assert_eq!(text(), text());
    let json: serde_json::Value = serde_json::from_str(&text()).unwrap();
    assert_eq!(json["scenarios"][1]["results"][3]["jct_s"]["mean"], 91.0);
    assert_eq!(json["bars"][0]["met"], true);
    assert!(!text().contains("_ms"), "no wall-clock time");
}

#[test]
fn a_chart_has_a_bar_and_a_whisker_for_each_policy_and_scenario() {
    let (file, svg) = charts(&definition().charts, &measured()).remove(0);
    assert_eq!(file, "jct.svg");
    assert_eq!(svg.matches("class=\"whisker\"").count(), 4);
    assert_eq!(svg.matches("class=\"bar ours\"").count(), 3, "two bars and the legend");
    assert!(svg.contains("Mean JCT &lt; all") && !svg.contains("NaN"));
}

#[test]
fn results_go_between_the_marks_of_a_readme() {
    let readme =
        "# x\n<!-- results: written by `cargo xtask experiment` -->\nold\n<!-- end of results -->\nrest\n";
    let once = with_results(readme, "new\n").unwrap();
    assert!(once.contains("new") && !once.contains("old") && once.ends_with("rest\n"), "{once}");
    assert_eq!(with_results(&once, "new\n"), Some(once.clone()));
    assert_eq!(with_results("# x\n", "new\n"), None);
}
