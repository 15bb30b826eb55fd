//! What was measured of an application, and how long its epochs take with so many GPUs.

use std::collections::BTreeMap;
use std::path::Path;

use super::Batch;
use crate::scenario::InputError;
use crate::scenario::curve::Curve;
use crate::scenario::error::Problem;
use crate::scenario::quality::Quality;
use crate::scenario::values::check_name;
use crate::trace::table::{Column, Strangers, Table};

/// Epochs until an application has reached what is asked of it, and the most samples that one GPU takes at once where
/// that is less than was measured.
const EPOCHS: [(&str, usize, Option<u32>); 6] = [
    ("bert", 2, None),
    ("cifar10", 100, None),
    ("deepspeech2", 80, None),
    ("imagenet", 90, None),
    ("ncf", 10, None),
    ("yolov3", 50, Some(8)),
];

/// Sizes that were measured on whole nodes of four, but for the last.
const SIZES: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const PER_NODE: u32 = 4;

/// How many batch sizes are tried where the best one is looked for.
const TRIED: u32 = 16;

#[derive(Debug)]
pub(super) struct Application {
    /// How far each epoch comes, in the unit of progress.
    epochs: Vec<f64>,
    /// By batch size, for each epoch the square of the gradient and its variance.
    statistics: BTreeMap<u32, Vec<(f64, f64)>>,
    /// By batch size, what was measured after each epoch: it rises or falls.
    metrics: BTreeMap<u32, Vec<f64>>,
    /// By size, for samples on each GPU in ascending order: the time of a step, and how much of it is exchange.
    steps: BTreeMap<u32, Vec<Step>>,
    fewest_local: u32,
    most_local: u32,
    /// Known on one GPU alone, at its largest batch.
    is_alone: bool,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    local: u32,
    time: f64,
    sync: f64,
}

/// By name.
pub(super) fn read_all(folder: &Path) -> Result<BTreeMap<String, Application>, InputError> {
    let read = |(name, epochs, most): &(&str, usize, Option<u32>)| {
        Application::read(&folder.join(name), *epochs, *most, *name == "ncf")
            .map(|application| ((*name).to_owned(), application))
    };
    EPOCHS.iter().map(read).collect()
}

impl Application {
    fn read(folder: &Path, epochs: usize, most: Option<u32>, is_alone: bool) -> Result<Self, InputError> {
        let mut steps = placements(&folder.join("placements.csv"))?;
        steps.extend(scalability(&folder.join("scalability.csv"))?);
        steps.values_mut().for_each(|steps| steps.sort_by_key(|step| step.local));
        let locals = || steps.values().flatten().map(|step| step.local);
        let (fewest_local, measured) = (locals().min().unwrap_or(1), locals().max().unwrap_or(1));
        let validated = validations(folder, epochs)?;
        let ends = (0..epochs).map(|epoch| {
            let reached = validated.values().map(|epochs| epochs[epoch].progress);
            reached.fold(f64::INFINITY, f64::min)
        });
        let metrics = validated.iter().map(|(batch, read)| (*batch, metrics(&read[..epochs])));
        let metrics = metrics.collect();
        let mut before = 0.0;
        let epochs = ends.map(|end| end - std::mem::replace(&mut before, end)).collect();
        let statistics = validated.into_iter().map(|(batch, epochs)| {
            (batch, epochs.iter().map(|epoch| (epoch.square, epoch.variance)).collect())
        });
        Ok(Self {
            epochs,
            statistics: statistics.collect(),
            metrics,
            steps,
            fewest_local,
            most_local: most.unwrap_or(measured),
            is_alone,
        })
    }

    /// Jobs done in a second by so many GPUs; nothing where no size was measured with that batch.
    pub(super) fn curve(&self, batch: u32, rule: Batch) -> Option<Curve> {
        let sizes = SIZES.iter().filter(|size| !self.is_alone || **size == 1);
        let speeds = sizes.filter_map(|size| Some((*size, 1.0 / self.total(*size, batch, rule)?)));
        Curve::new(speeds.collect()).ok()
    }

    /// What it is worth after each epoch, as a part of the time that all take with as few GPUs as can be: a metric that
    /// falls is turned over, and counted from what it is after the first.
    pub(super) fn quality(&self, batch: u32, rule: Batch) -> Option<Quality> {
        let metrics = self.metrics_near(batch)?;
        let (first, last) = (*metrics.first()?, *metrics.last()?);
        let worth = |metric: f64| if last < first { first - metric } else { metric };
        let size = self.curve(batch, rule)?.least();
        let times: Vec<f64> = self.times(size, batch, rule).collect::<Option<_>>()?;
        let (all, mut part, mut points) = (times.iter().sum::<f64>(), 0.0, Vec::new());
        for (time, metric) in times.iter().zip(metrics) {
            part += time / all;
            points.push((part, worth(*metric)));
        }
        points.last_mut()?.0 = 1.0;
        Quality::new(points).ok()
    }

