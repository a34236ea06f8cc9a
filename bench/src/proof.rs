//! Measures what studies say falsely, by simulated studies whose truth is known.
//!
//! ```text
//! rows       laws of figures, with a claim, its truth and a promise
//! law        draws the figure of a run
//! simulated  a study of such figures: the product's own plan, pilot, stopping and analysis
//! counted    what the analysis says, compared with the truth
//! said       numbers of sentences: floors, blocks needed, the best level
//! series     steps in series of reports
//! ```
//!
//! A share of N studies has a standard error of sqrt(p (1-p) / N); intervals are those of Clopper
//! and Pearson. A row whose interval has both sides of its bound is open: `--long` repeats it with
//! other seeds and more studies.
//!
//! Limits: laws were chosen to look like machines that mislead comparisons, and fitted to none.

mod contradiction;
mod counted;
mod law;
mod rows;
mod said;
mod series;
mod simulated;
mod table;

use anyhow::Context;
use clap::Args;
use counted::Seen;
use rows::{Counted, Row};
use simulated::Size;
use std::fmt::Write as _;
use std::path::PathBuf;
use table::{Line, Share, Standing, each};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Studies of each law: 400 tell 5% from 8%.
    #[arg(long, default_value_t = 400)]
    studies: usize,
    /// Studies of each law whose share is near its bound, with other seeds; 0 repeats none.
    #[arg(long, default_value_t = 0)]
    long: usize,
    /// Studies of random laws whose pages are searched for contradictions.
    #[arg(long, default_value_t = 5000)]
    pages: usize,
    /// Only rows whose law or group has these words.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Seed of all studies; the same seed gives the same table.
    #[arg(long, default_value_t = 20)]
    seed: u64,
    /// Also write the table into its part of this document.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

impl Options {
    fn wants(&self, group: &str, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| group.contains(only) || name.contains(only))
    }
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let mut text = String::new();
    let mut print = |line: &str| {
        println!("{line}");
        text.push_str(line);
        text.push('\n');
    };
    let mut cell = 0;
    for (group, rows) in rows::groups() {
        let rows: Vec<Row> = rows.into_iter().filter(|row| options.wants(group, &row.of.name)).collect();
        if rows.is_empty() {
            continue;
        }
        print(&format!(
            "\n{group:<46}{:<24}{:>18} bound   proved  unst.  misses (average)",
            "claim", "% counted"
        ));
        for row in &rows {
            cell += 1;
            let mut line = line(row, options.studies, options.seed, cell)?;
            if options.long > 0 && line.standing() != Standing::Kept && !row.named {
                line = self::line(row, options.long, options.seed + 1, cell)?;
            }
            print(&line.to_string());
        }
    }
    if options.wants("", "series") {
        print(&format!("\n{:<46}{:<24}{:>18} bound", "Series of reports", "", "%"));
        series::lines(options.studies, options.seed)?.iter().for_each(|line| print(&line.to_string()));
    }
    if options.wants("", "best") {
        print("");
        said::best(options.studies, options.seed)?.iter().for_each(|line| print(&line.to_string()));
    }
    if options.wants("", "floors") {
        print(&format!("\n{}", said::floors(options.studies, options.seed)?.trim_end()));
    }
    if options.wants("", "contradictions") {
        let (found, of) = contradictions(options)?;
        print(&format!("\nPages with sentences that contradict each other: {} of {of}", found.len()));
        found.iter().take(20).for_each(|one| print(one));
    }
    let Some(path) = &options.document else { return Ok(()) };
    let present = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    std::fs::write(path, replaced(&present, &text)?).with_context(|| path.display().to_string())
}

