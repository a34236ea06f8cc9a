//! Simulates situations that are known to mislead comparisons, as whole studies of one treatment:
//! records, analysis, report.
//!
//! A situation has a law of its runs' logarithms, a claim, and the true effect: typical (the
//! pseudo-median of log t - log a) and average. A study is false if a verdict, an equality, a
//! margin, a MIXED, or the outcome of the claim is wrong. An effect exactly on a bound is on
//! neither side of it. Noise is 3% a run unless a row says otherwise. A study contradicts itself if
//! two of its sentences cannot both be true, whatever the law.

use super::simulation::{ERROR_MAX, Scale, Share, each};
use super::whole::{environment, held, record};
use plumb_proof::random::Generator;
use plumb_proof::verdict::{Side, TOO_LARGE, Verdict};
use plumb_run::embedded::Engine;
use plumb_study::analysis::analyse;
use plumb_study::analysis::result::{Analysis, ClaimOutcome};
use plumb_study::bundle::{Contents, EndFile, Ended, RunRecord, Settled, Stop};
use plumb_study::canary::Canary;
use plumb_study::definition;
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_units::median;
use std::fmt::Write as _;

/// Standard deviation of a run's logarithm.
const NOISE: f64 = 0.03;
/// Length of a stall, as a logarithm: ln 3. Below it, the share of runs with a stall.
const STALL: f64 = 1.098_612_288_668_109_8;
const STALLED: f64 = 0.1;
/// Deviation of the exponential tail of a skewed treatment. Below it, its typical effect: the
/// pseudo-median of 0.1 times an exponential variable plus the difference of two normal ones of
/// 3%, from eight million pairs.
const TAIL: f64 = 0.1;
const TAIL_TYPICALLY: f64 = 0.085_62;

/// Returns the logarithms of a study's runs by block and slot: reference, treatment, reference.
/// The second argument has each block's slots in their order of execution.
type Law = fn(&Situation, &[Vec<usize>], &mut Generator) -> Vec<[f64; 3]>;

/// A situation and its truth.
#[derive(Clone, Copy)]
pub(super) struct Situation {
    name: &'static str,
    blocks: usize,
    expects: &'static str,
    law: Law,
    /// A parameter of the law.
    size: f64,
    /// Typical and average effect, as logarithms.
    truth: [f64; 2],
}

const SLOWER_5: f64 = 0.048_790_164_169_432;
const SLOWER_10: f64 = 0.095_310_179_804_324_9;
const NO_EFFECT: [f64; 2] = [0.0; 2];
/// Average effect if a tenth of the runs takes three times as long, as a logarithm: ln 1.2.
const A_TENTH_STALLS: f64 = 0.182_321_556_793_954_6;

/// Returns a situation. The treatment's effect is the typical truth unless the law makes it.
fn row(
    name: &'static str,
    blocks: usize,
    expects: &'static str,
    law: Law,
    size: f64,
    truth: [f64; 2],
) -> Situation {
    Situation { name, blocks, expects, law, size, truth }
}

/// Returns the situations of all kinds, in the order of the page.
fn situations() -> Vec<Situation> {
    [of_stalls(), of_dependence(), of_rare_runs(), of_bounds(), of_laws()].concat()
}

/// Stalls in one arm or both, with and without an effect.
fn of_stalls() -> Vec<Situation> {
    let mut rows = Vec::new();
    for blocks in [10, 24] {
        rows.push(row("even noise, no effect", blocks, "differs", even, 0.0, NO_EFFECT));
        rows.push(row("stalls in both arms, no effect", blocks, "differs", stalls, 0.0, NO_EFFECT));
    }
    for blocks in [10, 30] {
        rows.push(row("stalls in both arms, 5% slower", blocks, "slower", stalls, 0.0, [SLOWER_5; 2]));
    }
    rows.push(row("stalls in both arms, 10% slower", 10, "slower", stalls, 0.0, [SLOWER_10; 2]));
    for blocks in [16, 30] {
        let truth = [0.008_9, A_TENTH_STALLS];
        rows.push(row("stalls in one arm", blocks, "equal within 5%", one_arm, 0.0, truth));
        rows.push(row("stalls in one arm", blocks, "not slower by 5%", one_arm, 0.0, truth));
    }
    rows.push(row("even noise, 5% slower", 16, "equal within 5%", even, 0.0, [SLOWER_5; 2]));
    rows.push(row("even noise, 5% slower", 16, "not slower by 5%", even, 0.0, [SLOWER_5; 2]));
    rows
}

