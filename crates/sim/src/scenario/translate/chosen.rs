//! Jobs whose size the scheduler may choose: which sizes there are, how fast the job is with each, and what its owner
//! asks for.

use std::sync::Arc;

use metronome_core::model::job::{Capabilities, Gang, JobSpec, Members, Role, RoleKind, Topology, Work};
use metronome_core::model::units::{Gpus, Resources, Share};
use metronome_core::observe::progress::WorkPace;
use metronome_core::observe::scaling::Scaling;
use serde_saphyr::Spanned;

use super::scalings::curve;
use super::{World, roles};
use crate::model::Pattern;
use crate::scenario::Asks;
use crate::scenario::cores::Cores;
use crate::scenario::curve::Curve;
use crate::scenario::documents::{CpuShape, JobShape, ScalingShape};
use crate::scenario::error::{Position, Problem};
use crate::scenario::quality::Quality;
use crate::scenario::values::{Placed, Text, share, whole};

/// The members of a job, and how they may be more or fewer.
pub(super) struct Chosen {
    pub(super) roles: Vec<Role>,
    pub(super) scaling: Option<Arc<Scaling>>,
    pub(super) asks: Option<Asks>,
}

pub(super) fn members(
    shape: &JobShape,
    pattern: Option<&Pattern>,
    at: Position,
    world: &World<'_>,
) -> Result<Chosen, Problem> {
    refuse_both(shape)?;
    match (&shape.cpu, &shape.scaling, pattern) {
        (Some(cpu), ..) => of_cores(cpu, shape),
        (None, Some(scaling), _) => of_table(scaling, shape, at, world),
        (None, None, Some(pattern)) if shape.deadline.is_some() && says_nothing(shape) => {
            Ok(of_model(pattern, shape, at, world)?)
        }
        _ => Ok(Chosen { roles: roles::roles(shape, at, world)?, scaling: None, asks: None }),
    }
}

/// How a job scales is said once: by its cores, by a table, or by what its model computes and sends.
fn refuse_both(shape: &JobShape) -> Result<(), Problem> {
    if let (Some(_), Some(second)) = (&shape.cpu, &shape.scaling) {
        return Err(second.problem("`cpu` and `scaling` are both given: cores scale by their serial part"));
    }
    let place = shape.cpu.as_ref().map(Placed::at).or(shape.scaling.as_ref().map(Placed::at));
    let other = shape.model.as_ref().map(|_| "model").or(shape.traffic.as_ref().map(|_| "traffic"));
    match place.zip(other) {
        Some((at, other)) => Err(at
            .problem(format!("`{other}` and how it scales are both given"))
            .with_hint("how a model scales follows from its gradients and the links")),
        None => Ok(()),
    }
}

impl Chosen {
    /// Tells a job of its sizes once its work is known as its owner sees it: at the size that is asked for.
    pub(super) fn give(&self, spec: &mut JobSpec) {
        spec.scaling.clone_from(&self.scaling);
        let Some(asks) = self.asks else { return };
        if asks.serial.is_some() {
            spec.capabilities = Capabilities { resize_in_place: true, ..spec.capabilities };
        }
        spec.work = at_least_size(spec.work, self.scaling.as_deref(), asks.members);
    }
}

/// Work as it is at the least size, where it is told at another.
fn at_least_size(work: Work, scaling: Option<&Scaling>, asked: u32) -> Work {
    let Some(scaling) = scaling else { return work };
    Work { alone: work.alone.map(|alone| WorkPace::at(scaling.speed(asked)).work(alone)), ..work }
}

fn of_cores(written: &Spanned<CpuShape>, shape: &JobShape) -> Result<Chosen, Problem> {
    if let Some(place) = roles::said(shape).or(shape.topology.as_ref().map(Placed::at)) {
        return Err(place.problem("`cpu` is for one process on one node: there are no members to speak of"));
    }
    let CpuShape { min, max, asks, serial } = &written.value;
    let serial = serial.as_ref().map_or(Ok(Share::NONE), share)?;
    let cores = cores(min.as_ref(), max, asks.as_ref())?;
    Ok(Chosen {
        roles: vec![cores.role()],
        scaling: Some(Arc::new(cores.curve(serial).scaling())),
        asks: Some(cores.asks(serial)),
    })
}

/// Bounds and what is asked for; the least, if nothing is.
pub(super) fn cores(min: Option<&Text>, max: &Text, asks: Option<&Text>) -> Result<Cores, Problem> {
    let count = |text: &Text| whole(text, 1..=Cores::MOST).map(|count| count as u32);
    let least = min.map_or(Ok(1), count)?;
    let cores = Cores { min: least, max: count(max)?, asks: asks.map_or(Ok(least), count)? };
    if cores.min > cores.max {
        return Err(max.problem(format!("`min`, {}, is above `max`, {}", cores.min, cores.max)));
    }
    match asks.filter(|_| !(cores.min..=cores.max).contains(&cores.asks)) {
        Some(asks) => {
            let (min, max) = (cores.min, cores.max);
            Err(asks.problem(format!("{} cores are not between `min`, {min}, and `max`, {max}", cores.asks)))
        }
        None => Ok(cores),
    }
}