/// Simulates the studies of a row.
fn line(row: &Row, studies: usize, seed: u64, cell: usize) -> anyhow::Result<Line> {
    let study = row.of.study().with_context(|| row.of.name.clone())?;
    let seen = each(studies, seed, cell, |seed| {
        Ok(row.of.judged(&study, seed)?.map(|analysis| Seen::of(&analysis, &row.of)))
    })?;
    // A study that its pilot refuses says and proves nothing.
    let hits: Vec<bool> = seen.iter().map(|seen| seen.is_some_and(|seen| seen.has(row.counted))).collect();
    let percent = |holds: fn(&Seen) -> bool| {
        let all: Vec<bool> = seen.iter().map(|seen| seen.as_ref().is_some_and(holds)).collect();
        100.0 * Share::counted(&all).found()
    };
    let mut beside = format!(
        " {:>7.1} {:>6.1} {:>7.1} ({:.1})",
        percent(|seen| seen.is_proved),
        percent(|seen| seen.is_unstable),
        percent(|seen| seen.misses),
        percent(|seen| seen.average_misses)
    );
    let size = match row.of.size {
        Size::Blocks(blocks) => blocks.to_string(),
        Size::Decided(most) => format!("to {most}"),
        Size::Find(share) => {
            let ran: Vec<u64> = seen.iter().flatten().map(|seen| seen.blocks).collect();
            let mean = ran.iter().sum::<u64>() as f64 / ran.len().max(1) as f64;
            write!(beside, "; {mean:.0} blocks, {} refused", seen.len() - ran.len())?;
            format!("find {:.0}%", 100.0 * share)
        }
    };
    let what = match row.counted {
        Counted::False => row.of.claims[0].expects.to_string(),
        Counted::Proved => format!("{}: proved", row.of.claims[0].expects),
        Counted::Holds => format!("{}: holds", row.of.claims[0].expects),
        Counted::Misses => "interval misses".to_string(),
        Counted::Place => "\"about block N\"".to_string(),
        Counted::Levels => "not \"at some levels\"".to_string(),
        Counted::Enough => "\"these blocks prove\"".to_string(),
    };
    let (name, bound, named) = (row.of.name.clone(), Some(row.bound), row.named);
    Ok(Line { name, size, what, named, beside, ..Line::of(&hits, bound) })
}

/// Returns the contradictions in pages of studies of all laws in turn, and the number of pages.
fn contradictions(options: &Options) -> anyhow::Result<(Vec<String>, usize)> {
    let rows: Vec<Row> = rows::groups().into_iter().flat_map(|(_, rows)| rows).collect();
    let studies: Vec<_> = rows.iter().map(|row| row.of.study()).collect::<anyhow::Result<_>>()?;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = each(options.pages, options.seed, 4000, |seed| {
        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % rows.len();
        let analysis = rows[at].of.judged(&studies[at], seed)?;
        Ok(analysis.and_then(|analysis| {
            let found = contradiction::first(&analysis)?;
            Some(format!(
                "{}, {} blocks, seed {seed}: {found}",
                rows[at].of.name, analysis.design.blocks_used
            ))
        }))
    })?;
    Ok((found.into_iter().flatten().collect(), options.pages))
}

/// Marks of the table's part of the document.
const MARKS: [&str; 2] = ["<!-- simulated studies -->\n", "<!-- end of simulated studies -->\n"];

/// Returns the document with the table in its part.
fn replaced(present: &str, table: &str) -> anyhow::Result<String> {
    let (before, rest) = present.split_once(MARKS[0]).context("the document has no part for the table")?;
    let (_, after) = rest.split_once(MARKS[1]).context("the part of the table has no end")?;
    Ok(format!("{before}{}```text\n{}\n```\n{}{after}", MARKS[0], table.trim(), MARKS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_study_whose_page_does_not_contradict_itself() {
        for (_, rows) in rows::groups() {
            for row in rows.iter().filter(|row| row.of.blocks() <= 30) {
                let study = row.of.study().expect(&row.of.name);
                if let Some(analysis) = row.of.judged(&study, 3).expect("a study") {
                    let found = contradiction::first(&analysis);
                    assert_eq!(found, None, "{}", row.of.name);
                }
            }
        }
    }

    #[test]
    fn what_is_false_is_counted_and_what_is_true_is_not() {
        let (groups, name) = (rows::groups(), "stalls, 10% slower");
        let row = groups.iter().flat_map(|(_, rows)| rows).find(|row| row.of.name == name).expect(name);
        let analysis = row.of.judged(&row.of.study().expect("a text"), 1).expect("a study").expect("blocks");
        assert!(Seen::of(&analysis, &row.of).is_proved);
        assert!(!counted::says_falsely(&analysis, &row.of));
        let mut lies = simulated::Simulated::two(
            "",
            Size::Blocks(10),
            "slower",
            simulated::Truth::percent(-1.0),
            |_| 0.0,
        );
        assert!(counted::says_falsely(&analysis, &lies));
        lies.claims[0].truth = simulated::Truth::percent(0.0);
        assert!(counted::says_falsely(&analysis, &lies));
    }

    #[test]
    fn the_table_takes_its_part_of_the_document() {
        let present = format!("before\n{}old\n{}after\n", MARKS[0], MARKS[1]);
        let new = replaced(&present, "one\n").expect("a part");
        assert_eq!(new, format!("before\n{}```text\none\n```\n{}after\n", MARKS[0], MARKS[1]));
        assert!(replaced("no part", "one").is_err());
    }
}