/// An arm with a tail, runs that depend on those before, and a canary with another noise.
fn of_dependence() -> Vec<Situation> {
    let mut rows = Vec::new();
    for blocks in [6, 10, 24, 60] {
        rows.push(row("a skewed arm, typically equal", blocks, "differs", skewed, 0.0, [0.0, f64::NAN]));
    }
    for (blocks, size) in [(10, 0.9), (24, 0.9), (60, 0.9), (24, 0.5), (60, 0.5)] {
        let name =
            if size > 0.6 { "an effect that wanders, AR 0.9" } else { "an effect that wanders, AR 0.5" };
        rows.push(row(name, blocks, "differs", wandering, size, NO_EFFECT));
    }
    for (name, blocks, size) in [
        ("the run after the treatment 0.67 sigma slower", 10, 0.67),
        ("the run after the treatment 0.67 sigma slower", 30, 0.67),
        ("the run after the treatment 0.5 sigma slower", 60, 0.5),
        ("the run after the treatment 0.33 sigma slower", 60, 0.33),
        ("the run after the treatment 0.33 sigma slower", 100, 0.33),
    ] {
        rows.push(row(name, blocks, "differs", carried_over, size, NO_EFFECT));
    }
    for blocks in [6, 10] {
        let half = [0.5f64.ln(); 2];
        rows.push(row("-50%, 1% noise, a canary of its own", blocks, "faster", beside_canary, 0.01, half));
    }
    rows
}

/// Few runs that take much longer.
fn of_rare_runs() -> Vec<Situation> {
    let mut rows = Vec::new();
    for (blocks, expects) in [(30, "equal within 5%"), (60, "equal within 5%"), (30, "not slower by 3%")] {
        let truth = [0.000_7, 1.09f64.ln()];
        rows.push(row("1% of one arm's runs take 10 times as long", blocks, expects, rare, 0.01, truth));
    }
    let truth = [0.004, 1.1f64.ln()];
    rows.push(row("5% of one arm's runs take 3 times as long", 30, "equal within 5%", some, 0.05, truth));
    rows.push(row(
        "0.5% of both arms' runs take 10 times as long",
        24,
        "differs",
        rare_in_both,
        0.005,
        NO_EFFECT,
    ));
    rows
}

/// Effects at a bound, and a clock that tells few values apart.
fn of_bounds() -> Vec<Situation> {
    let mut rows = Vec::new();
    for (blocks, size) in [(24, SLOWER_5), (10, SLOWER_5)] {
        let name = "stalls in both arms, exactly at the bound";
        rows.push(row(name, blocks, "slower by at least 5%", stalls, 0.0, [size; 2]));
    }
    rows.push(row("stalls in both arms, 10% faster", 24, "differs", stalls, 0.0, [-SLOWER_10; 2]));
    let clock = |low: f64, high: f64| [(high / low).ln(); 2];
    for (name, blocks, truth, size) in [
        ("a clock of 10, 96 and 104, noise 0.3%", 10, clock(96.0, 104.0), 0.003),
        ("a clock of 10, 96 and 102, noise 1%", 12, clock(96.0, 102.0), 0.01),
        ("a clock of 10, 94 and 96, noise 1%", 12, clock(94.0, 96.0), 0.01),
    ] {
        rows.push(row(name, blocks, "equal within 5%", clocked, size, truth));
    }
    rows
}

