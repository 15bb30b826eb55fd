//! How compute varies from iteration to iteration: by a normal distribution, or as somebody has measured it.

use std::io::Read;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use metronome_core::model::units::Share;

use super::Origin;
use crate::noise::{Factors, Noise};
use crate::scenario::documents::NoiseShape;
use crate::scenario::error::{InputError, Problem};
use crate::scenario::source;
use crate::scenario::values::{Placed, Text, share};

/// More measurements than this say nothing new.
const LARGEST: u64 = 64 << 20;

const COLUMN: &str = "batch_time_norm";

pub(super) fn noise(written: Option<&NoiseShape>, origin: Origin<'_>) -> Result<Noise, InputError> {
    let Some(NoiseShape { compute, measured, column }) = written else { return Ok(Noise::None) };
    let in_file = |problem: Problem| problem.in_file(origin.file);
    match (compute, measured) {
        (Some(_), Some(measured)) => {
            Err(in_file(measured.problem("noise is either `compute`, a share, or `measured`, a file")))
        }
        (None, Some(file)) => self::measured(file, column.as_ref(), origin),
        (Some(_), None) | (None, None) if column.is_some() => {
            let column = column.as_ref().expect("just seen");
            Err(in_file(column.problem("`column` is for `measured`, the file it is in")))
        }
        (Some(sigma), None) => Ok(match share(sigma).map_err(in_file)? {
            Share::NONE => Noise::None,
            sigma => Noise::Gaussian(sigma),
        }),
        (None, None) => Ok(Noise::None),
    }
}

/// A table of iteration times, gzipped if its name says so.
fn measured(file: &Text, column: Option<&Text>, origin: Origin<'_>) -> Result<Noise, InputError> {
    let path = origin.folder.join(&file.value);
    let opened = source::open(&path)?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let table: Box<dyn Read> = if zipped { Box::new(MultiGzDecoder::new(opened)) } else { Box::new(opened) };
    let column = column.map_or(COLUMN, |column| column.value.as_str());
    let factors = Factors::from_csv(table.take(LARGEST), column);
    let factors =
        factors.map_err(|error| Problem::whole(error.to_string()).in_file(&path.display().to_string()))?;
    Ok(Noise::Measured(Arc::new(factors)))
}
