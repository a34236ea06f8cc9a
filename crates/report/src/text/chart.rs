//! The I/O profile in characters: one panel for each stream, all on the same axes.
//!
//! A column is a hundredth of the time axis (more on a narrower page), and its height the mean
//! rate. Three characters give a panel of five lines fifteen steps: `.` is a third of a line, `:`
//! two thirds, `#` a whole one. A column above a fixed axis ends in `^`. Strips of the machine
//! follow with a line for each figure. They are darker for larger figures, from a blank for 0 to
//! `@` for the top of the axis. Below them are the seconds and the phases.

use super::wrap;
use crate::format::{Decimal, Figure, Size, grouped};
use crate::profile::{Band, Chart, PairChart, Stream, tick_step};
use crate::strip::{Strip, StripLine};

/// Largest number of columns of the time axis.
const COLUMNS_MAX: usize = 100;
/// Characters besides the columns: the gutter, and the name of a phase that starts at the end.
const BESIDE: usize = 32;
const LINES: usize = 5;
/// Lines of a panel in a comparison of two.
const PAIR_LINES: usize = 3;
/// Characters left of the axis.
const GUTTER: usize = 9;

/// Renders the lines of the chart.
pub(crate) fn lines(chart: &Chart, width: usize) -> Vec<String> {
    let columns = columns_in(width);
    let mut lines = Vec::new();
    for stream in &chart.streams {
        lines.extend(panel(chart, stream, &stream.name, columns, LINES));
    }
    for strip in &chart.strips {
        lines.extend(strip_lines(chart, strip, columns, width));
    }
    lines.push(seconds(chart, columns, width));
    lines.extend(phases(chart, columns, width));
    lines
}

/// Columns of the axis on a page of this width.
fn columns_in(width: usize) -> usize {
    width.saturating_sub(BESIDE).min(COLUMNS_MAX)
}

/// Characters for a strip's figures, from nothing to the top of its axis.
const LEVELS: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];

/// Least number of characters for a name after its line; with fewer it is above the line.
const NAME_LEAST: usize = 12;

/// Renders a strip: its title, then a line for each figure. Names follow the lines, or precede
/// them on a narrow page.
fn strip_lines(chart: &Chart, strip: &Strip, columns: usize, width: usize) -> Vec<String> {
    let room = width.saturating_sub(GUTTER + columns + 3);
    let above = |name: &str| format!("{:GUTTER$} {}", "", name.chars().take(columns).collect::<String>());
    let drawn = strip.lines.iter().map(|line| (line, strip_line(chart, strip, line, columns)));
    if room < NAME_LEAST {
        let lines = drawn.flat_map(|(line, drawn)| [above(&format!("{} {}", strip.title, line.name)), drawn]);
        return lines.collect();
    }
    let named = |(line, drawn): (&StripLine, String)| {
        format!("{drawn}| {}", line.name.chars().take(room).collect::<String>())
    };
    std::iter::once(above(&strip.title)).chain(drawn.map(named)).collect()
}

/// Renders a line of a strip without its name, darker columns for larger figures.
fn strip_line(chart: &Chart, strip: &Strip, line: &StripLine, columns: usize) -> String {
    let column_s = chart.x_max_s / columns as f64;
    let shade = |column: usize| {
        let from_s = column as f64 * column_s;
        let share = strip.mean(line, from_s, from_s + column_s)? / strip.top;
        let level = (share * (LEVELS.len() - 1) as f64).ceil().max(0.0) as usize;
        LEVELS.get(level.min(LEVELS.len() - 1)).copied()
    };
    let shades: String = (0..columns).map(|column| shade(column).unwrap_or(' ')).collect();
    let top = format!("{} {}", axis_end(strip.top), strip.unit);
    format!("{:>GUTTER$}|{shades}", top.trim_end())
}

/// Renders two profiles: stream by stream, the reference above the treatment.
pub(crate) fn pair_lines(pair: &PairChart, width: usize) -> Vec<String> {
    // No names follow the axis here.
    let columns = width.saturating_sub(GUTTER + 1).min(COLUMNS_MAX);
    let [reference, treatment] = &pair.sides;
    let mut lines = wrap(&pair.title, GUTTER + 1 + columns);
    for (before, after) in reference.chart.streams.iter().zip(&treatment.chart.streams) {
        for (side, stream) in [(reference, before), (treatment, after)] {
            let caption = format!("{}: {}", stream.name, side.name);
            lines.extend(panel(&side.chart, stream, &caption, columns, PAIR_LINES));
        }
    }
    lines.push(seconds(&reference.chart, columns, GUTTER + 1 + columns));
    lines
}

