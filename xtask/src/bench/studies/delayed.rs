//! A delay of known size in every request of one arm, which the laboratory has to find.
//!
//! ```text
//! pilot   delay 0 against 100 us a request   ──> elapsed time a microsecond of delay, and the noise
//! study   delay 0 against what makes 5%      ──> blocks by proof's rule of sizes, a verdict, and why
//! ```
//!
//! The pilot measures what a delay costs instead of deriving it from a number of requests, because
//! sessions that work side by side hide a part of it. Here requests are waited for one at a time
//! (`filesystemio_options = directio`, one server), so that nearly all of it shows.

use super::Options;
use super::laboratory::Laboratory;
use anyhow::Context;
use plumb_lab::analysis::result::{Analysis, JudgedClaim, Why, WhyPart};
use plumb_proof::effect::log_ratio;
use plumb_proof::noise::{Goal, blocks_for};
use plumb_units::Nanos;
use std::fmt::Write as _;

/// The slowdown to be found, per cent.
const SLOWDOWN: f64 = 5.0;
/// What is put before each request of the pilot.
const PILOT_DELAY: Nanos = Nanos(100_000);
/// Blocks of the pilot: the noise is then known within a fifth or so.
const PILOT_BLOCKS: usize = 12;
/// The most that a study of this bench takes.
const BLOCKS_MAX: usize = 60;
const ALPHA: f64 = 0.05;
const POWER: f64 = 0.95;
/// Parts of the difference that are shown.
const PARTS_MAX: usize = 6;

/// What the pilot found, and the study said.
pub(super) struct Delayed {
    /// Median elapsed time without a delay.
    elapsed: Nanos,
    /// The delay of a request that makes the slowdown.
    delay: Nanos,
    /// Elapsed time that the pilot's delay added, as a share of it for each request; the number of
    /// requests whose delay shows.
    requests: f64,
    /// Standard deviation of a comparison, a log-ratio.
    noise: f64,
    /// Blocks by the rule, and those that were made.
    blocks: (usize, usize),
    claim: JudgedClaim,
}

/// Makes both studies.
pub(super) fn run(options: &Options, laboratory: &Laboratory) -> anyhow::Result<Delayed> {
    let pilot = laboratory.study(&text(options, PILOT_DELAY, PILOT_BLOCKS), options.seed, "pilot")?;
    let (without, with) = (median(&pilot, 0)?, median(&pilot, 1)?);
    let requests = (with - without) * 1e9 / PILOT_DELAY.0 as f64;
    anyhow::ensure!(
        requests > 0.0,
        "a delay of {PILOT_DELAY} a request added nothing to {without:.4} s: {}",
        pilot.claims[0].verdict
    );
    let delay = Nanos((without * SLOWDOWN / 100.0 * 1e9 / requests).round().max(1.0) as u64);
    let noise = pilot.floor.as_ref().context("the pilot has no noise floor")?.floor.deviation;
    let goal = Goal { effect: log_ratio(SLOWDOWN), deviation: noise, alpha: ALPHA, power: POWER };
    let wanted = blocks_for(&goal, options.seed);
    let made = wanted.min(BLOCKS_MAX);
    let mut study = laboratory.study(&text(options, delay, made), options.seed + 1, "injected delay")?;
    Ok(Delayed {
        elapsed: Nanos((without * 1e9) as u64),
        delay,
        requests,
        noise,
        blocks: (wanted, made),
        claim: study.claims.remove(0),
    })
}

/// Median elapsed seconds of an arm.
fn median(study: &Analysis, arm: usize) -> anyhow::Result<f64> {
    study.arms[arm].median.context("no block of the pilot came to its end")
}

fn text(options: &Options, delay: Nanos, blocks: usize) -> String {
    format!(
        r#"name = "injected-delay"
title = "A delay before every request"
question = "Is a delay of known size found?"
workload = "large-sort"
rows = {}
blocks = {blocks}

[settings]
parallel_degree = 1
filesystemio_options = "directio"
sort_area_size = "256K"

[[factor]]
name = "delay"
setting = "debug_request_delay"
levels = [0, {}]

[[claim]]
name = "delay"
text = "A delay before every request makes it slower."
factor = "delay"
from = 0
to = {}
expect = "slower"
"#,
        options.delayed_rows, delay.0, delay.0
    )
}

impl Delayed {
    /// What was put in, what was seen, and where it shows.
    pub(super) fn show(&self) -> String {
        let (wanted, made) = self.blocks;
        let mut text = format!(
            "injected delay: {} before each request, for {SLOWDOWN}% of {} (the delay of {:.0} requests shows)\n",
            self.delay, self.elapsed, self.requests
        );
        let _ = writeln!(
            text,
            "noise of a comparison {:.1}%: {wanted} blocks find it with {:.0}% power; {made} were made",
            100.0 * self.noise,
            100.0 * POWER
        );
        let _ = writeln!(text, "verdict: {}", self.claim.verdict);
        if let Some(effect) = &self.claim.effect {
            let percent = |ratio: f64| format!("{:.1}%", 100.0 * (ratio - 1.0));
            let end = |ratio: Option<f64>| ratio.map_or("open".to_string(), percent);
            let p = self.claim.p.map_or("unknown".to_string(), |p| format!("{p:.2e}"));
            let _ = writeln!(
                text,
                "effect: {} [{}, {}] at {:.0}%, p = {p}",
                percent(effect.ratio),
                end(effect.low),
                end(effect.high),
                100.0 * effect.confidence
            );
        }
        for reason in &self.claim.reasons {
            let _ = writeln!(text, "  {reason}");
        }
        self.claim.why.iter().for_each(|why| text.push_str(&show_why(why)));
        text
    }
}

/// The parts that changed most, the largest first.
fn show_why(why: &Why) -> String {
    let added = |part: &WhyPart| part.treatment_ns as i128 - part.reference_ns as i128;
    let millis = |nanos: i128| format!("{:+.3} ms", nanos as f64 / 1e6);
    let whole = i128::from(why.treatment_elapsed_ns) - i128::from(why.reference_elapsed_ns);
    let mut text = format!("why: {} of elapsed time, of which\n", millis(whole));
    let mut parts: Vec<&WhyPart> = why.parts.iter().collect();
    parts.sort_by_key(|part| -added(part).abs());
    for part in parts.into_iter().take(PARTS_MAX) {
        let _ = writeln!(text, "  {:<32} {:>12}", part.name, millis(added(part)));
    }
    text
}
