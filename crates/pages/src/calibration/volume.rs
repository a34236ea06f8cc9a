//! Several paths: each alone, all at once, and as the volume of `--simulate`.

use super::{interval, median, range};
use plumb_calibrate::{Calibration, Estimate, VolumeRates};
use plumb_report::format::{Figure, Share};
use plumb_report::table::{Cell, Column, Facts, Table};
use plumb_report::{Section, cells};
use plumb_units::Bytes;

pub(super) fn section(calibration: &Calibration) -> Option<Section> {
    let volume = calibration.volume.as_ref()?;
    let mut facts = Facts::default();
    for (index, path) in volume.paths.iter().enumerate() {
        let disk = if path.disk.is_empty() { "no disk of its own" } else { &path.disk };
        facts.add(
            format!("Path {}", index + 1),
            format!("{} on {disk}, {} used", path.path, Bytes(path.bytes)),
        );
    }
    let layout = volume.layout.name();
    let mut columns = vec![Column::text("Load of each path"), Column::text("Unit")];
    columns.extend((1..=volume.paths.len()).map(|path| Column::number(format!("Path {path}\nalone"))));
    for title in ["Sum", "All at\nonce"] {
        columns.push(Column::number(title));
    }
    columns.push(Column::number("% of\nthe sum"));
    columns.push(Column::text("Interval"));
    columns.push(Column::number(format!("As\n{layout}")));
    columns.push(Column::number("% of\nthe sum"));
    columns.push(Column::text("Interval"));
    let mut table = Table::new(columns);
    for rates in calibration.volume_rates() {
        table.row(row(&rates));
    }
    let note = "medians of repeats; a share is that of the same round, so that a drift of the machine cancels; \
                the volume has as many requests outstanding as all paths had together";
    Some(Section::front("paths", "Several Paths").note(note).facts(facts).table(table))
}

fn row(rates: &VolumeRates) -> Vec<Cell> {
    let VolumeRates { load, unit, alone, together, share, volume, volume_share } = rates;
    let sum: f64 = alone.iter().map(|path| path.median).sum();
    let mut row = cells![load.to_string(), *unit];
    row.extend(alone.iter().map(median));
    row.extend(cells![super::number(sum)]);
    for (rate, share) in [(together, share), (volume, volume_share)] {
        row.push(median(rate));
        row.push(Share(share.median).figure().into());
        row.push(percent_interval(share).into());
    }
    row
}

/// Formats the interval of a share, per cent, with its confidence if it has one.
fn percent_interval(share: &Estimate) -> String {
    let percent = Estimate { low: share.low * 100.0, high: share.high * 100.0, ..share.clone() };
    if share.low < share.high { interval(&percent) } else { range(&percent) }
}
