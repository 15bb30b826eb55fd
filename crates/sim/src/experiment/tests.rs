//! Definitions good and bad, bars met and missed, files that are the same every time.

use std::path::Path;

use metronome_core::model::cluster::Name;
use metronome_core::model::job::Priority;
use metronome_core::model::units::{Duration, Gpus, Instant, Share};

use super::*;
use crate::import::TimeFrom;
use crate::outcome::{Fate, JobOutcome, Outcome};
use crate::results::{Figures, JctSeconds, Jobs, PolicySummary, RunResult};
use crate::scenario::Scenario;

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
    Measured {
        experiment: "sample".into(),
        seeds: 2,
        scenarios,
        waits: Vec::new(),
        beside: Vec::new(),
        pairs: Vec::new(),
    }
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
        across: None,
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
        across: None,
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

const TRACES: &str = r#"{
  "version": 1, "seeds": 1, "policies": ["fifo"],
  "scenarios": [
    "a.yaml", {"file": "b.yaml", "policies": ["srsf"]},
    {"name": "muri", "policies": ["srtf", "metronome"],
     "import": {"format": "muri", "file": "muri/jobs.csv", "nodes": 8, "gpusPerNode": 4, "time": "iterations"},
     "observed": [{"name": "testbed srtf", "policy": "srtf", "file": "muri/srtf.csv.gz"}]}
  ],
  "bars": [{"metric": "jct_s.mean", "policy": "srtf", "against": "testbed srtf", "atMost": 1.15, "scenario": "muri"}],
  "charts": [{"metric": "jct_s.mean", "file": "jct.svg", "title": "Mean JCT", "scenarios": ["muri"]}]
}"#;

#[test]
fn a_scenario_may_be_a_trace_with_policies_and_observations_of_its_own() {
    let definition = Definition::parse(TRACES).unwrap();
    let [a, b, muri] = &definition.scenarios[..] else { panic!("three scenarios") };
    assert_eq!((a.name.as_str(), definition.policies_of(a)), ("a.yaml", &["fifo".to_owned()][..]));
    assert_eq!((b.name.as_str(), definition.policies_of(b)), ("b.yaml", &["srsf".to_owned()][..]));
    assert_eq!(definition.policies_of(muri), ["srtf", "metronome"]);
    assert_eq!(muri.data().collect::<Vec<_>>(), ["muri/jobs.csv", "muri/srtf.csv.gz"]);
    let Some(Import::Muri { round, time, .. }) = &muri.import else { panic!("a trace of Muri") };
    assert_eq!((*round, *time), (Duration::from_secs(360), TimeFrom::Iterations));
    let missing = muri.import.as_ref().unwrap().read(Path::new("nowhere"), Path::new("")).unwrap_err();
    assert!(missing.to_string().contains("jobs.csv: there is no such file"), "{missing}");
}