/// Laws of runs that no test assumes.
fn of_laws() -> Vec<Situation> {
    let mut rows = Vec::new();
    for (name, law) in [
        ("lognormal, sigma 1, in both arms", lognormal as Law),
        ("Pareto 1.5 in both arms", pareto),
        ("two modes, half and half, in both arms", two_modes),
        ("counts of mean 20 in both arms", counts),
        ("a drift of 3% within each block", drifting),
        ("noise that resembles the run before, 0.8", resembling),
    ] {
        for blocks in [10, 24] {
            rows.push(row(name, blocks, "differs", law, 0.0, NO_EFFECT));
        }
        rows.push(row(name, 16, "equal within 5%", law, 0.0, NO_EFFECT));
    }
    rows.push(row("26% faster in 2 of 12 blocks only", 12, "faster", warming, -0.3, NO_EFFECT));
    // 101.6 in whole units, and noise of a fifth of one.
    rows.push(row("figures in whole units, 1.6 of 100", 10, "slower", rounded, 0.2, [0.015_873_349; 2]));
    rows
}

fn three(mut run: impl FnMut() -> f64, effect: f64) -> [f64; 3] {
    [run(), effect + run(), run()]
}

fn even(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    orders.iter().map(|_| three(|| NOISE * generator.normal(), of.truth[0])).collect()
}

fn stall(generator: &mut Generator) -> f64 {
    if generator.unit() < STALLED { STALL } else { 0.0 }
}

fn stalls(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    orders.iter().map(|_| three(|| NOISE * generator.normal() + stall(generator), of.truth[0])).collect()
}

fn one_arm(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let block = |_| {
        let stall = stall(generator);
        three(|| NOISE * generator.normal(), stall)
    };
    orders.iter().map(block).collect()
}

/// Law of a treatment of which a share of runs, the size, is this much longer.
fn longer(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator, by: f64) -> Vec<[f64; 3]> {
    let block = |_| {
        let long = if generator.unit() < of.size { by } else { 0.0 };
        three(|| NOISE * generator.normal(), long)
    };
    orders.iter().map(block).collect()
}

fn rare(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    longer(of, orders, generator, 10f64.ln())
}

fn some(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    longer(of, orders, generator, STALL)
}

/// Law of both arms: each run is drawn alike.
fn alike(orders: &[Vec<usize>], mut run: impl FnMut() -> f64) -> Vec<[f64; 3]> {
    orders.iter().map(|_| three(&mut run, 0.0)).collect()
}

fn rare_in_both(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    alike(orders, || {
        let long = if generator.unit() < of.size { 10f64.ln() } else { 0.0 };
        NOISE * generator.normal() + long
    })
}

fn lognormal(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    alike(orders, || generator.normal())
}

fn pareto(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    alike(orders, || -(1.0 - generator.unit()).ln() / 1.5)
}

fn two_modes(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    alike(orders, || NOISE * generator.normal() + if generator.unit() < 0.5 { 0.3 } else { 0.0 })
}

/// Law of counts of mean 20 (Poisson), by the times between events.
fn counts(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    alike(orders, || {
        let (mut time, mut count) = (0.0, 0);
        while time < 20.0 {
            time -= (1.0 - generator.unit()).ln();
            count += 1;
        }
        f64::from(count).ln()
    })
}

/// Law of a machine that slows by a noise within each block.
fn drifting(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let block = |order: &Vec<usize>| {
        let mut runs = three(|| NOISE * generator.normal(), 0.0);
        for (place, &slot) in order.iter().enumerate() {
            runs[slot] += NOISE * place as f64 / 2.0;
        }
        runs
    };
    orders.iter().map(block).collect()
}

fn resembling(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let mut state = generator.normal();
    let block = |order: &Vec<usize>| {
        let mut runs = [0.0; 3];
        for &slot in order {
            state = 0.8 * state + 0.6 * generator.normal();
            runs[slot] = NOISE * state;
        }
        runs
    };
    orders.iter().map(block).collect()
}

