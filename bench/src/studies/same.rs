//! A/A studies: two arms with the same settings, and the reference against its own second run.

use super::laboratory::Laboratory;
use crate::figure::Figure;
use anyhow::Context;
use plumb_proof::proportion;
use plumb_study::analysis::result::Analysis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Error rate that a study allows.
const ALPHA: f64 = 0.05;
/// Levels at which the distribution of p is printed.
const LEVELS: [f64; 3] = [0.05, 0.10, 0.25];

/// Verdicts that reject the data of a study.
const AGAINST: [&str; 3] = ["INVALID", "UNSTABLE", "IMPOSSIBLE"];

/// A/A studies to make, and their outcomes so far.
pub(crate) struct SameSpec {
    pub text: String,
    pub studies: usize,
    pub blocks: usize,
    pub seed: u64,
    /// File of the outcomes, a line each. Studies that are in it are not made again.
    pub results: Option<PathBuf>,
}

/// Outcome of an A/A study.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SameStudy {
    label: String,
    verdict: String,
    /// p of the two arms, and of the reference against itself.
    p: Option<f64>,
    reference_p: Option<f64>,
    /// Standard deviation of the reference's log-ratio, per cent.
    noise: Option<f64>,
    /// Effect that the study could find with 80% power, per cent.
    smallest: Option<f64>,
}

impl SameStudy {
    fn of(analysis: &Analysis) -> SameStudy {
        let claim = &analysis.claims[0];
        SameStudy {
            label: claim.verdict.label().to_string(),
            verdict: claim.verdict.to_string(),
            p: claim.p,
            reference_p: analysis.floor.as_ref().and_then(|floor| floor.aa_p),
            noise: analysis.floor.as_ref().map(|floor| 100.0 * floor.floor.deviation),
            smallest: claim.smallest_effect.map(|effect| 100.0 * effect),
        }
    }
}

/// Results of the A/A studies.
pub(crate) struct Same {
    blocks: usize,
    made: Vec<SameStudy>,
}

pub(crate) fn run(spec: &SameSpec, laboratory: &Laboratory) -> anyhow::Result<Same> {
    let mut made = spec.results.as_deref().map_or_else(|| Ok(Vec::new()), kept)?;
    for number in made.len() + 1..=spec.studies {
        let seed = spec.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let label = format!("A/A study {number} of {}", spec.studies);
        let study = SameStudy::of(&laboratory.study(&spec.text, seed, &label)?);
        if let Some(path) = &spec.results {
            let file = File::options().create(true).append(true).open(path);
            let mut file = file.with_context(|| format!("writing {}", path.display()))?;
            writeln!(file, "{}", serde_json::to_string(&study)?)?;
        }
        made.push(study);
    }
    Ok(Same { blocks: spec.blocks, made })
}

/// Reads the outcomes of a file; none if it does not exist.
fn kept(path: &Path) -> anyhow::Result<Vec<SameStudy>> {
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    let studies = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    studies.with_context(|| format!("{}: no outcomes of A/A studies", path.display()))
}

pub(super) fn text_of_engine(rows: u64, blocks: u16) -> String {
    text("", rows, blocks, "sort_area_size = \"256K\"")
}

/// Returns the text of a study of two arms with the same setting; `head` has further keys.
pub(crate) fn text(head: &str, rows: u64, blocks: u16, set: &str) -> String {
    format!(
        r#"name = "same"
title = "Two arms that set the same"
question = "Is something seen where nothing is?"
workload = "large-sort"
rows = {rows}
blocks = {blocks}
expects = "same"
{head}
[[factor]]
name = "copy"
levels = [
    {{ label = "one", set = {{ {set} }} }},
    {{ label = "two", set = {{ {set} }} }},
]

[[claim]]
name = "same"
text = "An arm differs from itself."
factor = "copy"
from = "one"
to = "two"
expect = "differs"
"#
    )
}

