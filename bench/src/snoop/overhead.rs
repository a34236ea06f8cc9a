//! The cost of a trace to the traced program: a load of about 50,000 requests a second with fixed
//! work between them, alone and under `plumb snoop`, as a study of `plumb study`.
//!
//! The study runs the load alone twice in each block, so its floor is that of an A/A study. The
//! load measures itself, so that starting and ending a trace is no part of it. Two figures are
//! judged: the time of the load, which other processes change, and its processor time.

use super::load;
use anyhow::{Context, ensure};
use plumb_units::RowCount;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Requests a second of the load alone.
const RATE: f64 = 50_000.0;
const REQUESTS: u64 = 100_000;
/// Turns and requests of the calibration of the work.
const TRIED: [u64; 2] = [5_000, 20_000];

pub(super) fn run(room: &Path, blocks: u64) -> anyhow::Result<()> {
    let program = std::env::current_exe()?.with_file_name("plumb");
    ensure!(program.is_file(), "{}: build it first: cargo build --release", program.display());
    let file = load::make_file(room)?;
    let turns = turns(&file)?;
    println!(
        "{} requests of 4 KiB at about {} a second, alone and under `plumb snoop --quiet`; {blocks} blocks",
        RowCount(REQUESTS),
        RowCount(RATE as u64)
    );
    let study = room.join("overhead.toml");
    std::fs::write(&study, text(room, &program, Load { turns, blocks })?)?;
    let bundle = room.join("overhead");
    let output = Command::new(&program)
        .args(["study".as_ref(), study.as_os_str(), "--path".as_ref(), room.as_os_str()])
        .args(["--json".as_ref(), "--bundle".as_ref(), bundle.as_os_str()])
        .output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    println!("\n| figure | snoop over alone | 95% interval | verdict |\n|---|---|---|---|");
    for claim in said["claims"].as_array().context("claims")? {
        let share = |field: &str| claim["effect"][field].as_f64().map_or("?".to_string(), percent);
        let name = claim["name"].as_str().unwrap_or_default();
        let verdict = claim["verdict"]["line"].as_str().unwrap_or_default();
        println!("| {name} | {} | {} to {} | {verdict} |", share("ratio"), share("low"), share("high"));
    }
    let floor = said["floor"]["robust_deviation"].as_f64().unwrap_or_default();
    println!("| the load alone, twice in a block (A/A) | {:.1}% deviation | | |", floor * 100.0);
    Ok(())
}

fn percent(ratio: f64) -> String {
    format!("{:+.1}%", (ratio - 1.0) * 100.0)
}

/// Runs the load in a process of its own; returns its seconds.
fn seconds(file: &Path, turns: u64, requests: u64) -> anyhow::Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .args(["snoop".as_ref(), "--load-file".as_ref(), file.as_os_str()])
        .args(["--load-turns", &turns.to_string(), "--load-requests", &requests.to_string()])
        .output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    said["cpu_seconds"].as_f64().context("its seconds")
}

/// Returns the turns of work after each request with which the load has its rate.
fn turns(file: &Path) -> anyhow::Result<u64> {
    let [turns, requests] = TRIED;
    let least = |turns| {
        let tries = (0..3).map(|_| seconds(file, turns, requests));
        tries
            .collect::<anyhow::Result<Vec<f64>>>()
            .map(|tries| tries.into_iter().fold(f64::INFINITY, f64::min))
    };
    let (without, with) = (least(0)?, least(turns)?);
    let wanted = requests as f64 / RATE - without;
    Ok((wanted / (with - without).max(1e-9) * turns as f64).max(0.0) as u64)
}

#[derive(Debug, Clone, Copy)]
struct Load {
    turns: u64,
    blocks: u64,
}

/// Returns the text of the study.
fn text(room: &Path, program: &Path, load: Load) -> anyhow::Result<String> {
    let Load { turns, blocks } = load;
    let own = std::env::current_exe()?;
    let script = format!(
        "#!/bin/sh\nwatch=$1\nshift\nif [ $watch = snoop ]; then exec {} snoop --quiet -- \"$@\"; fi\nexec \"$@\"\n",
        program.display()
    );
    std::fs::write(room.join("watch.sh"), script)?;
    let mut text = format!(
        "name = \"snoop-overhead\"\ntitle = \"The cost of a trace\"\n\
         question = \"How much slower is a program under plumb snoop?\"\ntarget = \"command\"\n\
         blocks = {blocks}\nstatistic = \"seconds\"\n\n[command]\n\
         run = \"sh {{path}}/watch.sh {{watch}} {own} bench snoop --load-file {{path}}/load \
         --load-requests {REQUESTS} --load-turns {turns} --load-result {{path}}/result\"\n\
         files = [\"{{path}}/watch.sh\"]\n\n",
        own = own.display()
    );
    for (name, pointer) in [("seconds", "/seconds"), ("load_cpu", "/cpu_seconds")] {
        let _ = writeln!(
            text,
            "[measure.{name}]\njson = \"{pointer}\"\nfrom = \"{{path}}/result\"\nbetter = \"lower\"\nunit = \"s\"\n"
        );
    }
    text += "[[factor]]\nname = \"watch\"\nlevels = [\"alone\", \"snoop\"]\n";
    for name in ["seconds", "load_cpu"] {
        let _ = writeln!(
            text,
            "\n[[claim]]\nname = \"{name}\"\ntext = \"A traced load takes as long.\"\nfactor = \"watch\"\n\
             from = \"alone\"\nto = \"snoop\"\nstatistic = \"{name}\"\nexpect = \"equal within 3%\""
        );
    }
    Ok(text)
}