/// Law of an effect, the size, that only the first two blocks have.
fn warming(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let effect = |block: usize| if block < 2 { of.size } else { 0.0 };
    let blocks = 0..orders.len();
    blocks.map(|block| three(|| NOISE * generator.normal(), effect(block))).collect()
}

/// Law of a clock of steps of 10: the reference is 94 or 96, by the truth.
fn clocked(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let reference = if of.truth[0] < 0.03 { 94.0 } else { 96.0 };
    let mut read = |centre: f64| {
        let exact = centre * (of.size * generator.normal()).exp();
        (10.0 * (exact / 10.0).round()).ln()
    };
    let treatment = reference * of.truth[0].exp();
    orders.iter().map(|_| [read(reference), read(treatment), read(reference)]).collect()
}

fn skewed(_: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let block = |_| {
        let tail = -TAIL * (1.0 - generator.unit()).ln();
        let normal = |generator: &mut Generator| NOISE * generator.normal();
        [normal(generator), tail - TAIL_TYPICALLY, normal(generator)]
    };
    orders.iter().map(block).collect()
}

/// Law of an effect that wanders: each block's depends on the block before.
/// Deviation 3%, of runs 2%.
fn wandering(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let mut effect = generator.normal();
    let block = |_| {
        effect = of.size * effect + (1.0 - of.size * of.size).sqrt() * generator.normal();
        three(|| 0.02 * generator.normal(), NOISE * effect)
    };
    orders.iter().map(block).collect()
}

fn carried_over(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let mut before = 0;
    let block = |order: &Vec<usize>| {
        let mut runs = three(|| NOISE * generator.normal(), 0.0);
        for &slot in order {
            runs[slot] += if before == 1 { of.size * NOISE } else { 0.0 };
            before = slot;
        }
        runs
    };
    orders.iter().map(block).collect()
}

fn beside_canary(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    orders.iter().map(|_| three(|| of.size * generator.normal(), of.truth[0])).collect()
}

fn rounded(of: &Situation, orders: &[Vec<usize>], generator: &mut Generator) -> Vec<[f64; 3]> {
    let whole = |centre: f64, generator: &mut Generator| (centre + of.size * generator.normal()).round().ln();
    let block = |_| [whole(100.0, generator), whole(101.6, generator), whole(100.0, generator)];
    orders.iter().map(block).collect()
}

/// True if a study is counted.
type Counts = fn(&Analysis, &Situation) -> bool;

/// Counted properties of a study, by name.
const COUNTED: [(&str, Counts); 5] = [
    ("anything false", says_falsely),
    ("PROVED", |analysis, _| is_proved(analysis)),
    ("UNSTABLE", |analysis, _| matches!(analysis.claims[0].verdict, Verdict::Unstable { .. })),
    ("interval misses", misses),
    ("contradictions", |analysis, _| contradicts_itself(analysis)),
];

/// True if two sentences of a study cannot both be true.
fn contradicts_itself(analysis: &Analysis) -> bool {
    let claim = &analysis.claims[0];
    let Some(effect) = claim.effect else { return false };
    let outside = |value: f64| {
        effect.low.is_some_and(|low| value < low - 1e-3)
            || effect.high.is_some_and(|high| value > high + 1e-3)
    };
    let proved = claim.verdict.gain().is_some();
    // "... corrected for that, -0.0%"
    let corrected = claim.reasons.iter().filter(|reason| reason.starts_with(TOO_LARGE));
    let corrected =
        corrected.filter_map(|reason| reason.rsplit(' ').next()?.strip_suffix('%')?.parse::<f64>().ok());
    let gain = analysis.recommendation.as_ref().map(|advice| advice.gain.ratio);
    let code = match claim.outcome {
        ClaimOutcome::Holds => analysis.exit_code() != 0,
        ClaimOutcome::Refuted | ClaimOutcome::Open => analysis.exit_code() == 0,
    };
    let unheard =
        analysis.recommendation.is_none() && matches!(claim.verdict, Verdict::Faster(_)) && !claim.asked_only;
    code || unheard
        || proved && corrected.map(|percent| 1.0 + percent / 100.0).chain(gain).any(outside)
        || proved && outside(effect.ratio)
}

