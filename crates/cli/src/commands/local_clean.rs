//! `metronome local clean`

use std::path::PathBuf;

use clap::Args;
use metronome_local::cleanup::clean;
use metronome_local::names::WorldName;
use metronome_local::state::WorldFolder;

use crate::failure::Failure;
use crate::reply::Reply;

/// Remove what worlds on this machine have left behind: namespaces, groups, processes, folders
#[derive(Debug, Args)]
pub(crate) struct LocalClean {
    /// Only the world of this name
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// Where worlds have their folders
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &LocalClean) -> Result<Reply, Failure> {
    let root = args.dir.clone().unwrap_or_else(WorldFolder::usual_root);
    let worlds = match &args.world {
        Some(name) => vec![WorldName::new(name).map_err(|error| Failure::input(error.to_string()))?],
        None => WorldFolder::worlds(&root),
    };
    let mut text = String::new();
    for world in worlds {
        let found = clean(&root, &world).map_err(|error| Failure::from_world(&error))?;
        text += &format!(
            "{world}: {} namespaces, {} groups, {} processes, {} folders removed\n",
            found.namespaces, found.groups, found.processes, found.folders
        );
    }
    Ok(Reply::text(text))
}