impl Same {
    /// Returns the number of studies with each verdict, in words or with its reason.
    fn verdicts<'s>(&'s self, of: fn(&'s SameStudy) -> Option<&'s String>) -> BTreeMap<&'s str, usize> {
        let mut counts = BTreeMap::new();
        self.made.iter().filter_map(of).for_each(|word| *counts.entry(word.as_str()).or_default() += 1);
        counts
    }

    /// Returns the number of studies that proved a difference.
    fn false_proofs(&self) -> usize {
        let proved = |study: &&SameStudy| ["PROVED faster", "PROVED slower"].contains(&study.label.as_str());
        self.made.iter().filter(proved).count()
    }

    fn values(&self, of: fn(&SameStudy) -> Option<f64>) -> Vec<f64> {
        self.made.iter().filter_map(of).collect()
    }

    pub(crate) fn show(&self) -> String {
        let mut text = format!(
            "{:<30} {:>22}  {}\n",
            "p of A/A comparisons", "share [95% interval]", "an exact test's share"
        );
        let (arms, reference) = (self.values(|study| study.p), self.values(|study| study.reference_p));
        for (name, p) in [("two arms that set the same", arms), ("the reference against itself", reference)] {
            let _ = writeln!(text, "{name}");
            for level in LEVELS {
                let hits = p.iter().filter(|p| **p <= level).count();
                let row = share(hits, p.len());
                let exact = 100.0 * attained(self.blocks, level);
                let _ = writeln!(text, "  p <= {level:<23.2} {row:>22}  {exact:.1}%");
            }
        }
        let labels = self.verdicts(|study| Some(&study.label));
        let labels: Vec<String> = labels.iter().map(|(label, count)| format!("{count} {label}")).collect();
        let _ = writeln!(text, "\nverdicts: {}", labels.join(", "));
        let against =
            self.verdicts(|study| AGAINST.contains(&study.label.as_str()).then_some(&study.verdict));
        for (verdict, count) in against {
            let _ = writeln!(text, "  {count} of them {verdict}");
        }
        let (hits, studies) = (self.false_proofs(), self.made.len());
        let low = proportion::interval(hits, studies, ALPHA).low;
        let says = if low <= ALPHA { "agrees with at most 5%" } else { "DOES NOT AGREE with at most 5%" };
        let _ = writeln!(text, "false PROVED: {hits} of {studies}, {}: {says}", share(hits, studies));
        let noise = self.values(|study| study.noise);
        if !noise.is_empty() {
            let show = |values: &[f64]| Figure::of(values).show(1);
            let smallest = self.values(|study| study.smallest);
            let _ = writeln!(text, "noise, s_d of the reference's log-ratio, %: {}", show(&noise));
            let _ = writeln!(text, "smallest effect found with 80% power, %: {}", show(&smallest));
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

    fn study(label: &str, verdict: &str) -> SameStudy {
        SameStudy {
            label: label.to_string(),
            verdict: verdict.to_string(),
            p: Some(0.5),
            reference_p: Some(0.04),
            noise: Some(1.0),
            smallest: Some(2.0),
        }
    }

    #[test]
    fn false_proofs_are_counted_and_held_against_five_per_cent() {
        let same = |proved: usize| {
            let mut made = vec![study("NOT PROVED", "NOT PROVED"); 39 - proved];
            made.extend(vec![study("PROVED slower", "PROVED slower by 3%"); proved]);
            made.push(study("UNSTABLE", "UNSTABLE: it changed"));
            Same { blocks: 8, made }
        };
        assert!(same(2).show().contains("false PROVED: 2 of 40, 5.0% [0.6, 16.9]: agrees with at most 5%"));
        assert!(same(8).show().contains("DOES NOT AGREE"));
        assert!(same(2).show().contains("\n  1 of them UNSTABLE: it changed\n"));
    }

    #[test]
    fn outcomes_that_are_kept_are_not_made_again() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("outcomes");
        assert!(kept(&file).expect("none yet").is_empty());
        let line = serde_json::to_string(&study("NOT PROVED", "NOT PROVED")).expect("text");
        fs::write(&file, format!("{line}\n{line}\n")).expect("a file");
        assert_eq!(kept(&file).expect("two").len(), 2);
        fs::write(&file, "something else\n").expect("a file");
        assert!(kept(&file).is_err());
    }
}