fn is_proved(analysis: &Analysis) -> bool {
    analysis.claims[0].verdict.label().starts_with("PROVED")
}

fn misses(analysis: &Analysis, of: &Situation) -> bool {
    let truth = of.truth[0].exp();
    let outside = |low: Option<f64>, high: Option<f64>| {
        low.is_some_and(|low| truth < low) || high.is_some_and(|high| truth > high)
    };
    analysis.claims[0].effect.is_some_and(|effect| outside(effect.low, effect.high))
}

/// True if a verdict, or the outcome of the claim, is false.
fn says_falsely(analysis: &Analysis, of: &Situation) -> bool {
    let [typically, on_average] = of.truth;
    let claim = &analysis.claims[0];
    let margin =
        of.expects.split_whitespace().last().and_then(|word| word.strip_suffix('%')?.parse::<f64>().ok());
    let bound = margin.map_or(0.0, |percent| (percent / 100.0).ln_1p());
    // The bound of a difference is no margin of an average.
    let is_margin = of.expects.starts_with("equal") || of.expects.starts_with("not");
    let margin = if is_margin { bound * (1.0 - 1e-12) } else { 0.0 };
    let holds = of.expects.contains("at least")
        && claim.outcome == ClaimOutcome::Holds
        && typically.abs() <= bound * (1.0 + 1e-12);
    let verdict = match &claim.verdict {
        Verdict::Faster(_) => typically >= 0.0,
        Verdict::Slower(_) => typically <= 0.0,
        Verdict::Equal { .. } => typically.abs() >= margin,
        Verdict::NotSlower { .. } => typically >= margin,
        Verdict::Mixed { on_average: Side::Slower, .. } => on_average <= margin,
        Verdict::Mixed { on_average: Side::Faster, .. } => on_average >= -margin,
        _ => false,
    };
    let beyond = typically.abs() > margin || on_average.abs() > margin;
    let refuted = claim.outcome == ClaimOutcome::Refuted
        && match of.expects.split_whitespace().next() {
            Some("equal" | "not") => !beyond,
            Some("slower") => typically > 0.0,
            Some("faster") => typically < 0.0,
            _ => false,
        };
    verdict || refuted || holds
}

/// Makes the studies of all situations, and returns a table of rates.
pub(super) fn run(studies: usize, seed: u64) -> anyhow::Result<String> {
    let mut text = format!(
        "\n{:<52}{:>7}  {:<18}",
        format!("Situations, % of {studies} whole studies"),
        "blocks",
        "claim"
    );
    COUNTED.iter().try_for_each(|(what, _)| write!(text, "{what:>16}"))?;
    text.push_str("    floor said   needed\n");
    for (cell, of) in situations().into_iter().enumerate() {
        let seen = each(Scale { studies, seed }, 900 + cell, |generator| {
            let analysis = made(&of, generator.bits())?;
            let claim = &analysis.claims[0];
            let needed = claim.blocks_needed.map_or(0.0, |more| (claim.blocks + more) as f64);
            let floor = claim.smallest_effect.unwrap_or(f64::NAN);
            anyhow::Ok((COUNTED.map(|(_, holds)| holds(&analysis, &of)), floor, needed))
        })?;
        write!(text, "{:<52}{:>7}  {:<18}", of.name, of.blocks, of.expects)?;
        for (index, (what, _)) in COUNTED.iter().enumerate() {
            let share = Share { hits: seen.iter().filter(|study| study.0[index]).count(), studies };
            let mark = if *what == "anything false" && share.upper() > ERROR_MAX { "*" } else { "" };
            write!(text, "{:>16}", format!("{share}{mark}"))?;
        }
        // Medians of the floors, and of all blocks of the studies that say how many they need.
        let floors: Vec<f64> = seen.iter().map(|study| study.1).filter(|floor| floor.is_finite()).collect();
        let needed: Vec<f64> = seen.iter().map(|study| study.2).filter(|needed| *needed > 0.0).collect();
        let needed = if needed.is_empty() { "-".to_string() } else { format!("{:.0}", median(&needed)) };
        writeln!(text, "{:>13.1}%{needed:>9}", 100.0 * median(&floors))?;
    }
    text.push_str("* above 5.5% by its upper end: named in docs/proof.md under what can still fool it\n");
    Ok(text)
}

