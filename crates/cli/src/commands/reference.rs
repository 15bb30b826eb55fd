//! `metronome reference`, hidden: pages of `docs/reference/`, the definitions in `deploy/crds/` and the chart, made from
//! the types themselves, so that they cannot disagree. `cargo xtask codegen` writes them.

mod tuning;

use std::fmt::Write;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};

use metronome_core::model::policy::{
    Deadlines, Gangs, Links, Moving, Order, Placement, Policy, Preemption, Queueing, Sharing, Sizing,
    Slowdowns,
};

use crate::args::Cli;
use crate::failure::Failure;
use crate::full_build::INSTALL_COMMAND;
use crate::policies;
use crate::reply::Reply;

#[derive(Debug, Args)]
pub(crate) struct Reference {
    page: Page,
    /// Which file of the chart
    file: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Page {
    Cli,
    Policies,
    Tuning,
    #[cfg(feature = "kubernetes")]
    Queue,
    #[cfg(feature = "kubernetes")]
    Fabric,
    #[cfg(feature = "kubernetes")]
    TrainingJob,
    #[cfg(feature = "kubernetes")]
    Rights,
    #[cfg(feature = "kubernetes")]
    Chart,
}

pub(crate) fn run(args: &Reference) -> Result<Reply, Failure> {
    Ok(Reply::text(match args.page {
        Page::Cli => cli_page(),
        Page::Policies => policies_page(),
        Page::Tuning => tuning::page(),
        #[cfg(feature = "kubernetes")]
        Page::Queue => metronome_kubernetes::objects::definition(),
        #[cfg(feature = "kubernetes")]
        Page::Fabric => metronome_kubernetes::objects::fabric_definition(),
        #[cfg(feature = "kubernetes")]
        Page::TrainingJob => metronome_kubernetes::objects::training_job_definition(),
        #[cfg(feature = "kubernetes")]
        Page::Rights => metronome_kubernetes::manifests::rights_page(),
        #[cfg(feature = "kubernetes")]
        Page::Chart => chart_file(args.file.as_deref().unwrap_or_default())?,
    }))
}

#[cfg(feature = "kubernetes")]
fn chart_file(name: &str) -> Result<String, Failure> {
    use metronome_kubernetes::manifests::{FILES, file};
    let unknown = || Failure::input(format!("find a file {name} of the chart")).hint(FILES.join(", "));
    file(name).ok_or_else(unknown)
}

const MADE: &str = "<!-- Written by `cargo xtask codegen`: do not edit. -->\n\n";

fn cli_page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = format!("{MADE}# Command line\n\n");
    text.push_str("Data goes to standard output, words and progress to standard error.\n\n");
    text.push_str("Exit codes: 0 done; 1 a check or experiment fell short; 2 wrong use or bad input; ");
    text.push_str("3 the world refused or was unreachable.\n\n");
    text.push_str("Without a command, `metronome` prints what to try first, and the exit code is 0. ");
    text.push_str(
        "The commands `run`, `install`, `crd`, `wait` and `logs`, and whatever asks a cluster, need the ",
    );
    writeln!(text, "full build: `{INSTALL_COMMAND}`.").expect("a string takes everything");
    describe_below(&root, &mut text);
    text
}

/// Commands that do something have a section; groups of commands have not.
fn describe_below(command: &Command, text: &mut String) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        match below.has_subcommands() {
            true => describe_below(below, text),
            false => describe(below, text),
        }
    }
}

fn describe(command: &Command, text: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string().replace("Usage: ", "");
    let name = command.get_bin_name().unwrap_or(command.get_name());
    write!(text, "\n## `{name}`\n\n{about}.\n\n```text\n{usage}\n```\n\n").expect("a string");
    for arg in command.get_arguments().filter(|arg| arg.get_id() != "help" && !arg.is_hide_set()) {
        writeln!(text, "- {}", describe_argument(arg)).expect("a string takes everything");
    }
}

fn describe_argument(arg: &Arg) -> String {
    let mut text = format!("`{}`", arg.to_string().trim());
    if let Some(short) = arg.get_short() {
        text = format!("`-{short}`, {text}");
    }
    if let Some(help) = arg.get_help() {
        write!(text, ": {help}").expect("a string takes everything");
    }
    if arg.get_action().takes_values() {
        text.push_str(&describe_values(arg));
    }
    text
}

