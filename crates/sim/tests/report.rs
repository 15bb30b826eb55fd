//! The report as text: what is in it, and what must not be.

mod sample;

use metronome_sim::outcome::Outcome;
use metronome_sim::report;

fn page() -> String {
    report::html("sample <&>", &sample::outcomes(120))
}

#[test]
fn a_report_has_every_picture_for_every_policy() {
    let page = page();
    for heading in
        ["Figures", "When each job", "How busy the links", "How jobs share a link", "How long jobs took"]
    {
        assert!(page.contains(heading), "{heading}");
    }
    for picture in ["job timeline", "link load over time"] {
        assert_eq!(page.matches(&format!("aria-label=\"{picture}\"")).count(), 3, "{picture}");
    }
    assert_eq!(page.matches("class=\"curve\" d=\"M52").count(), 6, "two distributions of three policies");
}

#[test]
fn jobs_that_met_are_shown_as_they_share_fairly_and_as_was_decided() {
    let page = page();
    assert_eq!(page.matches("<details class=\"meeting\">").count(), 1, "nothing to compare, so it is closed");
    assert_eq!(page.matches("<details class=\"meeting\" open>").count(), 1);
    assert_eq!(page.matches("<b>shared fairly</b>").count(), 2);
    assert_eq!(page.matches("<b>as decided</b>").count(), 1);
    for said in
        ["Lanes changed 17 times", "7 jobs more cross it", "class 2, rising", "in common", "the longest"]
    {
        assert!(page.contains(said), "{said}");
    }
    let rings = 3 * sample::MET;
    assert_eq!(page.matches("class=\"arc\"").count(), rings);
    assert_eq!(page.matches("class=\"area\"").count(), rings, "nobody else sends anything");
    assert_eq!(page.matches("<desc>Mean iteration times: 1. ").count(), 3, "for those who do not see it");
}

#[test]
fn every_change_for_running_jobs_is_told_with_its_reason() {
    let page = page();
    assert!(page.contains("9 changes of running jobs, with reasons"));
    for said in [
        "job-1 has left",
        "rack-0 up carries 75Gbps instead of 150Gbps",
        "job-2 no longer does what it did",
        "priorities came or went",
        "a better place came free",
        "fell behind the others",
        "node-3 is about to go",
        "was measured, and is not what was declared",
        "job-0, job-1, job-2 and 4 more",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_job_called_script_does_not_run() {
    let page = page();
    assert_eq!(page.matches("<script").count(), 1, "only our own");
    assert!(page.contains("&lt;script&gt;document.title=&#39;owned&#39;"), "its name is shown all the same");
    assert!(!page.contains("<512>") && !page.contains("sample <&>"));
}

#[test]
fn a_report_needs_nothing_beside_itself() {
    let page = page();
    for foreign in ["src=", "href=", "@import", "url(http", "http:", "https:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

#[test]
fn the_same_outcomes_give_the_same_bytes() {
    assert_eq!(page(), page());
}

#[test]
fn without_a_network_there_is_no_picture_of_links() {
    let without = |outcome: Outcome| Outcome { links: Vec::new(), ..outcome };
    let page = report::html("sample", &sample::outcomes(20).into_iter().map(without).collect::<Vec<_>>());
    assert!(!page.contains("How busy the links"));
    let met_nobody = |outcome: Outcome| Outcome { encounter: None, ..outcome };
    let page = report::html("sample", &sample::outcomes(20).into_iter().map(met_nobody).collect::<Vec<_>>());
    assert!(!page.contains("How jobs share"));
}

#[test]
fn nothing_at_all_is_a_report_too() {
    let page = report::html("nothing", &[]);
    assert!(page.contains("</html>") && !page.contains("NaN"));
    let idle: Vec<Outcome> = sample::outcomes(0);
    assert!(!report::html("idle", &idle).contains("NaN"));
}

#[test]
fn a_large_trace_does_not_make_a_large_file() {
    let page = report::html("large", &sample::outcomes(5000));
    assert!(page.contains("the first 400 of 5000 jobs"));
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}
