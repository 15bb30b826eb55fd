//! `metronome install` and `metronome crd`

use clap::Args;

use metronome_kubernetes::manifests::{self, Agent, Journal, Part, Values};

use crate::failure::Failure;
use crate::policies;
use crate::reply::{Format, Reply};

/// Print what is to be applied to a cluster so that Metronome runs there
///
/// The same as the Helm chart makes of the same values. Every right is printed with its reason.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Namespace to run in; it is printed, too
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    namespace: String,
    /// Image with the program; `metronome` of this version if not given
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// How many run; one of them leads
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=9))]
    replicas: u32,
    /// Pods with this `schedulerName` are scheduled
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    scheduler_name: String,
    /// Policy to decide by
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    policy: String,
    /// Node label that names a level of the topology, outermost first; may be given more than once
    #[arg(long = "level", value_name = "LABEL")]
    levels: Vec<String>,
    /// Bind nothing, and have no right to write anything
    #[arg(long)]
    observe: bool,
    /// Keep a journal in each replica, for as long as its pod is there
    #[arg(long)]
    journal: bool,
    /// Without the definitions of our kinds, where somebody else applies them
    #[arg(long)]
    without_definitions: bool,
    /// Guard whose name, which queue and which priority class people may use
    #[arg(long)]
    guard: bool,
    /// Also what the Prometheus operator needs: where metrics are, and alerts
    #[arg(long)]
    monitoring: bool,
    /// Also an agent on every node, which measures what jobs send and holds them to their turns
    #[arg(long)]
    agent: bool,
    /// Image of the agent; `metronome-agent` of this version if not given
    #[arg(long, value_name = "IMAGE")]
    agent_image: Option<String>,
    /// YAML to apply, or one list as JSON
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

/// Print the definitions of our kinds, to be applied to a cluster
#[derive(Debug, Args)]
pub(crate) struct Crd {}

pub(crate) fn run(args: &Install) -> Result<Reply, Failure> {
    let values = values(args)?;
    Ok(match args.output {
        Format::Human => Reply::text(manifests::yaml(&args.namespace, &values)),
        Format::Json => Reply::json(&manifests::list(&args.namespace, &values)),
    })
}

pub(crate) fn definitions() -> Reply {
    Reply::text(manifests::definitions())
}

fn values(args: &Install) -> Result<Values, Failure> {
    policies::built_in(&args.policy)?;
    let usual = Values::default();
    let values = Values {
        image: args.image.clone().unwrap_or(usual.image),
        replicas: args.replicas,
        scheduler_name: args.scheduler_name.clone(),
        policy: args.policy.clone(),
        levels: args.levels.clone(),
        observe: args.observe,
        journal: Journal { enabled: args.journal, ..usual.journal },
        definitions: Part { enabled: !args.without_definitions },
        guard: Part { enabled: args.guard },
        monitoring: Part { enabled: args.monitoring },
        agent: Agent {
            enabled: args.agent,
            image: args.agent_image.clone().unwrap_or(usual.agent.image),
            ..Agent::default()
        },
        ..Values::default()
    };
    Ok(values)
}