    /// As with the next smaller batch that was tried.
    fn metrics_near(&self, batch: u32) -> Option<&Vec<f64>> {
        self.metrics.range(..=batch).next_back().or(self.metrics.iter().next()).map(|(_, metrics)| metrics)
    }

    /// The time of all epochs.
    fn total(&self, size: u32, batch: u32, rule: Batch) -> Option<f64> {
        self.times(size, batch, rule).sum()
    }

    /// The time of each epoch.
    fn times(&self, size: u32, batch: u32, rule: Batch) -> impl Iterator<Item = Option<f64>> {
        let epoch = move |(epoch, progress): (usize, &f64)| {
            let goodput = match rule {
                Batch::Given => self.goodput(size, batch, epoch),
                Batch::Adaptive if self.is_alone => self.goodput(size, batch, epoch),
                Batch::Adaptive => self.best_goodput(size, epoch),
            };
            goodput.map(|goodput| progress / goodput)
        };
        self.epochs.iter().enumerate().map(epoch)
    }

    fn best_goodput(&self, size: u32, epoch: usize) -> Option<f64> {
        let (least, most) = (f64::from(self.smallest_batch()), f64::from(self.largest_batch()));
        let batch = |at: u32| least * (most / least).powf(f64::from(at) / f64::from(TRIED - 1));
        let tried = (0..TRIED).map(|at| batch(at).round() as u32);
        tried.filter_map(|batch| self.goodput(size, batch, epoch)).max_by(f64::total_cmp)
    }

    /// Progress in a second: what a step of that batch is worth, over the time it takes. A GPU that cannot take its part
    /// at once takes it in several, and exchanges after the last.
    fn goodput(&self, size: u32, batch: u32, epoch: usize) -> Option<f64> {
        let local = batch.div_ceil(size);
        let mut parts = local.div_ceil(self.most_local);
        if size == 1 && batch > self.smallest_batch() {
            parts = parts.max(2);
        }
        let each = local.div_ceil(parts).min(self.largest_batch() / (size * parts));
        let (time, sync) = self.step(size, each)?;
        let batch = (size * each * parts).clamp(self.smallest_batch(), self.largest_batch());
        Some(self.gain(batch, epoch) / (time + (time - sync) * f64::from(parts - 1)))
    }

    /// What a step is worth beside one of the smallest batch: the less the gradient varies, the less a larger one helps.
    fn gain(&self, batch: u32, epoch: usize) -> f64 {
        let (square, variance) = self.statistics_at(batch, epoch);
        let scale = f64::from(batch) / f64::from(self.smallest_batch());
        (variance + square) / (variance / scale + square)
    }

    /// Between two batch sizes that were tried, in proportion.
    fn statistics_at(&self, batch: u32, epoch: usize) -> (f64, f64) {
        let below = self.statistics.range(..=batch).next_back();
        let above = self.statistics.range(batch..).next();
        let (Some((low, below)), Some((high, above))) = (below, above) else { return (1.0, 0.0) };
        let (below, above) = (below[epoch], above[epoch]);
        let part = if high == low { 0.0 } else { f64::from(batch - low) / f64::from(high - low) };
        let between = |a: f64, b: f64| a * (1.0 - part) + b * part;
        (between(below.0, above.0), between(below.1, above.1))
    }

    /// The time of a step with so many samples on each GPU, between those that were measured.
    fn step(&self, size: u32, local: u32) -> Option<(f64, f64)> {
        let steps = self.steps.get(&size).filter(|_| local >= self.fewest_local)?;
        let above = steps.iter().position(|step| step.local >= local)?;
        let (low, high) = (steps[above.saturating_sub(1)], steps[above]);
        if high.local == local {
            return Some((high.time, high.sync));
        }
        if above == 0 {
            return None;
        }
        let part = f64::from(local - low.local) / f64::from(high.local - low.local);
        let between = |a: f64, b: f64| a * (1.0 - part) + b * part;
        Some((between(low.time, high.time), between(low.sync, high.sync)))
    }

    fn smallest_batch(&self) -> u32 {
        self.statistics.keys().next().copied().unwrap_or(1)
    }

    fn largest_batch(&self) -> u32 {
        self.statistics.keys().next_back().copied().unwrap_or(1)
    }
}

fn metrics(epochs: &[Epoch]) -> Vec<f64> {
    epochs.iter().map(|epoch| epoch.metric).collect()
}

/// Step times on up to four nodes, of placements that take as few nodes as will do.
fn placements(path: &Path) -> Result<BTreeMap<u32, Vec<Step>>, InputError> {
    let columns = ["placement", "local_bsz", "step_time", "sync_time"].map(Column::required);
    let mut steps: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
    let fewest: BTreeMap<String, u32> = SIZES.iter().map(|size| (packed(*size), *size)).collect();
    rows(path, columns, |[placement, local, time, sync]| {
        if let Some(size) = fewest.get(placement) {
            steps.entry(*size).or_default().push(step(local, time, sync)?);
        }
        Ok(())
    })?;
    Ok(steps)
}