#[test]
fn a_scenario_may_be_another_with_something_else_in_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let varied = |with: &str| {
        let part = format!(r#"{{"name": "more", "file": "two-gangs.yaml", "with": {with}}}"#);
        let definition = Definition::parse(&TRACES.replace("\"a.yaml\"", &part)).unwrap();
        let varied = definition.scenarios[0].varied.clone().expect("something is replaced");
        Scenario::read_varied(&folder.join(&varied.file), &varied.with)
    };
    let more = varied(r#"{"count: 2": "count: 4"}"#).unwrap();
    assert_eq!(more.cluster.nodes().len(), 4);
    let absent = varied(r#"{"count: 3": "count: 4"}"#).unwrap_err();
    assert!(
        absent.to_string().contains("`count: 3`, which is to be replaced, does not stand in it"),
        "{absent}"
    );
    let twice = varied(r#"{"kind": "sort"}"#).unwrap_err();
    assert!(twice.to_string().contains("times"), "{twice}");
}

#[test]
fn pods_are_drawn_from_a_folder_of_lists() {
    let openb = |import: &str| {
        TRACES.replace("\"format\": \"muri\", \"file\": \"muri/jobs.csv\", \"nodes\": 8, \"gpusPerNode\": 4, \"time\": \"iterations\"", import)
    };
    let sound = Definition::parse(&openb(r#""format": "openb", "file": "openb", "fill": "130%", "seed": 3"#))
        .unwrap();
    let import = sound.scenarios[2].import.clone().unwrap();
    assert_eq!(import, Import::Openb { file: "openb".to_owned(), fill: 1300, seed: 3 });
    let missing = import.read(Path::new("nowhere"), Path::new("")).unwrap_err();
    assert!(missing.to_string().contains("it is not a folder"), "{missing}");
    let vague = Definition::parse(&openb(r#""format": "openb", "file": "openb", "fill": "full", "seed": 3"#));
    assert!(vague.unwrap_err().to_string().contains("definition of the experiment"));
}

#[test]
fn a_trace_that_makes_no_sense_is_refused_with_the_reason() {
    for (good, bad, reason) in [
        ("\"muri/jobs.csv\"", "\"../jobs.csv\"", "read `../jobs.csv`: a trace lies in the folder of data"),
        ("\"muri/srtf.csv.gz\"", "\"/srtf.csv\"", "read `/srtf.csv`"),
        ("\"policy\": \"srtf\", \"file\"", "\"policy\": \"fifo\", \"file\"", "`fifo` among the policies"),
        ("\"against\": \"testbed srtf\"", "\"against\": \"testbed\"", "`testbed` among the policies"),
        (", \"scenario\": \"muri\"", "", "`srtf` among the policies"),
        ("[\"muri\"]", "[\"mori\"]", "`mori` among the scenarios"),
        ("\"name\": \"muri\"", "\"name\": \"a.yaml\"", "two scenarios called `a.yaml`"),
        ("\"policies\": [\"fifo\"],", "", "without policies"),
        ("\"name\": \"muri\", ", "", "definition of the experiment"),
        ("\"format\": \"muri\"", "\"format\": \"mori\"", "definition of the experiment"),
        ("\"time\": \"iterations\"", "\"round\": \"soon\"", "definition of the experiment"),
    ] {
        assert!(TRACES.contains(good), "{good}");
        let error = Definition::parse(&TRACES.replace(good, bad)).unwrap_err();
        assert!(error.to_string().contains(reason), "{bad}: {error}");
    }
}

/// Jobs that were all submitted at once and completed after so many seconds.
fn outcome(policy: &str, jobs: &[(&str, u64, u32)]) -> Outcome {
    let job = |(name, seconds, preemptions): &(&str, u64, u32)| JobOutcome {
        name: Name::from(*name),
        model: None,
        priority: Priority::NORMAL,
        user: Share::WHOLE,
        submit: Instant::START,
        start: Some(Instant::START),
        end: Some(Instant::from_secs(*seconds)),
        ran: Duration::from_secs(*seconds),
        alone: Duration::from_secs(*seconds),
        deadline: None,
        binding: None,
        taken: None,
        cpu: None,
        gpus: Gpus::whole(1),
        members: 1,
        nodes: 1,
        fate: Fate::Completed,
        preemptions: *preemptions,
        moves: 0,
        resizes: 0,
        resizes_in_place: 0,
        reached: None,
        wait_reason: None,
        slowdown: None,
        exchange: None,
        segments: Vec::new(),
    };
    let jobs = jobs.iter().map(job).collect();
    Outcome { seed: 1, ended: Instant::from_secs(1000), ..Outcome::of_jobs(policy, jobs, Gpus::whole(1)) }
}

#[test]
fn what_was_observed_stands_beside_what_was_simulated_job_by_job() {
    let definition = Definition::parse(TRACES).unwrap();
    let simulated = outcome("srtf", &[("a", 50, 1), ("b", 100, 0), ("c", 300, 0), ("only here", 1, 5)]);
    let observed = outcome("testbed srtf", &[("c", 400, 2), ("b", 100, 0), ("a", 100, 1)]);
    let [pair] = &beside(&definition.scenarios[2], &[simulated, observed])[..] else { panic!("one pair") };
    assert_eq!((pair.policy.as_str(), pair.observed.as_str(), pair.jobs), ("srtf", "testbed srtf", 3));
    assert_eq!(pair.jct_ratio, Spread { p10: 0.5, median: 0.75, p90: 1.0 });
    assert_eq!(pair.jct_distance, (50.0 + 0.0 + 100.0) / 600.0);
    assert_eq!((pair.simulated_starts, pair.observed_starts), (4, 6));
    // Ranks 0, 1, 2 against 0.5, 0.5, 2.
    let expected = 1.5 / (2.0f64 * 1.5).sqrt();
    assert!((pair.rank_correlation.unwrap() - expected).abs() < 1e-12, "{pair:?}");

    let measured =
        Measured { beside: vec![Beside { scenario: "a.yaml".into(), ..pair.clone() }], ..measured() };
    let text = markdown(&measured, &definition, &[]);
    assert!(
        text.contains("| srtf over testbed srtf | 3 | 0.500 | 0.750 | 1.000 | 0.250 | 0.866 | 4 | 6 |"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&document(&measured, &[])).unwrap();
    assert_eq!(json["beside"][0]["observed_starts"], 6);
}

#[test]
fn a_chart_may_be_of_some_scenarios_and_a_single_run_has_no_deviation() {
    let chart = Chart { scenarios: vec!["b.yaml".into()], ..definition().charts.remove(0) };
    let measured = Measured { seeds: 1, ..measured() };
    let (_, svg) = charts(&[chart], &measured).remove(0);
    assert_eq!(svg.matches("class=\"bar ours\"").count(), 2, "one bar and the legend");
    assert!(svg.contains("One run each.") && !svg.contains("seeds"));
    assert!(markdown(&measured, &definition(), &[]).starts_with("One run each; times in seconds."));
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
