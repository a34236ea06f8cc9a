//! A/A studies: two arms with the same settings, and the reference against its own second run.

use super::Options;
use super::laboratory::Laboratory;
use crate::bench::figure::Figure;
use plumb_proof::proportion;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Error rate that a study allows.
const ALPHA: f64 = 0.05;
/// Levels at which the distribution of p is printed.
const LEVELS: [f64; 3] = [0.05, 0.10, 0.25];

/// Verdicts that reject the data of a study.
const AGAINST: [&str; 3] = ["INVALID", "UNSTABLE", "IMPOSSIBLE"];

/// Results of the A/A studies.
pub(super) struct Same {
    studies: usize,
    blocks: usize,
    /// Verdicts on the two arms, by label.
    verdicts: BTreeMap<String, usize>,
    /// Verdicts about the data, with their reasons.
    against: BTreeMap<String, usize>,
    /// p of the two arms, one per study.
    arms: Vec<f64>,
    /// p of the reference against itself, one per study.
    reference: Vec<f64>,
    /// Standard deviation of the reference's log-ratio, per cent.
    noise: Vec<f64>,
    /// Effect that a study could find with 80% power, per cent.
    smallest: Vec<f64>,
}

pub(super) fn run(options: &Options, laboratory: &Laboratory) -> anyhow::Result<Same> {
    let text = text(options);
    let (studies, blocks) = (usize::from(options.studies), usize::from(options.blocks));
    let mut same = Same {
        studies,
        blocks,
        verdicts: BTreeMap::new(),
        against: BTreeMap::new(),
        arms: Vec::new(),
        reference: Vec::new(),
        noise: Vec::new(),
        smallest: Vec::new(),
    };
    for number in 1..=studies {
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let analysis = laboratory.study(&text, seed, &format!("A/A study {number} of {studies}"))?;
        let claim = &analysis.claims[0];
        let label = claim.verdict.label();
        *same.verdicts.entry(label.to_string()).or_default() += 1;
        if AGAINST.contains(&label) {
            *same.against.entry(claim.verdict.to_string()).or_default() += 1;
        }
        same.arms.extend(claim.p);
        if let Some(floor) = &analysis.floor {
            same.reference.extend(floor.aa_p);
            same.noise.push(100.0 * floor.floor.deviation);
        }
        same.smallest.extend(claim.smallest_effect.map(|effect| 100.0 * effect));
    }
    Ok(same)
}

fn text(options: &Options) -> String {
    format!(
        r#"name = "same"
title = "Two arms that set the same"
question = "Is something seen where nothing is?"
workload = "large-sort"
rows = {}
blocks = {}
expects = "same"

[[factor]]
name = "copy"
levels = [
    {{ label = "one", set = {{ sort_area_size = "256K" }} }},
    {{ label = "two", set = {{ sort_area_size = "256K" }} }},
]

[[claim]]
name = "same"
text = "An arm differs from itself."
factor = "copy"
from = "one"
to = "two"
expect = "differs"
"#,
        options.rows, options.blocks
    )
}

impl Same {
    /// Returns the number of studies that proved a difference.
    fn false_proofs(&self) -> usize {
        let proved = |label: &String| label == "PROVED faster" || label == "PROVED slower";
        self.verdicts.iter().filter(|(label, _)| proved(label)).map(|(_, count)| count).sum()
    }

    pub(super) fn show(&self) -> String {
        let mut text = format!(
            "{:<30} {:>22}  {}\n",
            "p of A/A comparisons", "share [95% interval]", "an exact test's share"
        );
        for (name, p) in
            [("two arms that set the same", &self.arms), ("the reference against itself", &self.reference)]
        {
            let _ = writeln!(text, "{name}");
            for level in LEVELS {
                let hits = p.iter().filter(|p| **p <= level).count();
                let row = share(hits, p.len());
                let exact = 100.0 * attained(self.blocks, level);
                let _ = writeln!(text, "  p <= {level:<23.2} {row:>22}  {exact:.1}%");
            }
        }
        let verdicts: Vec<String> =
            self.verdicts.iter().map(|(label, count)| format!("{count} {label}")).collect();
        let _ = writeln!(text, "\nverdicts: {}", verdicts.join(", "));
        for (verdict, count) in &self.against {
            let _ = writeln!(text, "  {count} of them {verdict}");
        }
        let hits = self.false_proofs();
        let low = proportion::interval(hits, self.studies, ALPHA).low;
        let says = if low <= ALPHA { "agrees with at most 5%" } else { "DOES NOT AGREE with at most 5%" };
        let _ =
            writeln!(text, "false PROVED: {hits} of {}, {}: {says}", self.studies, share(hits, self.studies));
        if !self.noise.is_empty() {
            let show = |values: &[f64]| Figure::of(values).show(1);
            let _ = writeln!(text, "noise, s_d of the reference's log-ratio, %: {}", show(&self.noise));
            let _ = writeln!(text, "smallest effect found with 80% power, %: {}", show(&self.smallest));
        }
        text
    }
}

pub(super) fn share(hits: usize, of: usize) -> String {
    let interval = proportion::interval(hits, of, ALPHA);
    let percent = 100.0 * hits as f64 / of.max(1) as f64;
    format!("{percent:.1}% [{:.1}, {:.1}]", 100.0 * interval.low, 100.0 * interval.high)
}

/// Returns the attained level of the two-sided signed-rank test: the largest p of at most `level`
/// that `blocks` blocks can give, from the number of subsets of 1..n with each sum.
fn attained(blocks: usize, level: f64) -> f64 {
    let mut subsets = vec![1.0];
    for rank in 1..=blocks {
        let mut more = subsets.clone();
        more.resize(subsets.len() + rank, 0.0);
        subsets.iter().enumerate().for_each(|(sum, count)| more[sum + rank] += count);
        subsets = more;
    }
    let all: f64 = subsets.iter().sum();
    let below = subsets.iter().scan(0.0, |sum, count| {
        *sum += count;
        Some(2.0 * *sum / all)
    });
    below.take_while(|p| *p <= level).last().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_tests_share_is_that_of_the_tables() {
        // Wilcoxon's table: critical rank sums are 3 for n = 8 and 0 for n = 6; n = 5 has none.
        assert!((attained(8, 0.05) - 10.0 / 256.0).abs() < 1e-12);
        assert!((attained(6, 0.05) - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(attained(5, 0.05), 0.0);
    }

    #[test]
    fn false_proofs_are_counted_and_held_against_five_per_cent() {
        let same = |proved: usize| Same {
            studies: 40,
            blocks: 8,
            verdicts: [("PROVED slower".to_string(), proved), ("NOT PROVED".to_string(), 40 - proved)].into(),
            against: [("UNSTABLE: it changed".to_string(), 1)].into(),
            arms: vec![0.5; 40],
            reference: vec![0.04; 40],
            noise: vec![1.0],
            smallest: vec![2.0],
        };
        assert!(same(2).show().contains("false PROVED: 2 of 40, 5.0% [0.6, 16.9]: agrees with at most 5%"));
        assert!(same(8).show().contains("DOES NOT AGREE"));
        assert!(same(2).show().contains("\n  1 of them UNSTABLE: it changed\n"));
    }
}
