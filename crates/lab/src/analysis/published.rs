//! The source's table beside ours, in its own layout.

use super::seen::Seen;
use crate::analysis::result::{PublishedRow, PublishedTable};
use crate::study::minutes;

pub(super) fn table(seen: &Seen<'_>) -> Option<PublishedTable> {
    let plan = &seen.contents.plan;
    let study = &plan.study;
    let published = study.published.as_ref()?;
    let column = &study.factors[published.column];
    // Factors that the table does not name are at their reference.
    let arm = |levels: &[usize], column_level: usize| {
        let mut wanted = vec![0; study.factors.len()];
        published.row_factors.iter().zip(levels).for_each(|(factor, level)| wanted[*factor] = *level);
        wanted[published.column] = column_level;
        plan.design.arms.iter().position(|arm| *arm == wanted)
    };
    let label = |factor: usize, level: usize| study.factors[factor].levels[level].label.clone();
    let row = |row: &crate::study::PublishedRow| PublishedRow {
        labels: published
            .row_factors
            .iter()
            .zip(&row.levels)
            .map(|(factor, level)| label(*factor, *level))
            .collect(),
        published_s: row.times.iter().map(|time| minutes(time)).collect(),
        arms: (0..column.levels.len()).map(|level| arm(&row.levels, level)).collect(),
    };
    Some(PublishedTable {
        title: published.title.clone(),
        source: published.source.clone(),
        row_labels: published.row_factors.iter().map(|factor| study.factors[*factor].name.clone()).collect(),
        columns: column.levels.iter().map(|level| format!("{} {}", column.name, level.label)).collect(),
        rows: published.rows.iter().map(row).collect(),
    })
}