fn panel(chart: &Chart, stream: &Stream, caption: &str, columns: usize, height: usize) -> Vec<String> {
    let total = Size(stream.total()).figure();
    let peak = Decimal(stream.peak_mb_per_s(chart.bucket_s)).figure();
    let figures = format!("  {total}, peak {peak} MB/s");
    let caption = caption.chars().take(columns.saturating_sub(figures.chars().count())).collect::<String>();
    let mut lines = vec![format!("{:GUTTER$} {caption}{figures}", "")];
    let column_s = chart.x_max_s / columns as f64;
    let heights = (0..columns).map(|column| {
        let from_s = column as f64 * column_s;
        let rate = stream.rate_mb_per_s(chart.bucket_s, from_s, from_s + column_s);
        rate / chart.y_max_mb_per_s * height as f64
    });
    let heights = heights.collect::<Vec<_>>();
    for line in (0..height).rev() {
        let label = if line == height - 1 { axis_end(chart.y_max_mb_per_s) } else { String::new() };
        let marks = heights.iter().map(|filled| mark(*filled, line, height)).collect::<String>();
        lines.push(format!("{label:>GUTTER$}|{marks}"));
    }
    lines.push(format!("{:>GUTTER$}+{}", "0", ruler(chart, columns)));
    lines
}

/// Formats the end of an axis without needless decimals.
fn axis_end(value: f64) -> String {
    grouped(value, if value.fract() == 0.0 { 0 } else { 1 })
}

/// Returns the character of a column on a line; the lowest line is 0.
fn mark(height: f64, line: usize, lines: usize) -> char {
    let filled = height - line as f64;
    match filled {
        filled if line == lines - 1 && filled > 1.001 => '^',
        filled if filled > 5.0 / 6.0 => '#',
        filled if filled > 0.5 => ':',
        // Any movement of a stream must be visible.
        filled if filled > 1.0 / 6.0 || (line == 0 && height > 0.0) => '.',
        _ => ' ',
    }
}

/// Ticks of the time axis: column and seconds, at most ten.
fn ticks(chart: &Chart, columns: usize) -> Vec<(usize, f64)> {
    let step_s = tick_step(chart.x_max_s);
    let count = (chart.x_max_s / step_s + 1e-9).floor() as usize;
    let tick = |index: usize| {
        let at_s = index as f64 * step_s;
        (column_of(chart, at_s, columns), at_s)
    };
    (0..=count).map(tick).collect()
}

fn column_of(chart: &Chart, at_s: f64, columns: usize) -> usize {
    ((at_s / chart.x_max_s * columns as f64).round().max(0.0) as usize).min(columns)
}

fn ruler(chart: &Chart, columns: usize) -> String {
    let ticks = ticks(chart, columns);
    let mark = |column| if ticks.iter().any(|(at, _)| *at == column) { '+' } else { '-' };
    (1..=columns).map(mark).collect()
}

/// Renders the names of the ticks within this width.
fn seconds(chart: &Chart, columns: usize, width: usize) -> String {
    let decimals = if tick_step(chart.x_max_s) < 1.0 { 1 } else { 0 };
    let mut line = " ".repeat(GUTTER);
    for (column, at_s) in ticks(chart, columns) {
        let label = grouped(at_s, decimals);
        let start = (GUTTER + column).min(width.saturating_sub(label.len())).max(line.len());
        line = format!("{line:<start$}{label}");
    }
    if line.len() + 2 <= width { line + " s" } else { line }
}

/// Renders the phases below the time axis; overlapping phases are on separate lines.
fn phases(chart: &Chart, columns: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for band in chart.bands.iter().filter(|band| band.start_s < chart.x_max_s) {
        let start = column_of(chart, band.start_s, columns);
        let room = lines.iter_mut().find(|line| line.chars().count() <= GUTTER + start);
        let end = column_of(chart, band.end_s, columns);
        let label = label(band, end.saturating_sub(start), width - GUTTER - columns - 1);
        match room {
            Some(line) => *line = format!("{line:<width$}{label}", width = GUTTER + start),
            None => lines.push(format!("{:width$}{label}", "", width = GUTTER + start)),
        }
    }
    lines
}

/// Renders `|name....` in this number of columns; a narrow one keeps up to `letters` of its name.
fn label(band: &Band, columns: usize, letters: usize) -> String {
    let name = band.name.chars().take(letters).collect::<String>();
    format!("|{name:.<width$}", width = columns.saturating_sub(1))
}
