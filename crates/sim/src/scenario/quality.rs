//! What a training is worth after each part of its work, as it was measured.

/// After such parts of the work such a quality, which is zero before the first; the last is that of all the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality(Vec<(f64, f64)>);

/// Words that fit behind the name of what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum QualityError {
    #[error("the last part is {0}, and not all of the work: 1")]
    Unfinished(f64),
    #[error("the part {0} does not come after {1}")]
    Backwards(f64, f64),
    #[error("nothing is learned in the end")]
    Nothing,
}

impl Quality {
    pub(crate) fn new(points: Vec<(f64, f64)>) -> Result<Self, QualityError> {
        let mut before = 0.0;
        for (part, _) in &points {
            if part.is_nan() || *part <= before {
                return Err(QualityError::Backwards(*part, before));
            }
            before = *part;
        }
        match points.last() {
            Some((part, _)) if *part != 1.0 => Err(QualityError::Unfinished(*part)),
            Some((_, quality)) if *quality > 0.0 => Ok(Self(points)),
            _ => Err(QualityError::Nothing),
        }
    }

    /// The part of the work after which it first is such a share of what it is in the end; between two that were
    /// measured, in proportion.
    pub(crate) fn reaches(&self, share: f64) -> f64 {
        let wanted = share * self.0.last().map_or(0.0, |(_, quality)| *quality);
        let mut before = (0.0, 0.0);
        for (part, quality) in &self.0 {
            if *quality >= wanted {
                let way = (wanted - before.1) / (quality - before.1);
                return before.0 + way.clamp(0.0, 1.0) * (part - before.0);
            }
            before = (*part, *quality);
        }
        1.0
    }

    /// As it would be written: `[[0.5, 0.8], [1, 0.9]]`.
    pub(crate) fn written(&self) -> String {
        let points: Vec<String> =
            self.0.iter().map(|(part, quality)| format!("[{part}, {quality}]")).collect();
        format!("[{}]", points.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_last_is_reached_between_what_was_measured() {
        let quality = Quality::new(vec![(0.25, 0.4), (0.5, 0.8), (1.0, 1.0)]).unwrap();
        assert_eq!((quality.reaches(0.2), quality.reaches(0.6), quality.reaches(1.0)), (0.125, 0.375, 1.0));
        assert!((quality.reaches(0.9) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn the_first_time_counts() {
        let quality = Quality::new(vec![(0.25, 1.0), (0.5, 0.4), (1.0, 1.0)]).unwrap();
        assert_eq!(quality.reaches(0.8), 0.2);
    }

    #[test]
    fn parts_rise_to_all_of_the_work() {
        assert_eq!(Quality::new(vec![(0.5, 1.0)]), Err(QualityError::Unfinished(0.5)));
        assert_eq!(Quality::new(vec![(0.5, 1.0), (0.5, 1.0)]), Err(QualityError::Backwards(0.5, 0.5)));
        assert_eq!(Quality::new(vec![(1.0, 0.0)]), Err(QualityError::Nothing));
        assert_eq!(Quality::new(Vec::new()), Err(QualityError::Nothing));
    }
}
