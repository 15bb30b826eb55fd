//! Many values over time as colours: one row for each thing, one column for each stretch of time.

use super::svg::{Frame, Path, Svg};

/// Shades from nothing to full; the style sheet has a colour for each.
pub(super) const SHADES: usize = 8;

/// More columns than this are finer than the picture.
const MOST_COLUMNS: usize = 160;

/// Draws rows of shares between 0 and 1 into a frame. Neighbours of one shade are one block.
pub(super) fn draw(svg: &mut Svg, frame: Frame, rows: &[Vec<f64>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let (width, height) = (frame.width / columns as f64, frame.height / rows.len().max(1) as f64);
    let mut paths: Vec<Path> = (0..SHADES).map(|_| Path::default()).collect();
    for (index, row) in rows.iter().enumerate() {
        for (from, to, shade) in runs(row) {
            paths[shade].block(Frame {
                x: frame.x + from as f64 * width,
                y: frame.y + index as f64 * height,
                width: (to - from) as f64 * width,
                height: height * 0.92,
            });
        }
    }
    for (shade, path) in paths.iter().enumerate() {
        svg.path(&format!("heat s{shade}"), path);
    }
}

/// The shade of a share: 0 is nothing at all, the darkest is above 7/8.
pub(super) fn shade(share: f64) -> usize {
    ((share * SHADES as f64).ceil() as usize).min(SHADES).saturating_sub(1)
}

/// Stretches of one shade: first column, column after the last, shade.
fn runs(row: &[f64]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (column, share) in row.iter().enumerate() {
        let shade = shade(*share);
        match runs.last_mut() {
            Some((_, to, last)) if *last == shade => *to = column + 1,
            _ => runs.push((column, column + 1, shade)),
        }
    }
    runs
}

/// Puts bins together until they are few enough; each is the mean of its parts, also of those that are missing.
pub(super) fn coarser(bins: &[f64], length: usize) -> Vec<f64> {
    let each = length.div_ceil(MOST_COLUMNS).max(1);
    let value = |bin: usize| bins.get(bin).copied().unwrap_or(0.0);
    let mean = |column: usize| (column * each..(column + 1) * each).map(value).sum::<f64>() / each as f64;
    (0..length.div_ceil(each)).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_shade_are_one_block() {
        assert_eq!(runs(&[0.0, 0.01, 0.99, 1.0, 0.5]), [(0, 2, 0), (2, 4, 7), (4, 5, 3)]);
        assert_eq!([shade(0.0), shade(0.126), shade(1.0), shade(1.3)], [0, 1, 7, 7]);
    }

    #[test]
    fn fewer_columns_carry_the_same_bytes() {
        let bins: Vec<f64> = (0..1000).map(f64::from).collect();
        let coarse = coarser(&bins, 1000);
        assert!(coarse.len() <= MOST_COLUMNS);
        let each = 1000_usize.div_ceil(MOST_COLUMNS) as f64;
        assert_eq!(coarse.iter().sum::<f64>() * each, bins.iter().sum::<f64>());
        assert_eq!(coarser(&[1.0], 3), [1.0, 0.0, 0.0], "a link that fell silent");
    }
}