/// The node level, which a process of several cores does not leave.
pub(super) fn topology(shape: &JobShape, world: &World<'_>) -> Option<Topology> {
    shape.cpu.as_ref().map(|_| Cores::topology(world.cluster))
}

fn of_table(
    written: &Spanned<ScalingShape>,
    shape: &JobShape,
    at: Position,
    world: &World<'_>,
) -> Result<Chosen, Problem> {
    if shape.roles.is_some() {
        return Err(written
            .problem("`scaling` is for one role of workers")
            .with_hint("say members and resources directly in `spec`, without `roles`"));
    }
    let curve = match &written.value {
        ScalingShape::Named(name) => {
            let found = world.scalings.find(name);
            found.map_err(|(message, hint)| written.problem(message).with_hint(hint))?.clone()
        }
        ScalingShape::Sizes(sizes) => curve(sizes, written.at())?,
    };
    let curve = cut(&curve, shape, written.at())?;
    let asks = shape.members.as_ref().map(|text| asked(text, &curve)).transpose()?;
    let least = curve.least();
    let each = roles::each(shape, world)?;
    let gang = gang(&curve).map_err(|message| at.problem(message))?;
    Ok(Chosen {
        roles: vec![Role { kind: RoleKind::Worker, gang, shape: each }],
        scaling: Some(Arc::new(curve.scaling())),
        asks: Some(Asks { members: asks.unwrap_or(least), serial: None }),
    })
}

/// What a job is worth after each part of its work, if the table that it names says so.
pub(super) fn quality(shape: &JobShape, world: &World<'_>) -> Option<Arc<Quality>> {
    match shape.scaling.as_ref().map(|written| &written.value) {
        Some(ScalingShape::Named(name)) => world.scalings.quality(name),
        _ => None,
    }
}

/// The part of a table between `minMembers` and `maxMembers`.
fn cut(curve: &Curve, shape: &JobShape, at: Position) -> Result<Curve, Problem> {
    let bound = |text: &Option<Text>, none: u32| {
        text.as_ref().map_or(Ok(none), |text| whole(text, 1..=u64::from(Members::MOST)).map(|n| n as u32))
    };
    let (min, max) = (bound(&shape.min_members, 1)?, bound(&shape.max_members, u32::MAX)?);
    curve.within(min, max).ok_or_else(|| {
        at.problem(format!("no size of it is between `minMembers`, {min}, and `maxMembers`, {max}"))
    })
}

/// So many members as a table has sizes for.
pub(super) fn gang(curve: &Curve) -> Result<Gang, String> {
    let (least, most) = (u64::from(curve.least()), u64::from(curve.most()));
    let gang = if least == most { Gang::rigid(least) } else { Gang::elastic(least, most) };
    gang.map_err(|error| error.to_string())
}

fn asked(text: &Text, curve: &Curve) -> Result<u32, Problem> {
    let members = whole(text, 1..=u64::from(Members::MOST))? as u32;
    let sizes = curve.least()..=curve.most();
    match sizes.contains(&members) {
        true => Ok(members),
        false => Err(text.problem(format!(
            "{members} members are asked for, and sizes are from {} to {}",
            sizes.start(),
            sizes.end()
        ))),
    }
}

/// Whether nothing is said of members: then a deadline is enough, and what it takes is found.
fn says_nothing(shape: &JobShape) -> bool {
    shape.roles.is_none() && roles::said(shape).is_none() && shape.topology.is_none()
}

/// One GPU each, in powers of two up to what the cluster has: gradients of the measured model over the cluster's links
/// say how fast each is. Where nobody chooses, it is one.
fn of_model(pattern: &Pattern, shape: &JobShape, at: Position, world: &World<'_>) -> Result<Chosen, Problem> {
    let each = roles::each(shape, world)?;
    let largest = (world.cluster.capacity().gpus.0 / Gpus::whole(1).0).min(MOST_CHOSEN);
    let sizes = (0..u32::BITS).map(|power| 1_u64 << power).take_while(|size| *size <= largest.max(1));
    let mut speeds = Vec::new();
    for size in sizes {
        let gang = Gang::rigid(size).map_err(|error| at.problem(error.to_string()))?;
        let mut job = JobSpec::workers("", gang, Resources::NONE);
        job.roles[0].shape = each.clone();
        if world.ground.alone.fewest_nodes(&job).is_none() {
            break;
        }
        let iteration = world.ground.alone.iteration(pattern, &job);
        speeds.push((size as u32, size as f64 / iteration.as_secs_f64()));
    }
    if speeds.is_empty() {
        return Ok(Chosen { roles: roles::roles(shape, at, world)?, scaling: None, asks: None });
    }
    let curve = Curve::new(speeds).map_err(|error| at.problem(error.to_string()))?;
    Ok(Chosen {
        roles: vec![Role {
            kind: RoleKind::Worker,
            gang: gang(&curve).map_err(|message| at.problem(message))?,
            shape: each,
        }],
        scaling: Some(Arc::new(curve.scaling())),
        asks: Some(Asks { members: curve.least(), serial: None }),
    })
}

/// No more GPUs than this are chosen for a job that does not ask for any.
const MOST_CHOSEN: u64 = 512;
