//! Tables of throughput by batch size and number of GPUs: one file for each model, `global_batch_size,1,2,4,…`.
//!
//! An empty cell, a zero and `nan` are holes: the size cannot be had. Nobody splits a batch into more parts than it has.

use std::collections::BTreeMap;
use std::path::Path;

use crate::scenario::InputError;
use crate::scenario::curve::Curve;
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::source;

/// By model and batch size, as `resnet50/256`.
#[derive(Debug)]
pub(super) struct Throughputs(BTreeMap<String, Curve>);

impl Throughputs {
    pub(super) fn read(folder: &Path) -> Result<Self, InputError> {
        let name = folder.display().to_string();
        let entries = std::fs::read_dir(folder).map_err(|error| {
            let problem = Problem::whole(format!("it is no folder of throughputs: {error}"));
            problem.with_hint("name a type of GPU or a folder: --scaling A100").in_file(&name)
        })?;
        let mut files: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
        files.sort();
        let mut tables = BTreeMap::new();
        for file in &files {
            read_model(file, &mut tables)?;
        }
        match tables.is_empty() {
            true => Err(Problem::whole("there are no tables in it").in_file(&name)),
            false => Ok(Self(tables)),
        }
    }

    pub(super) fn named(&self, name: &str) -> Option<&Curve> {
        self.0.get(name)
    }
}

fn read_model(file: &Path, tables: &mut BTreeMap<String, Curve>) -> Result<(), InputError> {
    let shown = file.display().to_string();
    let model = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let text = source::text(source::open(file)?, &shown)?;
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let wrong = |line: u64, message: String| Problem::at(Position::line(line), message).in_file(&shown);
    let Some((header, at)) = lines.next() else {
        return Err(Problem::whole("it is empty").in_file(&shown));
    };
    let sizes = sizes(header).map_err(|message| wrong(at, message))?;
    for (line, at) in lines {
        let (batch, curve) = row(line, &sizes).map_err(|message| wrong(at, message))?;
        tables.insert(format!("{model}/{batch}"), curve);
    }
    Ok(())
}

fn sizes(header: &str) -> Result<Vec<u32>, String> {
    let (first, rest) = header.split_once(',').unwrap_or((header, ""));
    if first.trim() != "global_batch_size" {
        return Err("the first column is `global_batch_size`".into());
    }
    let size = |cell: &str| {
        let size = cell.trim().parse().ok().filter(|size| *size > 0);
        size.ok_or_else(|| format!("{} is no number of GPUs", quoted(cell)))
    };
    rest.split(',').map(size).collect()
}

fn row(line: &str, sizes: &[u32]) -> Result<(u32, Curve), String> {
    let mut cells = line.split(',');
    let batch = cells.next().unwrap_or_default().trim();
    let batch: u32 = batch.parse().map_err(|_| format!("{} is no batch size", quoted(batch)))?;
    let mut speeds = Vec::new();
    for (size, cell) in sizes.iter().zip(cells) {
        if let Some(speed) = speed(cell)?.filter(|_| *size <= batch) {
            speeds.push((*size, speed));
        }
    }
    Curve::new(speeds).map(|curve| (batch, curve)).map_err(|error| error.to_string())
}

fn speed(cell: &str) -> Result<Option<f64>, String> {
    match cell.trim() {
        "" | "nan" | "NaN" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(0.0) => Ok(None),
            Ok(speed) if speed > 0.0 && speed.is_finite() => Ok(Some(speed)),
            _ => Err(format!("{} is no throughput", quoted(text))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_sizes_that_cannot_be_had() {
        let sizes = sizes("global_batch_size,1,2,4,8,16").unwrap();
        let (batch, curve) = row("8,3.0,,nan,5.5,0", &sizes).unwrap();
        let read: Vec<u32> = curve.scaling().sizes().iter().map(|(size, _)| *size).collect();
        assert_eq!((batch, read), (8, vec![1, 8]));
        assert!(row("8,3.0,-1", &sizes).is_err());
        assert_eq!(row("8,,", &sizes), Err("no size is given".into()));
    }

    #[test]
    fn a_batch_is_not_split_into_more_parts_than_it_has() {
        let sizes = sizes("global_batch_size,1,2,4").unwrap();
        assert_eq!(row("2,1,2,3", &sizes).unwrap().1.most(), 2);
    }
}
