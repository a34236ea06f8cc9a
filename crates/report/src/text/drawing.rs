//! Intervals and bars in one line of characters.
//!
//! ```text
//!   -75%      -50%     -25%   0       ticks, each beginning or ending near its place
//!     [--*--]                 :       an interval, its estimate, the line of no effect
//!          <----*-----]       :       its lower end lies off the axis
//!     ########                        a whole; `+` adds to it, `-` takes from it
//! ```

use crate::table::{Axis, BarKind, Drawing};

/// Renders the line of a cell.
pub(super) fn drawing(drawing: Option<Drawing>, axis: Option<&Axis>, width: usize) -> String {
    let mut line = vec![' '; width];
    if let Some(at) = axis.and_then(|axis| axis.line) {
        put(&mut line, at, ':');
    }
    match drawing {
        Some(Drawing::Interval { low, at, high }) => {
            fill(&mut line, low.unwrap_or(0.0), high.unwrap_or(1.0), '-');
            put(&mut line, low.unwrap_or(0.0), if low.is_some() { '[' } else { '<' });
            put(&mut line, high.unwrap_or(1.0), if high.is_some() { ']' } else { '>' });
            put(&mut line, at, '*');
        }
        Some(Drawing::Bar { from, to, kind }) => {
            let mark = match kind {
                BarKind::Total => '#',
                BarKind::More => '+',
                BarKind::Less => '-',
            };
            fill(&mut line, from.min(to), from.max(to), mark);
        }
        None => {}
    }
    line.into_iter().collect()
}

/// Renders an axis' labels, each centred at its position; one that would touch another is left out.
pub(super) fn ticks(axis: &Axis, width: usize) -> String {
    let mut line = String::new();
    for (at, label) in &axis.ticks {
        let length = label.chars().count();
        let start = place(*at, width).saturating_sub(length / 2).min(width.saturating_sub(length));
        let used = line.chars().count();
        if used == 0 || start > used {
            line = format!("{line:<start$}{label}");
        }
    }
    line
}

fn place(at: f64, width: usize) -> usize {
    ((at * width as f64) as usize).min(width.saturating_sub(1))
}

fn put(line: &mut [char], at: f64, mark: char) {
    let at = place(at, line.len());
    if let Some(letter) = line.get_mut(at) {
        *letter = mark;
    }
}

fn fill(line: &mut [char], from: f64, to: f64, mark: char) {
    let (from, to) = (place(from, line.len()), place(to, line.len()));
    for letter in line.iter_mut().take(to + 1).skip(from) {
        *letter = mark;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_bars_are_set_in_characters() {
        let axis = Axis {
            ticks: vec![(0.0, "-50%".to_string()), (0.5, "0".to_string()), (0.52, "1".to_string())],
            line: Some(0.5),
        };
        assert_eq!(ticks(&axis, 20), "-50%      0");
        let show = |what| drawing(Some(what), Some(&axis), 20);
        assert_eq!(
            show(Drawing::Interval { low: Some(0.1), at: 0.2, high: Some(0.3) }),
            "  [-*-]   :         "
        );
        assert_eq!(show(Drawing::Interval { low: None, at: 0.2, high: None }), "<---*-------------->");
        assert_eq!(
            show(Drawing::Bar { from: 0.4, to: 0.1, kind: BarKind::Less }),
            "  -------:          ".replace(":          ", " :         ")
        );
        assert_eq!(drawing(None, Some(&axis), 20).trim(), ":");
    }
}
