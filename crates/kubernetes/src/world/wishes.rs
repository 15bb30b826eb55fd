//! What pods say about time: by when they are to be done, how long they take, and how many cores they may be given.
//!
//! | annotation | says |
//! |---|---|
//! | `metronome.dev/deadline` | `6h` after the pod was made, or a time such as `2026-11-15T18:00:00Z` |
//! | `metronome.dev/deadline-binding` | `Strict`, `Soft` (if nothing is said) or `BestEffort` |
//! | `metronome.dev/duration` | how long it takes with what it requests, with the fewest cores it may have, or with those it shares |
//! | `metronome.dev/iterations` | how many iterations that is, for who reports its progress |
//! | `metronome.dev/target-loss` | the loss at which it is done, if that comes first |
//! | `metronome.dev/cpu` | `2-8`: the cores that its only container may be given while it runs |
//! | `metronome.dev/cpu-serial` | the part of its work, such as `3%`, for which more cores are of no use |
//!
//! The object that declares a gang is asked first, then the first of its pods: all of them say the same.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use metronome_core::model::job::{Binding, Deadline, Gang, Role, RoleKind, Shape, Target, Work};
use metronome_core::model::units::{Cpu, Duration, Instant, Iterations, Resources, Share, parse_share};
use metronome_core::observe::scaling::Scaling;

use super::gangs::annotation;
use super::pods::created;
use crate::objects::{Container, Pod};
use crate::rules::quantity::Amount;

pub(super) const DEADLINE: &str = "metronome.dev/deadline";
pub(super) const BINDING: &str = "metronome.dev/deadline-binding";
pub(super) const DURATION: &str = "metronome.dev/duration";
pub(super) const ITERATIONS: &str = "metronome.dev/iterations";
pub(super) const TARGET: &str = "metronome.dev/target-loss";
pub(super) const CPU: &str = "metronome.dev/cpu";
pub(super) const SERIAL: &str = "metronome.dev/cpu-serial";

const BINDINGS: [(&str, Binding); 3] =
    [("Strict", Binding::Strict), ("Soft", Binding::Soft), ("BestEffort", Binding::BestEffort)];

/// More cores than any node has: a number beyond is a mistake.
const MOST_CORES: u32 = 4096;

#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    pub(super) deadline: Option<Deadline>,
    pub(super) work: Work,
    pub(super) cores: Option<Cores>,
}

/// The cores of a pod that may be changed while it runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cores {
    pub(super) container: Arc<str>,
    min: u32,
    max: u32,
    /// What it requests as it is.
    pub(super) now: u32,
    /// Its limit is what it requests.
    pub(super) limited: bool,
    serial: Share,
}

/// Who is asked: the object that declares a gang, then a pod of it.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) declared: Option<&'a ObjectMeta>,
    pub(super) pod: &'a Pod,
}

impl<'a> Words<'a> {
    pub(super) fn of(pod: &'a Pod) -> Self {
        Self { declared: None, pod }
    }

    fn word(&self, key: &str) -> Option<&'a str> {
        let declared = self.declared.and_then(|declared| declared.annotations.as_ref()?.get(key));
        declared.map(String::as_str).filter(|word| !word.is_empty()).or_else(|| annotation(self.pod, key))
    }

    /// What an annotation says, where there is one.
    fn said<T: FromStr<Err: Display>>(&self, key: &str) -> Result<Option<T>, String> {
        let read = self.word(key).map(str::parse::<T>).transpose();
        read.map_err(|error| format!("its annotation {key} makes no sense: {error}"))
    }
}

impl Wishes {
    /// An error says what is wrong, for whoever wrote it.
    pub(super) fn of(words: Words<'_>, is_alone: bool) -> Result<Self, String> {
        let cores = words.word(CPU).map(|text| Cores::of(words.pod, text, is_alone)).transpose()?;
        Ok(Self { deadline: deadline(words)?, work: work(words)?, cores })
    }
}

fn work(words: Words<'_>) -> Result<Work, String> {
    let target = words.said::<f64>(TARGET)?;
    if target.is_some_and(|loss| !loss.is_finite()) {
        return Err(format!("its annotation {TARGET} is no number that a loss could come to"));
    }
    Ok(Work {
        alone: words.said(DURATION)?,
        iterations: words.said(ITERATIONS)?.map(Iterations).filter(|all| all.0 > 0),
        target: target.map(Target::AtMost),
        ..Work::default()
    })
}

