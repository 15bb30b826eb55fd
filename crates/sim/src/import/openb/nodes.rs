//! The list of nodes.

use std::collections::HashSet;
use std::path::Path;

use metronome_core::model::units::{Cpu, Gpus, Memory};

use super::{MOST_GPUS, cpu_of, memory_of, number};
use crate::import::at_line;
use crate::scenario::InputError;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{MOST_NODES, check_name};
use crate::trace::table::{Cells, Column, Strangers, Table};

/// What a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) cpu: Cpu,
    pub(super) memory: Memory,
    pub(super) gpus: u64,
    pub(super) gpu_type: Option<String>,
}

pub(super) fn total(nodes: &[(Kind, u64)]) -> Gpus {
    nodes.iter().map(|(kind, count)| Gpus::whole(kind.gpus * count)).sum()
}

const NODE_COLUMNS: [Column; 5] = [
    Column::required("sn"),
    Column::required("cpu_milli"),
    Column::required("memory_mib"),
    Column::required("gpu"),
    Column::required("model"),
];

/// Kinds of nodes in the order in which they first appear, each with how many there are.
pub(super) fn nodes(path: &Path) -> Result<Vec<(Kind, u64)>, InputError> {
    let mut table = Table::open(path, NODE_COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let mut kinds: Vec<(Kind, u64)> = Vec::new();
    let (mut names, mut count) = (HashSet::new(), 0);
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        let kind = kind(&cells).map_err(&wrong)?;
        let name = cells.values[0].unwrap_or_default();
        if !names.insert(name.to_owned()) {
            return Err(wrong(format!("a second node is called {}", quoted(name))));
        }
        count += 1;
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    match count {
        0 => Err(Problem::whole("there are no nodes in it").in_file(&file)),
        count if count > MOST_NODES => {
            Err(Problem::whole(format!("a cluster has at most {MOST_NODES} nodes")).in_file(&file))
        }
        _ => Ok(kinds),
    }
}

fn kind(cells: &Cells<'_, 5>) -> Result<Kind, String> {
    let [_, cpu, memory, gpu, model] = cells.values;
    let gpus = number(gpu, "gpu", MOST_GPUS)?;
    if gpus == 0 && model.is_some() {
        return Err("a node without GPUs has a model of GPU".into());
    }
    model.map_or(Ok(()), check_name)?;
    Ok(Kind { cpu: cpu_of(cpu)?, memory: memory_of(memory)?, gpus, gpu_type: model.map(str::to_owned) })
}
