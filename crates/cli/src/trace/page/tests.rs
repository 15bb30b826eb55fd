//! Pages of traces made by hand: two jobs of 100 ms that send 40 ms of it at the rate of their link, in turns from 2 s on.

use metronome_core::model::units::Moment;
use metronome_local::world::Fate;
use serde_json::json;

use super::*;
use crate::trace::document::{
    Counter, Directive, Held, Iterations, Link, Member, Part, Profile, Sampling, Standing, VERSION,
};

const MS: u64 = 1_000_000;
const LENGTH: u64 = 6_000;
const STEP: u64 = 2;
/// 200 Mbit/s, in bytes by sample.
const FULL: u32 = 25_000 * STEP as u32;

/// Bytes of a job by sample: both jobs send at half of the rate for 80 ms at first, and then one after the other.
fn sent(job: u64) -> Counter {
    let sample = |at: u64| {
        let place = at % 100;
        match at {
            2_000.. if (50 * job..50 * job + 40).contains(&place) => FULL,
            ..2_000 if place < 80 => FULL / 2,
            _ => 0,
        }
    };
    let samples = (0..LENGTH / STEP).map(|index| sample(index * STEP));
    Counter { before: 0, first_sample: 0, sent: samples.collect() }
}

fn job(name: &str, number: u64) -> Job {
    let rotation =
        json!({"rotation": {"windowNs": 500 * MS, "slots": [{"class": number}, {"class": 1 - number}]}});
    Job {
        name: name.to_owned(),
        fate: Fate::Completed,
        started_ns: Some(0),
        ended_ns: Some(LENGTH * MS),
        members: vec![Member { name: "worker-0".to_owned(), leads: true, bytes: sent(number) }],
        directives: vec![Directive {
            at_ns: 2_000 * MS,
            in_words: "2 windows of 500 ms".to_owned(),
            directive: Some(rotation),
            reason: "the traffic of one was learned".to_owned(),
            saves_ns: Some(90_000 * MS),
        }],
        profile_used_ns: Some(1_900 * MS),
        bytes_per_iteration: Some(1_000_000.0),
        iterations: Iterations::default(),
        recorded: Vec::new(),
        held: vec![Held {
            job: name.to_owned(),
            member: Some("worker-0".to_owned()),
            from_ns: 2_045 * MS,
            to_ns: 2_050 * MS,
        }],
    }
}

fn part(name: &str, number: u64) -> Part {
    let standing = |at: u64, prio: Option<u8>| Standing { at_ns: at * MS, prio, quantum: prio.map(|_| 9014) };
    let number_of = |number: u64| Some(number as u8);
    let standings =
        vec![standing(0, None), standing(2_000, number_of(number)), standing(2_500, number_of(1 - number))];
    Part { job: Some(name.to_owned()), bytes: sent(number), standings }
}

pub(super) fn trace(names: [&str; 2]) -> Trace {
    let [one, other] = names;
    let both = || sent(0).sent.iter().zip(&sent(1).sent).map(|(one, other)| one + other).collect();
    let mut trace = Trace {
        version: VERSION,
        scenario: "pair".to_owned(),
        policy: "metronome".to_owned(),
        scale: 500,
        seed: 1,
        began: Moment(7),
        sampling: Sampling { looks: 2_000, step_ns: 2 * MS, merged: 1, busy: 0.034, failed_reads: 0 },
        jobs: vec![job(one, 0), job(other, 1)],
        links: vec![Link {
            name: "node-0 up".to_owned(),
            rate_bps: 200_000_000,
            crossed_by: names.map(str::to_owned).into(),
            bytes: Counter { before: 0, first_sample: 0, sent: both() },
            parts: vec![part(one, 0), part(other, 1)],
        }],
        profiles: vec![Profile {
            at_ns: 1_900 * MS,
            job: one.to_owned(),
            member: "worker-0".to_owned(),
            period_ms: 100.0,
            confidence: 0.9,
            iterations: 19,
            is_alone: false,
            bytes: Some(1_000_000.0),
            uncontended_ms: Some(60.0),
        }],
        at_ns: (1..=LENGTH / STEP).map(|index| index * STEP * MS).collect(),
    };
    for index in 0..2 {
        trace.jobs[index].iterations = crate::trace::figures::iterations(&trace, index);
    }
    trace
}

