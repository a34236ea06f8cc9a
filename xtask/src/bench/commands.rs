//! Commands whose truth is known: what `plumb study` says of two that are the same, and of two of
//! which one does more.
//!
//! The command is a loop of awk, sized to last some 20 ms here. An argument that it does not read
//! tells the arms of the A/A studies apart, so that whatever they prove is false. In the others one
//! arm has so many per cent more turns. Each study is a process of the program beside this one, on
//! the settings that a user has: what is counted is what a user would read.
//!
//! Limits: the rates are of this machine and of what else ran on it; the intervals (Clopper and
//! Pearson) say how far the numbers reach. A per cent more turns is a little less than a per cent
//! more time, because of awk's own start.

use anyhow::Context;
use clap::Args;
use plumb_events::now;
use plumb_proof::interval::Interval;
use plumb_proof::proportion::interval;
use plumb_units::median;
use std::process::Command;

/// Length of one run, seconds.
const SECONDS: f64 = 0.02;
/// Per cent of turns that one arm has more.
const MORE: [u64; 3] = [2, 5, 10];

#[derive(Debug, Args)]
pub struct Options {
    /// A/A studies, whose truth is no difference.
    #[arg(long, default_value_t = 60)]
    studies: u64,
    /// Studies of each known difference.
    #[arg(long, default_value_t = 20)]
    pub(super) known: u64,
    /// Blocks in each of the studies.
    #[arg(long, default_value_t = 10)]
    pub(super) blocks: u64,
    /// Instead: one command twice, by hyperfine and by plumb, also while the machine gets busy;
    /// takes hyperfine's path
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "hyperfine")]
    pub(super) beside_hyperfine: Option<String>,
}

/// The first claim's verdict, and the smallest effect that the study would have found.
pub(super) struct Said {
    pub(super) verdict: String,
    floor: Option<f64>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let turns = turns()?;
    println!("{turns} turns of a loop last about {} ms; {} blocks a study", SECONDS * 1e3, options.blocks);
    let mut equal = Vec::new();
    for number in 0..options.studies {
        equal.push(study(&looped(turns, "{arm}"), "arm=1,2", options, number)?);
    }
    let differs = |said: &&Said| said.verdict.starts_with("PROVED") && !said.verdict.contains("EQUAL");
    report("A/A: a difference was proved", equal.iter().filter(differs).count(), equal.len());
    for more in MORE {
        let factor = format!("turns={turns},{}", turns + turns * more / 100);
        let mut known = Vec::new();
        for number in 0..options.known {
            known.push(study(
                "awk 'BEGIN{for(i=0;i<{turns};i++)x+=i}'",
                &factor,
                options,
                1000 * more + number,
            )?);
        }
        let slower = known.iter().filter(|said| said.verdict.contains("slower")).count();
        report(&format!("{more}% more turns: PROVED slower"), slower, known.len());
        let floors: Vec<f64> = known.iter().filter_map(|said| said.floor).collect();
        let floor = 100.0 * median(&floors);
        println!("    the median study said that it finds {floor:.1}% with 80% power");
    }
    Ok(())
}

/// A loop of so many turns, with an argument that it does not read.
pub(super) fn looped(turns: u64, arm: &str) -> String {
    format!("awk -v arm={arm} 'BEGIN{{for(i=0;i<{turns};i++)x+=i}}'")
}

pub(super) fn report(what: &str, found: usize, of: usize) {
    let Interval { low, high } = interval(found, of, 0.05);
    println!(
        "{what} in {found} of {of} ({:.0}%, 95% interval {:.0}% to {:.0}%)",
        found as f64 / of.max(1) as f64 * 100.0,
        low * 100.0,
        high * 100.0
    );
}

/// As many turns as last so long here.
pub(super) fn turns() -> anyhow::Result<u64> {
    const TRIED: u64 = 1_000_000;
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let begin = now();
        let program = format!("BEGIN{{for(i=0;i<{TRIED};i++)x+=i}}");
        anyhow::ensure!(
            Command::new("awk").arg(program).status().context("starting awk")?.success(),
            "awk failed"
        );
        least = least.min(now().saturating_sub(begin).seconds());
    }
    Ok((TRIED as f64 * SECONDS / least) as u64)
}

pub(super) fn study(command: &str, factor: &str, options: &Options, seed: u64) -> anyhow::Result<Said> {
    let program = std::env::current_exe()?.with_file_name("plumb");
    anyhow::ensure!(program.is_file(), "{}: build it first: cargo build --release", program.display());
    let directory = std::env::temp_dir().join(format!("plumb-bench-commands-{}", std::process::id()));
    let output = Command::new(program)
        .args(["study", "--command", command, "--factor", factor, "--json", "--blocks"])
        .arg(options.blocks.to_string())
        .args(["--seed", &seed.to_string(), "--bundle"])
        .arg(&directory)
        .output()?;
    let _ = std::fs::remove_dir_all(&directory);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let claim = &said["claims"][0];
    let label = claim["verdict"]["label"].as_str().context("a verdict")?;
    Ok(Said { verdict: label.to_string(), floor: claim["smallest_effect"].as_f64() })
}
