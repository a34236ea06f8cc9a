//! Runs `plumb study` on commands whose difference is known: none (A/A), or a few per cent.
//!
//! The command is a loop of awk that lasts about 20 ms. An unused argument distinguishes the arms
//! of an A/A study, so each proof there is false. In the other studies one arm makes more turns.
//! Each study is a process of plumb with default settings, so the counts are those of a user.
//!
//! Limits: the rates hold for this machine and its other load; the Clopper-Pearson intervals give
//! their error. 1% more turns take slightly less than 1% more time, because awk has to start.

use anyhow::Context;
use clap::Args;
use plumb_events::now;
use plumb_proof::interval::Interval;
use plumb_proof::proportion::interval;
use plumb_units::median;
use std::process::Command;

/// Target length of a run, seconds.
const SECONDS: f64 = 0.02;
/// Additional turns of one arm, per cent.
const MORE: [u64; 3] = [2, 5, 10];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of A/A studies to make.
    #[arg(long, default_value_t = 60)]
    studies: u64,
    /// Number of studies of each known difference.
    #[arg(long, default_value_t = 20)]
    pub(super) known: u64,
    /// Number of blocks of each study.
    #[arg(long, default_value_t = 10)]
    pub(super) blocks: u64,
    /// Instead compare one command with itself, by hyperfine and plumb, also under a
    /// starting load; takes hyperfine's path
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "hyperfine")]
    pub(super) beside_hyperfine: Option<String>,
}

/// Result of a study: the first claim's verdict, and the smallest effect that it could find.
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

/// Returns a loop of `turns` turns, with an unused argument.
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

/// Returns the number of turns that last [`SECONDS`] on this machine.
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