/// What it takes and what it is if not given, in brackets.
fn describe_values(arg: &Arg) -> String {
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match (values.join(", "), defaults.join(", ")) {
        (values, default) if values.is_empty() && default.is_empty() => String::new(),
        (values, default) if values.is_empty() => format!(" (default {default})"),
        (values, default) if default.is_empty() => format!(" (one of {values})"),
        (values, default) => format!(" (one of {values}; default {default})"),
    }
}

fn policies_page() -> String {
    let mut text = format!("{MADE}# Policies\n\nThe names that `--policy` and `--policies` take.\n\n");
    text.push_str(
        "| policy | does | order | queues | gangs | elastic gangs | when the first does not fit | preemption | placement | links | slowdowns by others | moves | deadlines |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for policy in Policy::names().filter_map(Policy::named) {
        let cells = [
            format!("`{}`", policy.name),
            policies::about(&policy.name).to_owned(),
            order(&policy.order).to_owned(),
            sharing(policy.sharing).to_owned(),
            gangs(policy.gangs).to_owned(),
            sizing(policy.sizing).to_owned(),
            queueing(policy.queueing).to_owned(),
            preemption(policy.preemption).to_owned(),
            placement(policy.placement).to_owned(),
            links(policy.links).to_owned(),
            slowdowns(policy.slowdowns).to_owned(),
            moving(policy.moving).to_owned(),
            deadlines(policy.deadlines).to_owned(),
        ];
        writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes everything");
    }
    text
}

fn order(order: &Order) -> &'static str {
    match order {
        Order::Fifo => "submission",
        Order::Priority => "priority, then submission",
        Order::Srtf => "remaining time",
        Order::Srsf => "remaining service",
        Order::LeastAttained { .. } => "attained service, in levels",
        Order::Weighted(_) => "combined priority",
    }
}

fn sharing(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Ignored => "bound what is held",
        Sharing::Fair => "share by weight",
    }
}

fn gangs(gangs: Gangs) -> &'static str {
    match gangs {
        Gangs::Whole => "whole",
        Gangs::MemberByMember => "member by member",
    }
}

fn sizing(sizing: Sizing) -> &'static str {
    match sizing {
        Sizing::Least => "the least",
        Sizing::Spare => "the least, and what is to spare",
    }
}

fn slowdowns(slowdowns: Slowdowns) -> &'static str {
    match slowdowns {
        Slowdowns::Unseen => "not looked at",
        Slowdowns::Weighed => "choose the place",
        Slowdowns::WaitedOut => "choose the place, or to wait",
        Slowdowns::Reserved => "cannot be: peaks are reserved",
        Slowdowns::Compatible => "choose among places equally near",
        Slowdowns::KeptApart => "choose where bursts can be kept apart",
    }
}

fn deadlines(deadlines: Deadlines) -> &'static str {
    match deadlines {
        Deadlines::Ignored => "ignored",
        Deadlines::Earliest => "the earliest first",
        Deadlines::Filled => "filled backwards, or refused",
        Deadlines::Promised => "booked ahead and promised",
    }
}

fn moving(moving: Moving) -> &'static str {
    match moving {
        Moving::Never => "never",
        Moving::ForGain => "where it pays",
        Moving::Speculative => "who learns little",
    }
}

fn queueing(queueing: Queueing) -> &'static str {
    match queueing {
        Queueing::HeadBlocks => "everybody behind waits",
        Queueing::Skip => "whoever fits goes ahead",
        Queueing::Reserve => "whoever delays it by nothing goes ahead",
    }
}

fn preemption(preemption: Preemption) -> &'static str {
    match preemption {
        Preemption::Never => "never",
        Preemption::ByRank => "by rank",
        Preemption::ByPriority => "by priority",
        Preemption::ByGain => "by priority, or where it pays",
    }
}

fn placement(placement: Placement) -> &'static str {
    match placement {
        Placement::Spread => "spread",
        Placement::Pack => "packed",
        Placement::Buckets => "packed, workers with their servers",
        Placement::Topology => "by topology",
        Placement::Nearest => "member by member, nearest first",
    }
}

fn links(links: Links) -> &'static str {
    match links {
        Links::Shared => "shared fairly",
        Links::Shift => "shifted once",
        Links::Chosen => "as predicted to be best",
        Links::Weighted => "shared by bytes sent",
        Links::Classes => "fewest bytes left first",
        Links::Rotated => "shifted, and again after drift",
        Links::Cushioned => "shifted by priority, and again after drift",
        Links::Ideal => "without contention",
    }
}
