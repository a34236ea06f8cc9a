//! Adds a known delay to every request of an arm, and counts how often the laboratory finds it.
//!
//! ```text
//! pilot     delay 0 against 100 us a request     ──> elapsed time per microsecond, noise
//! studies   delay 0 against one of 2, 5, 10%     ──> a verdict each, with its explanation
//! ```
//!
//! The pilot measures the cost of a delay. Rejected: deriving it from the number of requests,
//! because parallel sessions hide a part of it. Here one server waits for each request
//! (`filesystemio_options = directio`), so nearly all of it shows.
//!
//! The number of blocks is `proof`'s for 5%. The stated power is a lower bound: it uses the level
//! of the first step of three claims, and the laboratory's levels grow from step to step.

use super::Options;
use super::laboratory::Laboratory;
use super::same::share;
use crate::figure::Figure;
use anyhow::Context;
use plumb_proof::effect::log_ratio;
use plumb_proof::noise::{self, Goal, blocks_for};
use plumb_study::analysis::result::{Analysis, JudgedClaim, Why, WhyPart};
use plumb_units::Nanos;
use std::fmt::Write as _;

/// Slowdowns to find, per cent.
const SLOWDOWNS: [f64; 3] = [2.0, 5.0, 10.0];
/// Index of the slowdown that the studies are sized for.
const SIZED_FOR: usize = 1;
/// Delay before each request of the pilot.
const PILOT_DELAY: Nanos = Nanos(100_000);
/// Blocks of the pilot: enough to know the noise within about a fifth.
const PILOT_BLOCKS: usize = 12;
/// Most blocks of a study of this bench.
const BLOCKS_MAX: usize = 60;
/// Level of the first step of a study with these claims.
const ALPHA: f64 = 0.05 / SLOWDOWNS.len() as f64;
const POWER: f64 = 0.80;
/// Most parts of a difference that are printed.
const PARTS_MAX: usize = 6;

/// Results of the pilot and the studies.
pub(super) struct Delayed {
    /// Median elapsed time without a delay.
    elapsed: Nanos,
    /// Elapsed time added by the pilot, divided by its delay: the number
    /// of requests whose delay shows.
    requests: f64,
    /// Standard deviation of a comparison, a log-ratio.
    noise: f64,
    /// Blocks by the rule, and blocks made.
    blocks: (usize, usize),
    sizes: Vec<Size>,
}

/// A delay, and the verdict of each study on it.
struct Size {
    percent: f64,
    delay: Nanos,
    /// Power, by the pilot's noise.
    stated: f64,
    claims: Vec<JudgedClaim>,
}

/// Runs the pilot and the studies.
pub(super) fn run(options: &Options, laboratory: &Laboratory) -> anyhow::Result<Delayed> {
    let pilot = laboratory.study(&text(options, &[PILOT_DELAY], PILOT_BLOCKS), options.seed, "pilot")?;
    let (without, with) = (median(&pilot, 0)?, median(&pilot, 1)?);
    let requests = (with - without) * 1e9 / PILOT_DELAY.0 as f64;
    anyhow::ensure!(
        requests > 0.0,
        "a delay of {PILOT_DELAY} a request added nothing to {without:.4} s: {}",
        pilot.claims[0].verdict
    );
    let noise = pilot.floor.as_ref().context("the pilot has no noise floor")?.floor.deviation;
    let goal =
        |percent: f64| Goal { effect: log_ratio(percent), deviation: noise, alpha: ALPHA, power: POWER };
    let wanted = blocks_for(&goal(SLOWDOWNS[SIZED_FOR]), options.seed);
    let made = wanted.min(BLOCKS_MAX);
    let mut sizes = SLOWDOWNS.map(|percent| Size {
        percent,
        delay: Nanos((without * percent / 100.0 * 1e9 / requests).round().max(1.0) as u64),
        stated: noise::power_of(&goal(percent), made, options.seed),
        claims: Vec::new(),
    });
    let text = text(options, &sizes.each_ref().map(|size| size.delay), made);
    for number in 1..=options.delayed_studies {
        let label = format!("study of delays {number} of {}", options.delayed_studies);
        let study = laboratory.study(&text, options.seed + u64::from(number), &label)?;
        sizes.iter_mut().zip(study.claims).for_each(|(size, claim)| size.claims.push(claim));
    }
    let elapsed = Nanos((without * 1e9) as u64);
    Ok(Delayed { elapsed, requests, noise, blocks: (wanted, made), sizes: sizes.into() })
}

/// Returns the median elapsed seconds of an arm.
fn median(study: &Analysis, arm: usize) -> anyhow::Result<f64> {
    study.arms[arm].median.context("no block of the pilot came to its end")
}

fn text(options: &Options, delays: &[Nanos], blocks: usize) -> String {
    let mut text = format!(
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
"#,
        options.delayed_rows,
        delays.iter().map(|delay| delay.0.to_string()).collect::<Vec<_>>().join(", ")
    );
    for delay in delays {
        let _ = write!(
            text,
            r#"
[[claim]]
name = "delay-{0}"
text = "A delay before every request makes it slower."
factor = "delay"
from = 0
to = {0}
expect = "slower"
"#,
            delay.0
        );
    }
    text
}

impl Delayed {
    /// Returns the table of delays, verdicts and explanations.
    pub(super) fn show(&self) -> String {
        let (wanted, made) = self.blocks;
        let mut text = format!(
            "a run without a delay: {}, of which the delay of {:.0} requests would show\n\
             noise of a comparison {:.1}%: {wanted} blocks find {}% with {:.0}% power among three claims; {made} were made\n\n\
             {:<22} {:>6}  {:>22}  {:>15}  {:>8}\n",
            self.elapsed,
            self.requests,
            100.0 * self.noise,
            SLOWDOWNS[SIZED_FOR],
            100.0 * POWER,
            "injected",
            "power",
            "PROVED slower",
            "effects",
            "finds"
        );
        self.sizes.iter().for_each(|size| text.push_str(&size.show()));
        text.push_str(
            "power: by the pilot's noise; effects: the typical study's [95% interval]; finds: what the typical study says that\n\
             it finds with 80% power\n",
        );
        if let Some(why) = self.sizes[SIZED_FOR].claims.last().and_then(|claim| claim.why.as_ref()) {
            text.push_str(&show_why(why));
        }
        text
    }
}

impl Size {
    /// `5%: 6.20 us a request    80%    9 of 10, 90.0% [55.5, 99.7]    4.9% [1.0 .. 7.1]    5.4%`
    fn show(&self) -> String {
        let slower = |claim: &&JudgedClaim| claim.verdict.label() == "PROVED slower";
        let found = self.claims.iter().filter(slower).count();
        let percents = |values: Vec<f64>| values.into_iter().map(|share| 100.0 * share).collect::<Vec<_>>();
        let effects =
            self.claims.iter().filter_map(|claim| claim.effect.as_ref()).map(|effect| effect.ratio - 1.0);
        let floors = self.claims.iter().filter_map(|claim| claim.smallest_effect);
        let [effects, floors] =
            [effects.collect(), floors.collect()].map(|shares| Figure::of(percents(shares)));
        format!(
            "{:<22} {:>5.0}%  {:>22}  {:>15}  {:>7.1}%\n",
            format!("{}%: {} a request", self.percent, self.delay),
            100.0 * self.stated,
            share(found, self.claims.len()),
            effects.show(1),
            floors.value
        )
    }
}

/// Returns the parts that changed most, the largest first.
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