#[test]
fn the_page_needs_nothing_beside_itself_and_keeps_names_as_text() {
    let html = html(&trace(["<script>alert(1)</script>", "b"]));
    for outside in ["<script", "src=", "href=", "http://", "https://", "@import", "url(h"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("&lt;script&gt;") && html.ends_with("</html>\n"));
    assert!(!html.contains("NaN") && !html.contains("inf"), "a number is not finite");
    crate::schema::assert_conforms("trace", &trace(["a", "b"]));
}

#[test]
fn the_page_shows_the_whole_run_and_three_closer_looks_with_rows_for_jobs_and_links() {
    let html = html(&trace(["a", "b"]));
    let titles = [
        "The whole run",
        "Before the first directive",
        "After the first directive",
        "Near the end of sharing",
    ];
    for title in titles {
        assert!(html.contains(&format!("<b>{title}</b>")), "{title}");
    }
    assert_eq!(html.matches("<path class=\"rate\"").count(), 2 * titles.len());
    assert_eq!(html.matches("<path class=\"computing\"").count(), 2 * titles.len());
    assert_eq!(html.matches("<path class=\"held\"").count(), 4, "in the whole run and after the directive");
    assert!(html.contains(">node-0 up</text>") && html.contains(">= 125 KB / 5 ms</text>"));
    assert!(html.contains(">a before b</text>") && html.contains(">b before a</text>"), "windows are named");
}

#[test]
fn shades_of_a_link_follow_the_priorities_of_its_leaves() {
    let trace = trace(["a", "b"]);
    let drawn = Drawn::of(&trace);
    let shade = |job: usize, ms: u64| shades::at(&drawn, &drawn.links[0], job, ms * MS);
    use shades::Shade::{Equal, First, Second};
    assert_eq!([shade(0, 100), shade(1, 100)], [Equal, Equal], "neither has a leaf of its own");
    assert_eq!([shade(0, 2_100), shade(1, 2_100)], [First, Second]);
    assert_eq!([shade(0, 2_600), shade(1, 2_600)], [Second, First]);
    let html = html(&trace);
    let before =
        html.split("<b>Before the first directive</b>").nth(1).unwrap().split("</figure>").next().unwrap();
    assert!(before.contains("class=\"part equal\"") && !before.contains("class=\"part first\""));
}

#[test]
fn figures_follow_from_the_counters() {
    let trace = trace(["a", "b"]);
    let figures = &trace.jobs[0].iterations;
    assert_eq!(figures.source, Some("bytes"));
    // 1 MB in 100 ms, before and after: directives have moved bursts apart, and here nobody computes longer for it.
    for mean in [figures.before_ms, figures.after_ms] {
        assert!((mean.unwrap() - 100.0).abs() < 2.0, "{figures:?}");
    }
    let drawn = Drawn::of(&trace);
    let sending: u64 = drawn.jobs[0].sending.iter().map(|(from, to)| to - from).sum();
    assert_eq!(sending, (20 * 80 + 40 * 40) * MS);
    let curve = &drawn.jobs[0].curves[0];
    assert_eq!(curve.bytes((2_000 * MS, 2_005 * MS)), 125_000.0);
    assert_eq!(curve.bytes((2_040 * MS, 2_100 * MS)), 0.0);
}

#[test]
fn a_trace_of_nothing_is_a_page_too() {
    let empty = Trace {
        jobs: Vec::new(),
        links: Vec::new(),
        profiles: Vec::new(),
        at_ns: Vec::new(),
        ..trace(["a", "b"])
    };
    let html = html(&empty);
    assert!(html.contains("No directive was given") && !html.contains("NaN"), "{html}");
    crate::schema::assert_conforms("trace", &empty);
}
