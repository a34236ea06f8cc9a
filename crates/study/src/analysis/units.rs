//! Questions about figures of a command that differ by a factor of a thousand.
//!
//! A tool may change its unit (`985 MB/s`, `1.1 GB/s`), or a pattern may leave the unit out. The
//! figures then differ by a factor of a thousand, with a small interval and a sure verdict. A true
//! factor of a thousand looks the same, so the report asks and does not reject.

use super::used_blocks::UsedBlocks;
use plumb_record::Finding;
use std::ops::RangeInclusive;

/// Tolerance around a power of 1000, because runs differ without any treatment.
const AROUND: RangeInclusive<f64> = 0.25..=4.0;

/// Returns a question for each measure of the study's own whose figures form two groups.
pub(super) fn findings(used: &UsedBlocks<'_>) -> Vec<Finding> {
    let declared = used.contents.plan.study.vocabulary.declared();
    let all: Vec<usize> = (0..used.contents.plan.schedule.arms).collect();
    let records = used.records(&all);
    let of_measure = |(name, _): &(String, _)| {
        let rows = records.iter().flat_map(|(_, record)| &record.measures);
        let figures = rows.filter(|row| row.name == *name).map(|row| row.value).collect();
        let (low, high) = apart(figures)?;
        let shown = |figures: &[f64]| {
            let (first, last) =
                (figures.first().copied().unwrap_or(0.0), figures.last().copied().unwrap_or(0.0));
            format!(
                "{} run{} {first} to {last}",
                figures.len(),
                if figures.len() == 1 { " has" } else { "s have" }
            )
        };
        Some(Finding {
            what: format!("Figures of {name} lie about a thousandfold apart"),
            evidence: format!("{}, {}", shown(&low), shown(&high)),
            advice: "if the command prints them with changing units (MB/s, GB/s), take the unit into the group of the pattern; \
                     what is proved of the bare numbers is worth nothing"
                .to_string(),
            ..Finding::default()
        })
    };
    declared.iter().filter_map(of_measure).collect()
}

/// Returns the figures below and above a gap of a thousand or a million, each in order.
fn apart(mut figures: Vec<f64>) -> Option<(Vec<f64>, Vec<f64>)> {
    figures.retain(|figure| *figure > 0.0);
    figures.sort_by(f64::total_cmp);
    let is_gap = |pair: &[f64]| [1e3, 1e6].iter().any(|power| AROUND.contains(&(pair[1] / pair[0] / power)));
    let gap = figures.windows(2).position(is_gap)?;
    let high = figures.split_off(gap + 1);
    Some((figures, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_a_thousand_is_found_and_smaller_not() {
        let found = |figures: &[f64]| apart(figures.to_vec());
        assert_eq!(found(&[985.0, 1.1, 980.0, 1.0]), Some((vec![1.0, 1.1], vec![980.0, 985.0])));
        assert_eq!(found(&[2.0, 0.0, 1.5e6]), Some((vec![2.0], vec![1.5e6])));
        assert_eq!(found(&[1.0, 100.0, 9000.0]), None);
        assert_eq!(found(&[]), None);
    }
}
