//! `metronome profile`

use std::fmt::Write;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use metronome_agent::profile::{Learned, NoProfile, learn};
use metronome_agent::recording;
use metronome_core::model::units::{Bandwidth, Duration};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::reply::{Format, Reply};
use crate::table;

/// Learn what a training job sends from recorded byte counters
///
/// Prints the period of its iterations and the phases in which it sends, and as lines to paste into a job. Exits with 1
/// where what is sent has no period.
#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// CSV with the columns `bytes`, all bytes so far, and `time_s`, `time_ms`, `time_us` or `time_ns`, every 5 to 10 ms;
    /// `-` reads standard input
    file: PathBuf,
    /// Rates of the counters are multiplied by this, for links that were scaled down
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// How to print the profile
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

#[derive(Serialize)]
struct Document {
    version: u32,
    samples: usize,
    /// Null where there is none.
    profile: Option<Found>,
    /// Why there is none.
    reason: Option<String>,
}

#[derive(Serialize)]
struct Found {
    period_ns: u64,
    phases: Vec<Phase>,
    noise: f64,
    confidence: f64,
    iterations: usize,
    bytes: u64,
}

#[derive(Serialize)]
struct Phase {
    offset_ns: u64,
    length_ns: u64,
    rate_bps: u64,
}

pub(crate) fn run(args: &Profile) -> Result<Reply, Failure> {
    if !(args.scale.is_finite() && args.scale > 0.0) {
        return Err(Failure::input("scale rates by that").hint("--scale must be above zero"));
    }
    let (name, file): (String, Box<dyn Read>) = match args.file == Path::new("-") {
        true => ("standard input".into(), Box::new(std::io::stdin().lock())),
        false => (args.file.display().to_string(), Box::new(input::open(&args.file)?)),
    };
    let samples = recording::read(BufReader::new(file)).map_err(|error| {
        Failure::input(format!("read {name}, {error}"))
            .hint("a recording begins like `time_s,bytes`; see docs/guide/agent.md")
    })?;
    let learned = learn(&samples);
    let exit = if learned.is_ok() { Exit::Done } else { Exit::FellShort };
    let reply = match args.output {
        Format::Json => Reply::json(&document(samples.len(), &learned, args.scale)),
        Format::Human => Reply::text(match &learned {
            Ok(learned) => words(learned, args.scale),
            Err(reason) => format!("no profile: {reason}\n"),
        }),
    };
    Ok(reply.ending(exit))
}

fn document(samples: usize, learned: &Result<Learned, NoProfile>, scale: f64) -> Document {
    let profile = learned.as_ref().ok().map(|learned| Found {
        period_ns: learned.traffic.period().0,
        phases: phases(learned, scale)
            .map(|(offset, length, rate)| Phase {
                offset_ns: offset.0,
                length_ns: length.0,
                rate_bps: rate.0,
            })
            .collect(),
        noise: learned.noise,
        confidence: learned.confidence,
        iterations: learned.iterations,
        bytes: (learned.bytes * scale).round() as u64,
    });
    let reason = learned.as_ref().err().map(ToString::to_string);
    Document { version: 1, samples, profile, reason }
}

fn phases(learned: &Learned, scale: f64) -> impl Iterator<Item = (Duration, Duration, Bandwidth)> {
    learned.traffic.phases().iter().map(move |phase| {
        let rate = Bandwidth((phase.rate.0 as f64 * scale).round() as u64);
        (phase.offset, phase.length, rate)
    })
}

fn words(learned: &Learned, scale: f64) -> String {
    let period = millis(learned.traffic.period());
    let head = [
        ["period", &period],
        ["noise", &format!("{:.1}% of the period", learned.noise * 100.0)],
        ["confidence", &format!("{:.2}, from {} iterations", learned.confidence, learned.iterations)],
        ["sends", &format!("{:.2} MB in each iteration", learned.bytes * scale / 1e6)],
    ];
    let mut text = String::new();
    for [name, value] in head {
        writeln!(text, "{name:<11} {value}").expect("a string takes everything");
    }
    let mut rows = vec![["offset", "length", "rate"].map(String::from).to_vec()];
    rows.extend(
        phases(learned, scale)
            .map(|(offset, length, rate)| vec![millis(offset), millis(length), short(rate)]),
    );
    writeln!(text, "\n{}\n\n{}", table::plain(&rows), picture(&learned.rates, &period)).expect("a string");
    writeln!(text, "\n{}", lines_to_paste(learned, scale)).expect("a string takes everything");
    text
}

/// What is sent over one period, as heights.
fn picture(rates: &[f64], period: &str) -> String {
    const WIDTH: usize = 64;
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let column = |at: usize| {
        let (from, to) = (at * rates.len() / WIDTH, (at + 1) * rates.len() / WIDTH);
        let part = &rates[from..to.max(from + 1).min(rates.len())];
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    let columns: Vec<f64> = (0..WIDTH).map(column).collect();
    let most = columns.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let height = |rate: &f64| HEIGHTS[((rate / most * 8.0).round() as usize).min(8)];
    let bars: String = columns.iter().map(height).collect();
    format!("│{bars}│\n0{period:>WIDTH$}")
}

fn lines_to_paste(learned: &Learned, scale: f64) -> String {
    let mut text = format!("traffic:\n  period: {}\n  phases:", millis(learned.traffic.period()));
    for (offset, length, rate) in phases(learned, scale) {
        let (offset, length, rate) = (millis(offset), millis(length), short(rate));
        write!(text, "\n    - {{offset: {offset}, length: {length}, rate: {rate}}}").expect("a string");
    }
    text
}

fn millis(span: Duration) -> String {
    let text = format!("{:.2}", span.0 as f64 / 1e6);
    format!("{}ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Four digits are more than is known.
fn short(rate: Bandwidth) -> String {
    let (unit, name) = match rate.0 {
        1_000_000_000.. => (1e9, "Gbps"),
        1_000_000.. => (1e6, "Mbps"),
        _ => (1e3, "kbps"),
    };
    let text = format!("{:.2}", rate.0 as f64 / unit);
    format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use metronome_agent::profile::Sample;

    use super::*;

    #[test]
    fn documents_are_what_their_schema_says() {
        let sent = |at: u64| at / 200 * 1_000_000 + (at % 200).min(50) * 20_000;
        let samples: Vec<Sample> =
            (0..1000).map(|at| 7 * at).map(|at| Sample { at: at * 1_000_000, bytes: sent(at) }).collect();
        let learned = learn(&samples);
        assert!(learned.is_ok());
        crate::schema::assert_conforms("profile", &document(samples.len(), &learned, 500.0));
        crate::schema::assert_conforms("profile", &document(0, &Err(NoProfile::Silent), 1.0));
    }

    #[test]
    fn what_is_to_be_pasted_can_be_read() {
        for text in [millis(Duration(210_431_117)), millis(Duration(60_000_000))] {
            assert!(text.parse::<Duration>().is_ok(), "{text}");
        }
        for rate in [0, 999, 1_234_567, 40_000_000_000] {
            assert!(short(Bandwidth(rate)).parse::<Bandwidth>().is_ok());
        }
    }
}