/// GPUs on each node: whole nodes, the rest before them, as the measurements write it.
fn packed(size: u32) -> String {
    let rest = size % PER_NODE;
    let rest = if rest == 0 { String::new() } else { rest.to_string() };
    rest + &PER_NODE.to_string().repeat((size / PER_NODE) as usize)
}

/// Step times on more nodes, where all their GPUs are used.
fn scalability(path: &Path) -> Result<BTreeMap<u32, Vec<Step>>, InputError> {
    let columns = ["num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"].map(Column::required);
    let mut steps: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
    rows(path, columns, |[nodes, replicas, local, time, sync]| {
        let (nodes, replicas) = (number(nodes)? as u32, number(replicas)? as u32);
        if nodes > 4 && replicas == nodes * PER_NODE && SIZES.contains(&replicas) {
            steps.entry(replicas).or_default().push(step(local, time, sync)?);
        }
        Ok(())
    })?;
    Ok(steps)
}

fn step(local: &str, time: &str, sync: &str) -> Result<Step, String> {
    Ok(Step { local: number(local)? as u32, time: number(time)?, sync: number(sync)? })
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    progress: f64,
    metric: f64,
    square: f64,
    variance: f64,
}

/// By batch size, what training with it came to after each epoch.
fn validations(folder: &Path, epochs: usize) -> Result<BTreeMap<u32, Vec<Epoch>>, InputError> {
    let shown = folder.display().to_string();
    let wrong = |message: String| Problem::whole(message).in_file(&shown);
    let entries = std::fs::read_dir(folder).map_err(|error| wrong(error.to_string()))?;
    let mut validated = BTreeMap::new();
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Some(batch) = stem.strip_prefix("validation-").and_then(|batch| batch.parse::<u32>().ok()) else {
            continue;
        };
        let read = validation(&path)?;
        if read.len() < epochs {
            return Err(wrong(format!("{stem} has {} epochs instead of {epochs}", read.len())));
        }
        validated.insert(batch, read);
    }
    match validated.is_empty() {
        true => Err(wrong("there is no validation in it".into())),
        false => Ok(validated),
    }
}

fn validation(path: &Path) -> Result<Vec<Epoch>, InputError> {
    let columns = ["progress", "metric", "grad_sqr", "grad_var"].map(Column::required);
    let mut epochs = Vec::new();
    rows(path, columns, |[progress, metric, square, variance]| {
        let (progress, metric) = (number(progress)?, number(metric)?);
        epochs.push(Epoch { progress, metric, square: number(square)?, variance: number(variance)? });
        Ok(())
    })?;
    Ok(epochs)
}

fn rows<const N: usize>(
    path: &Path,
    columns: [Column; N],
    mut each: impl FnMut([&str; N]) -> Result<(), String>,
) -> Result<(), InputError> {
    let mut table = Table::open(path, columns, Strangers::Ignored)?;
    let file = table.file().to_owned();
    while let Some(cells) = table.next()? {
        each(cells.values.map(Option::unwrap_or_default))
            .map_err(super::super::at_line(cells.line, &file))?;
    }
    Ok(())
}

fn number(text: &str) -> Result<f64, String> {
    check_name(text)?;
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_as_few_nodes_as_will_do() {
        assert_eq!([1, 3, 4, 6, 8, 16].map(packed), ["1", "3", "4", "24", "44", "4444"]);
    }

    fn application() -> Application {
        let step = |local, time| Step { local, time, sync: 0.2 };
        Application {
            epochs: vec![100.0],
            statistics: [(10, vec![(1.0, 1.0)]), (40, vec![(1.0, 1.0)])].into(),
            metrics: [(10, vec![0.5])].into(),
            steps: [(1, vec![step(10, 1.0), step(20, 2.0)]), (2, vec![step(10, 1.2), step(20, 2.2)])].into(),
            fewest_local: 10,
            most_local: 20,
            is_alone: false,
        }
    }

    #[test]
    fn steps_between_those_measured_are_in_proportion_and_none_is_beyond() {
        let measured = application();
        assert_eq!(measured.step(1, 15), Some((1.5, 0.2)));
        assert_eq!((measured.step(1, 21), measured.step(1, 9), measured.step(4, 10)), (None, None, None));
    }

    #[test]
    fn a_batch_that_a_gpu_cannot_take_at_once_is_exchanged_once() {
        let measured = application();
        // Twice twenty samples are worth (1 + 1) / (1/4 + 1) of a step of ten, in 2 + 1.8 s.
        let expected = 1.6 / 3.8;
        assert!((measured.goodput(1, 40, 0).unwrap() - expected).abs() < 1e-12);
        assert!((measured.goodput(2, 40, 0).unwrap() - 1.6 / 2.2).abs() < 1e-12);
    }
}
