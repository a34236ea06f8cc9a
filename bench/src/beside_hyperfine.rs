//! Compares a command with itself by hyperfine and by plumb, on an idle machine and on one that
//! becomes busy half way.
//!
//! Both tools get the same loop of awk twice, with an unused argument as the only difference.
//! hyperfine makes all runs of one command, then all of the other; plumb interleaves them in random
//! order. The load is a loop on every processor. It starts after half of the tool's undisturbed
//! time.
//!
//! hyperfine prints `A ran 1.95 +- 0.12 times faster than B`. That is counted as a difference if
//! the ratio minus its deviation is above 1. hyperfine makes no test and states no rate of error
//! for that line. The median ratio gives the size of the false difference.

use super::commands::{Options, Said, looped, report, study, turns};
use anyhow::Context;
use plumb_events::now;
use plumb_units::{Nanos, median};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A loop on each processor; dropping it ends them.
struct Load(Vec<Child>);

impl Load {
    fn start() -> anyhow::Result<Load> {
        let mut load = Load(Vec::new());
        for _ in 0..thread::available_parallelism()?.get() {
            load.0.push(Command::new("awk").arg("BEGIN{while(1)x++}").stdin(Stdio::null()).spawn()?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a tool, and starts a load on the machine after half of the tool's usual time.
fn disturbed<T: Send>(usual: Nanos, tool: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let running = scope.spawn(tool);
        thread::sleep(Duration::from_nanos(usual.0 / 2));
        let load = Load::start()?;
        let said = running.join().map_err(|_| anyhow::anyhow!("the tool's thread ended"))?;
        drop(load);
        said
    })
}

/// hyperfine's summary: time of the slower over the faster, and its deviation.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    of: f64,
    deviation: f64,
}

fn hyperfine(program: &str, turns: u64, runs: u64) -> anyhow::Result<Ratio> {
    let output = std::env::temp_dir().join(format!("plumb-bench-hyperfine-{}.json", std::process::id()));
    let commands = [1, 2].map(|arm| looped(turns, &arm.to_string()));
    let ended = Command::new(program)
        .args(["-N", "--style", "none", "--warmup", "1", "--runs", &runs.to_string(), "--export-json"])
        .arg(&output)
        .args(&commands)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{program}: install it with `cargo install hyperfine --version 1.20.0`"))?;
    anyhow::ensure!(ended.success(), "{program} ended with {ended}");
    let said: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&output)?)?;
    std::fs::remove_file(&output)?;
    let figure = |result: usize, name: &str| {
        said["results"][result][name].as_f64().with_context(|| format!("hyperfine gave no {name}"))
    };
    let means = [figure(0, "mean")?, figure(1, "mean")?];
    let deviations = [figure(0, "stddev")?, figure(1, "stddev")?];
    let slower = usize::from(means[1] > means[0]);
    let of = means[slower] / means[1 - slower];
    let parts = [0, 1].map(|one: usize| deviations[one] / means[one]);
    Ok(Ratio { of, deviation: of * parts[0].hypot(parts[1]) })
}

pub(super) fn run(options: &Options, program: &str) -> anyhow::Result<()> {
    let turns = turns()?;
    // A block has two runs of the first command and one of the second; hyperfine gets the mean.
    let runs = options.blocks * 3 / 2;
    println!("{turns} turns of a loop; hyperfine {runs} runs of each, plumb {} blocks", options.blocks);
    let plumb = |number: u64| study(&looped(turns, "{arm}"), "arm=1,2", options, number);
    let timed = |tool: &mut dyn FnMut() -> anyhow::Result<()>| {
        let begin = now();
        tool().map(|()| now().saturating_sub(begin))
    };
    let usual =
        [timed(&mut || hyperfine(program, turns, runs).map(|_| ()))?, timed(&mut || plumb(0).map(|_| ()))?];
    println!("undisturbed they take {:.1} s and {:.1} s", usual[0].seconds(), usual[1].seconds());
    for busy in [false, true] {
        println!("\n{}", if busy { "a load on every processor from half way on" } else { "no load of ours" });
        let (mut ratios, mut said) = (Vec::new(), Vec::new());
        for number in 1..=options.known {
            let (fine, study) = (|| hyperfine(program, turns, runs), || plumb(number));
            ratios.push(if busy { disturbed(usual[0], fine)? } else { fine()? });
            said.push(if busy { disturbed(usual[1], study)? } else { study()? });
        }
        show(&ratios, &said);
    }
    Ok(())
}

fn show(ratios: &[Ratio], said: &[Said]) {
    let apart = ratios.iter().filter(|ratio| ratio.of - ratio.deviation > 1.0).count();
    report("hyperfine: one ran faster by more than its +-", apart, ratios.len());
    let typical = |figure: fn(&Ratio) -> f64| median(&ratios.iter().map(figure).collect::<Vec<_>>());
    if let Some(most) = ratios.iter().max_by(|one, two| one.of.total_cmp(&two.of)) {
        println!(
            "    the median summary: {:.2} +- {:.2} times faster; the most: {:.2} +- {:.2}",
            typical(|ratio| ratio.of),
            typical(|ratio| ratio.deviation),
            most.of,
            most.deviation
        );
    }
    for label in ["PROVED faster", "PROVED slower", "MIXED", "UNSTABLE", "NOT PROVED"] {
        let of_label = said.iter().filter(|said| said.verdict == label).count();
        report(&format!("plumb: {label}"), of_label, said.len());
    }
}
