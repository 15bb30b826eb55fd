//! Members: roles as a TrainingJob says them.

use metronome_core::model::job::{Gang, GangError, Members, Role, RoleKind, Shape};
use metronome_core::model::units::{Gpus, Resources};
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::World;
use crate::scenario::documents::{GpuTypesShape, JobShape, ResourcesShape, RoleShape};
use crate::scenario::error::{Position, Problem};
use crate::scenario::values::{Placed, Text, quantity, quantity_or_none, whole, word};

const KINDS: [(&str, RoleKind); 3] =
    [("ps", RoleKind::Ps), ("chief", RoleKind::Chief), ("worker", RoleKind::Worker)];

/// More kinds of members than any job has.
const MOST_ROLES: usize = 16;

pub(super) fn roles(job: &JobShape, at: Position, world: &World<'_>) -> Result<Vec<Role>, Problem> {
    refuse_template(job.template.as_ref())?;
    match &job.roles {
        Some(listed) => {
            if let Some(second) = directly(job) {
                return Err(second.problem("members are said both in `roles` and beside it"));
            }
            if listed.value.is_empty() || listed.value.len() > MOST_ROLES {
                return Err(listed.problem(format!("a job has 1 to {MOST_ROLES} roles")));
            }
            listed.value.iter().map(|written| role(written, world)).collect()
        }
        None => Ok(vec![Role {
            kind: RoleKind::Worker,
            gang: Sizes::of_job(job).gang(at)?,
            shape: each(job, world)?,
        }]),
    }
}

/// What one of the workers takes that are said without `roles`.
pub(super) fn each(job: &JobShape, world: &World<'_>) -> Result<Shape, Problem> {
    refuse_template(job.template.as_ref())?;
    let taken = job.resources.as_ref().map_or(Ok(ONE_GPU), resources)?;
    shape(taken, job.gpu_type.as_ref(), world)
}

/// Where anything is said of members, or of what they take.
pub(super) fn said(job: &JobShape) -> Option<Position> {
    let roles = job.roles.as_ref().map(Placed::at);
    roles.or_else(|| directly(job)).or(job.template.as_ref().map(Placed::at))
}

/// The smallest request: what a member takes where nothing is said.
const ONE_GPU: Resources = Resources { gpus: Gpus::whole(1), ..Resources::NONE };

fn directly(job: &JobShape) -> Option<Position> {
    let sizes = [&job.members, &job.min_members, &job.max_members];
    let written = sizes.into_iter().flatten().map(Placed::at).next();
    let resources = job.resources.as_ref().and_then(|shape| {
        [&shape.cpu, &shape.memory, &shape.gpus].into_iter().flatten().map(Placed::at).next()
    });
    written.or(resources).or(job.gpu_type.as_ref().map(Placed::at))
}

fn role(written: &Spanned<RoleShape>, world: &World<'_>) -> Result<Role, Problem> {
    let role = &written.value;
    refuse_template(role.template.as_ref())?;
    let Some(taken) = &role.resources else {
        return Err(written.problem("missing field `resources` of this role"));
    };
    Ok(Role {
        kind: word(&role.name, "role", &KINDS)?,
        gang: Sizes::of_role(role).gang(written.at())?,
        shape: shape(resources(taken)?, role.gpu_type.as_ref(), world)?,
    })
}

fn shape(
    each: Resources,
    types: Option<&Spanned<GpuTypesShape>>,
    world: &World<'_>,
) -> Result<Shape, Problem> {
    let Some(written) = types else { return Ok(Shape::of(each)) };
    if each.gpus.is_zero() {
        return Err(written.problem("`gpuType` is for members that take GPUs"));
    }
    let (cluster, types) = (world.cluster, &world.gpu_types);
    let on = match &written.value {
        GpuTypesShape::One(name) => types.eligible(cluster, [(name.as_str(), written.at())].into_iter()),
        GpuTypesShape::AnyOf(names) if names.is_empty() => {
            Err(written.problem("there is no GPU type in it").with_hint("leave `gpuType` out for any type"))
        }
        GpuTypesShape::AnyOf(names) => {
            types.eligible(cluster, names.iter().map(|name| (name.value.as_str(), name.at())))
        }
    };
    Ok(Shape { on: on?, ..Shape::of(each) })
}

fn refuse_template(template: Option<&Spanned<IgnoredAny>>) -> Result<(), Problem> {
    match template {
        Some(template) => Err(template
            .problem("a pod template means something only in Kubernetes")
            .with_hint("say what a member takes: resources: {cpu: 8, nvidia.com/gpu: 1}")),
        None => Ok(()),
    }
}

pub(super) fn resources(shape: &ResourcesShape) -> Result<Resources, Problem> {
    Ok(Resources {
        cpu: quantity_or_none(shape.cpu.as_ref())?,
        memory: quantity_or_none(shape.memory.as_ref())?,
        gpus: shape.gpus.as_ref().map_or(Ok(Gpus::ZERO), gpus)?,
    })
}

/// So many GPUs as a member can have: whole devices, or a share of a single one.
pub(super) fn gpus(text: &Text) -> Result<Gpus, Problem> {
    let gpus: Gpus = quantity(text)?;
    on_devices(gpus).map_err(|message| text.problem(message).with_hint(HOW_MANY))
}

const HOW_MANY: &str = "ask for whole GPUs, or for less than 1: a share of a single one";

pub(super) fn on_devices(gpus: Gpus) -> Result<Gpus, String> {
    match gpus.is_whole() || gpus.is_share() {
        true => Ok(gpus),
        false => Err(format!("a member cannot have {gpus} GPUs: it has whole ones or a share of one")),
    }
}

/// The three ways to say how many.
struct Sizes<'a> {
    members: Option<&'a Text>,
    min: Option<&'a Text>,
    max: Option<&'a Text>,
}

impl<'a> Sizes<'a> {
    fn of_job(job: &'a JobShape) -> Self {
        Self { members: job.members.as_ref(), min: job.min_members.as_ref(), max: job.max_members.as_ref() }
    }

    fn of_role(role: &'a RoleShape) -> Self {
        Self {
            members: role.members.as_ref(),
            min: role.min_members.as_ref(),
            max: role.max_members.as_ref(),
        }
    }

    fn gang(&self, at: Position) -> Result<Gang, Problem> {
        let count = |text: &Text| whole(text, 1..=u64::from(Members::MOST));
        let inverted = |error: GangError, place: &Text| place.problem(error.to_string());
        match (self.members, self.min, self.max) {
            (None, None, None) => Ok(Gang::rigid(1).expect("one is a gang")),
            (Some(members), None, None) => {
                Gang::rigid(count(members)?).map_err(|error| inverted(error, members))
            }
            (None, Some(min), Some(max)) => {
                let (least, most) = (count(min)?, count(max)?);
                match least == most {
                    true => Gang::rigid(least),
                    false => Gang::elastic(least, most),
                }
                .map_err(|error| inverted(error, max))
            }
            (Some(members), ..) => Err(members
                .problem("`members` is for a fixed size; `minMembers` and `maxMembers` are for a range")),
            (None, Some(_), None) => Err(at.problem("missing field `maxMembers` beside `minMembers`")),
            (None, None, Some(_)) => Err(at.problem("missing field `minMembers` beside `maxMembers`")),
        }
    }
}