/// Returns one study, with figures rounded as in records.
fn made(of: &Situation, seed: u64) -> anyhow::Result<Analysis> {
    let text = format!(
        "name = 'made-up'\ntitle = 't'\nquestion = 'q'\nworkload = 'large-sort'\nrows = '1M'\nblocks = {}\n\
         [[factor]]\nname = 'b'\nsetting = 'sort_area_size'\nlevels = ['1M', '2M']\n\
         [[claim]]\nname = 'b'\ntext = 'Made up.'\nfactor = 'b'\nfrom = '1M'\nto = '2M'\nexpect = '{}'\n",
        of.blocks, of.expects
    );
    let study = definition::parse("made-up", &text, &[&Engine])?;
    let plan = Plan::new(study, PlanOptions { blocks: Some(of.blocks), rows: None }, Until::Blocks, seed)?;
    let mut generator = Generator::of_part(seed, 1);
    let blocks: Vec<_> = (1..=of.blocks).map(|block| plan.block(block)).collect();
    let orders: Vec<Vec<usize>> =
        blocks.iter().map(|block| block.iter().map(|cell| cell.slot).collect()).collect();
    let logs = (of.law)(of, &orders, &mut generator);
    let mut environment = environment();
    environment.settings = plan.setting_facts();
    let mut runs = Vec::new();
    for (block, cells) in blocks.into_iter().enumerate() {
        for cell in cells {
            let asked =
                plan.arm_settings(cell.arm).into_iter().map(|set| held(set.name, set.value)).collect();
            let cpu_ns = (5e6 * (0.02 * generator.normal()).exp()) as u64;
            let canary = Some(Canary { cpu_ns, read_ns: None });
            runs.push(RunRecord {
                number: runs.len() as u64 + 1,
                arm: plan.arm_name(cell.arm),
                arm_index: cell.arm,
                block: Some(block as u64 + 1),
                position: cell.position as u64,
                slot: cell.slot,
                start_ns: runs.len() as u64,
                settled: Settled { idle: true, total_pages: 100, canary, ..Settled::default() },
                ended: Ended::Finished,
                record: Some(record((0.0, logs[block][cell.slot].exp()), asked)),
            });
        }
    }
    let end = Some(EndFile { stop: Stop::Planned, end_ns: runs.len() as u64 });
    Ok(analyse(&Contents { plan, environment, runs, end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_is_a_study_and_stalls_are_no_reason_to_say_anything_false() {
        for of in situations().into_iter().filter(|of| of.blocks <= 30) {
            let analysis = made(&of, 3).expect("a study");
            assert!(analysis.claims[0].effect.is_some(), "{}", of.name);
            assert!(!contradicts_itself(&analysis), "{}: {:?}", of.name, analysis.claims[0]);
        }
        let stalls =
            situations().into_iter().find(|of| of.expects == "equal within 5%").expect("a situation");
        for seed in 0..30 {
            let analysis = made(&stalls, seed).expect("a study");
            assert!(!contradicts_itself(&analysis), "seed {seed}");
            // A tenth of one arm stalls: an equality is of the typical run, and says so.
            let claim = &analysis.claims[0];
            let equal = matches!(claim.verdict, Verdict::Equal { .. });
            assert!(
                !equal || claim.verdict.to_string().contains("typically EQUAL within +-5%, but for slow")
            );
        }
    }
}