fn deadline(words: Words<'_>) -> Result<Option<Deadline>, String> {
    let Some(text) = words.word(DEADLINE) else { return Ok(None) };
    let word = words.word(BINDING).unwrap_or("Soft");
    let binding = BINDINGS.iter().find(|(name, _)| *name == word).map(|(_, binding)| *binding);
    let binding = binding
        .ok_or_else(|| format!("its annotation {BINDING} is {word:?}, not Strict, Soft or BestEffort"))?;
    let after = text.parse::<Duration>().ok().map(|after| created(words.pod) + after);
    let time = || {
        let at = text.parse::<Timestamp>().ok()?;
        u64::try_from(at.as_nanosecond()).ok().map(Instant)
    };
    let at = after.or_else(time).ok_or_else(|| {
        format!(
            "its annotation {DEADLINE} is {text:?}, neither a time such as 2026-11-15T18:00:00Z nor one after its \
             creation such as 6h"
        )
    })?;
    Ok(Some(Deadline { binding, ..Deadline::soft(at) }))
}

impl Cores {
    fn of(pod: &Pod, range: &str, is_alone: bool) -> Result<Self, String> {
        let wrong = |why: &str| format!("its annotation {CPU} is {range:?}, but {why}");
        let [container] = &pod.spec.containers[..] else {
            return Err(wrong("it has more than one container, and which is meant is not said"));
        };
        if !is_alone {
            return Err(wrong("cores are given to pods on their own only, not to gangs"));
        }
        let (min, max) =
            bounds(range).ok_or_else(|| wrong("two numbers of cores are expected, such as 2-8"))?;
        let (now, limit) = (cores(container, Of::Request), cores(container, Of::Limit));
        let now = now.ok_or_else(|| wrong("its container requests no whole number of cores"))?;
        if !(min..=max).contains(&now) {
            return Err(wrong(&format!("its container requests {now}")));
        }
        let said = annotation(pod, SERIAL).map(parse_share).transpose();
        let serial = said.map_err(|error| format!("its annotation {SERIAL} makes no sense: {error}"))?;
        let serial = serial.unwrap_or(Share::NONE);
        Ok(Self {
            container: container.name.as_str().into(),
            min,
            max,
            now,
            limited: limit == Some(now),
            serial,
        })
    }

    /// What it takes of its node in cores as it is.
    pub(super) fn held(&self) -> Cpu {
        Cpu::cores(u64::from(self.now))
    }

    /// The cores alone, wherever the pod may be.
    pub(super) fn role(&self, pod: &Shape) -> Role {
        let each = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
        let gang =
            Gang::elastic(self.min.into(), self.max.into()).expect("at least one, and no more than the most");
        Role { kind: RoleKind::Worker, gang, shape: Shape { each, on: pod.on, ..Shape::default() } }
    }

    /// How fast it is with each number of cores, beside the fewest.
    pub(super) fn scaling(&self) -> Arc<Scaling> {
        Arc::new(Scaling::with_serial_part(self.min..=self.max, self.serial))
    }
}

fn bounds(range: &str) -> Option<(u32, u32)> {
    let (min, max) = range.split_once('-')?;
    let (min, max) = (min.trim().parse().ok()?, max.trim().parse().ok()?);
    (1 <= min && min <= max && max <= MOST_CORES).then_some((min, max))
}

#[derive(Clone, Copy)]
enum Of {
    Request,
    Limit,
}

/// Whole cores only: those can be counted.
fn cores(container: &Container, of: Of) -> Option<u32> {
    let needs = container.resources.as_ref()?;
    let given = match of {
        Of::Request => needs.requests.as_ref(),
        Of::Limit => needs.limits.as_ref(),
    };
    whole_cores(&given?.get("cpu")?.0)
}

pub(super) fn whole_cores(text: &str) -> Option<u32> {
    let thousandths = Amount::parse(text)?.thousandths();
    thousandths.is_multiple_of(1000).then_some(thousandths / 1000).and_then(|cores| u32::try_from(cores).ok())
}
