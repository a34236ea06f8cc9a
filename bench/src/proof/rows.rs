//! The laws under which studies are simulated, and the promises that they test.
//!
//! Each law has a name, a number of blocks, a claim and the truth. No study may say anything false
//! in more than 5.5% of cases, unless the row is [`Row::named`]: docs/proof.md lists such laws
//! under what can still fool a verdict. Noise is 3% a run unless a law says otherwise.

use super::law::{NOISE, Run};
use super::simulated::Size::{self, Blocks, Decided, Find};
use super::simulated::{Claimed, Simulated, Truth, change};

/// Share of studies that a promise bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// Property of a study that a promise counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    False,
    Proved,
    Holds,
    /// The typical interval of the first claim excludes the truth.
    Misses,
    /// A change is placed "about block N", which the law does not have.
    Place,
    /// A main effect of unlike effects, without the words "at some levels".
    Levels,
    /// The line says that these blocks prove equal arms equal, and they do not.
    Enough,
}

pub(super) struct Row {
    pub(super) of: Simulated,
    pub(super) counted: Counted,
    pub(super) bound: Bound,
    /// True if docs/proof.md names the law as one that exceeds the bound.
    pub(super) named: bool,
}

/// Largest share of false statements.
pub(super) const FALSE_MAX: f64 = 0.055;

impl Row {
    fn new(of: Simulated) -> Row {
        Row { of, counted: Counted::False, bound: Bound::AtMost(FALSE_MAX), named: false }
    }

    fn named(of: Simulated) -> Row {
        Row { named: true, ..Row::new(of) }
    }

    fn at_most(self, counted: Counted, share: f64) -> Row {
        Row { counted, bound: Bound::AtMost(share), ..self }
    }

    fn at_least(self, counted: Counted, share: f64) -> Row {
        Row { counted, bound: Bound::AtLeast(share), ..self }
    }
}

/// A group of rows with its heading.
pub(super) type Group = (&'static str, Vec<Row>);

pub(super) fn groups() -> Vec<Group> {
    vec![
        ("No effect (A/A)", no_effect()),
        ("Treatments less even, or of another shape", shapes()),
        ("Equalities and margins", equalities()),
        ("Effects at the bound of their claim", bounds()),
        ("Averages asked for", averages()),
        ("p95 asked for", p95()),
        ("Figures of a coarse clock", clocks()),
        ("Runs and blocks that depend on others", dependence()),
        ("Several arms and factors", several()),
        ("Studies that choose their size", sizes()),
        ("Power and words", power()),
    ]
}

const SAME: Truth = Truth { typical: 0.0, average: 0.0 };
/// Averages that differ where the typical run does not: no claim of these rows asks.
const TYPICALLY_SAME: Truth = Truth { typical: 0.0, average: f64::NAN };

type Draw = fn(&mut Run<'_>) -> f64;

fn aa(name: &str, blocks: usize, law: Draw) -> Row {
    Row::new(Simulated::two(name, Blocks(blocks), "differs", SAME, law))
}

/// Draws a logarithm of a count, at least one.
fn log_of(count: f64) -> f64 {
    count.max(1.0).ln()
}

/// Laws of noise that both arms share.
const NOISES: [(&str, Draw); 14] = [
    ("even noise", |run| run.noise()),
    ("stalls: a tenth of runs takes 3x", |run| run.stalls()),
    ("resembles the run before, 0.8", |run| run.resembling(0.8)),
    ("drift and a wave", |run| run.drifting()),
    ("bursts of 15%", |run| run.bursts()),
    ("two modes 35% apart", |run| run.noise() + run.sometimes(0.5, 1.35)),
    ("three values", |run| 0.1 * run.generator.below(3) as f64),
    ("two values, 90 to 10", |run| run.sometimes(0.1, 1.1)),
    ("Pareto 1.5", |run| run.exponential() / 1.5),
    ("lognormal, sigma 1", |run| run.normal(1.0)),
    ("counts of mean 20", |run| log_of(run.count(20.0))),
    ("geometric counts of mean 5", |run| log_of((run.exponential() / 0.182).ceil())),
    ("percentages near 5", |run| run.clocked(5.0, 0.1, 0.04)),
    ("0.5% of runs take 10x", |run| run.noise() + run.sometimes(0.005, 10.0)),
];

fn no_effect() -> Vec<Row> {
    let mut rows: Vec<Row> = NOISES.iter().map(|(name, law)| aa(name, 10, *law)).collect();
    rows.extend(NOISES[..4].iter().map(|(name, law)| aa(name, 24, *law)));
    rows.push(aa("all figures alike", 10, |_| 0.0));
    rows.push(aa("effect by block, 3%", 10, |run| {
        run.noise() + if run.arm == 1 { run.wandering(0.0) * NOISE } else { 0.0 }
    }));
    rows.push(aa("slower within each block", 10, |run| run.noise() + NOISE * (run.at * 30.0).fract()));
    let rate = Simulated::two("stalls, a rate", Blocks(10), "differs", SAME, |run| run.stalls());
    rows.push(Row::new(rate.into_rate()));
    for (name, blocks, share) in
        [("the slowest tenth of B fails", 12, 1.2816), ("the slowest fifth of B fails", 12, 0.8416)]
    {
        rows.push(Row::new(Simulated::two(name, Blocks(blocks), "differs", SAME, move |run| {
            let noise = run.normal(1.0);
            if run.arm == 1 && noise > share { f64::NAN } else { NOISE * noise }
        })));
    }
    rows.push(aa("the slowest tenth of both fails", 12, |run| {
        let noise = run.normal(1.0);
        if noise > 1.2816 { f64::NAN } else { NOISE * noise }
    }));
    rows
}

/// Draws an exponential tail of 10% whose typical effect on normal noise is none.
fn tail(run: &mut Run<'_>) -> f64 {
    // The pseudo-median of the tail less the noise, from eight million pairs.
    let tail = 0.1 * run.exponential() - 0.085_62;
    if run.arm == 1 { tail } else { run.noise() }
}

/// Draws normal noise of one deviation for the reference, and of another for the treatment.
fn uneven(reference: f64, treatment: f64) -> impl Fn(&mut Run<'_>) -> f64 {
    move |run| run.normal(if run.arm == 1 { treatment } else { reference })
}

fn shapes() -> Vec<Row> {
    let mut rows = Vec::new();
    for blocks in [6, 10, 24] {
        let of = Simulated::two(
            "an exponential tail, typically equal",
            Blocks(blocks),
            "differs",
            TYPICALLY_SAME,
            tail,
        );
        rows.push(if blocks == 24 { Row::new(of) } else { Row::named(of) });
    }
    for (name, blocks, deviations) in [
        ("noise 1% against 10%", 10, [0.01, 0.1]),
        ("noise 10% against 1%", 10, [0.1, 0.01]),
        ("noise 1% against 20%", 6, [0.01, 0.2]),
        ("lognormal, sigma 0.3 against 1", 10, [0.3, 1.0]),
    ] {
        let law = uneven(deviations[0], deviations[1]);
        rows.push(Row::new(Simulated::two(name, Blocks(blocks), "differs", TYPICALLY_SAME, law)));
    }
    // Typical and average effects of mixtures: by the distribution of sums of two differences.
    for (name, shares, truth) in [
        ("3x in 50% of A, 60% of B", [0.5, 0.6], Truth { typical: 0.016, average: 1.1f64.ln() }),
        ("3x in 10% of A, 20% of B", [0.1, 0.2], Truth { typical: 0.011_6, average: (1.4f64 / 1.2).ln() }),
    ] {
        for expects in ["differs", "equal within 5%"] {
            rows.push(Row::new(Simulated::two(name, Blocks(12), expects, truth, move |run| {
                run.noise() + run.sometimes(shares[run.arm], 3.0)
            })));
        }
    }
    rows
}

/// A treatment whose runs take a multiple with this probability.
fn rare(probability: f64, factor: f64) -> impl Fn(&mut Run<'_>) -> f64 {
    move |run| {
        let long = if run.arm == 1 { run.sometimes(probability, factor) } else { 0.0 };
        run.noise() + long
    }
}

/// Treatments with slow runs: name, blocks, probability, factor, typical effect.
const SLOW_RUNS: [(&str, usize, f64, f64, f64); 5] = [
    ("1% of B takes 10x", 30, 0.01, 10.0, 0.000_7),
    ("1% of B takes 10x", 60, 0.01, 10.0, 0.000_7),
    ("5% of B takes 3x", 30, 0.05, 3.0, 0.004),
    ("a tenth of B takes 3x", 16, 0.1, 3.0, 0.008_9),
    ("a tenth of B takes 3x", 30, 0.1, 3.0, 0.008_9),
];

fn equalities() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, blocks, probability, factor, typical) in SLOW_RUNS {
        let truth = Truth { typical, average: (1.0 + probability * (factor - 1.0)).ln() };
        for expects in ["equal within 5%", "not slower by 3%"] {
            rows.push(Row::new(Simulated::two(
                name,
                Blocks(blocks),
                expects,
                truth,
                rare(probability, factor),
            )));
        }
    }
    let five = Truth::percent(5.0);
    for blocks in [10, 24] {
        for expects in ["equal within 5%", "not slower by 5%"] {
            rows.push(effect("even noise, exactly 5%", blocks, expects, five, |run| run.noise()));
            rows.push(effect("stalls, exactly 5%", blocks, expects, five, |run| run.stalls()));
        }
    }
    rows
}

fn effect(
    name: &str,
    blocks: usize,
    expects: &'static str,
    truth: Truth,
    noise: impl Fn(&mut Run<'_>) -> f64 + Send + Sync + 'static,
) -> Row {
    let law = move |run: &mut Run<'_>| noise(run) + run.treated(truth.typical);
    Row::new(Simulated::two(name, Blocks(blocks), expects, truth, law))
}

fn bounds() -> Vec<Row> {
    let mut rows = Vec::new();
    for blocks in [10, 24] {
        for (name, law) in [NOISES[0], NOISES[1]] {
            rows.push(effect(name, blocks, "slower by at least 5%", Truth::percent(5.0), law));
        }
    }
    rows.push(effect(
        "noise 1% against 10%",
        10,
        "slower by at least 5%",
        Truth { average: f64::NAN, ..Truth::percent(5.0) },
        uneven(0.01, 0.1),
    ));
    rows.push(effect(NOISES[1].0, 24, "faster by at least 50%", Truth::percent(-50.0), |run| run.stalls()));
    rows.push(effect("even noise of 0.5%", 100, "slower by at least 0.5%", Truth::percent(0.5), |run| {
        run.normal(0.005)
    }));
    let of = Simulated::two(
        "stalls, a rate",
        Blocks(24),
        "slower by at least 5%",
        Truth { typical: -(0.95f64.ln()), average: -(0.95f64.ln()) },
        |run| run.stalls() + run.treated(-(0.95f64.ln())),
    );
    rows.push(Row::new(of.into_rate()));
    rows
}

fn averages() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, blocks, probability, factor, typical) in SLOW_RUNS {
        let truth = Truth { typical, average: (1.0 + probability * (factor - 1.0)).ln() };
        let law = rare(probability, factor);
        rows.push(Row::new(Simulated::two(name, Blocks(blocks), "equal within 5% on average", truth, law)));
    }
    let tail = |run: &mut Run<'_>| tail(run);
    // The mean of the tail is 1 / (1 - 0.1), less its shift.
    let truth = Truth { typical: 0.0, average: 0.019_3 };
    rows.push(Row::new(Simulated::two("an exponential tail", Blocks(24), "faster on average", truth, tail)));
    let half = |run: &mut Run<'_>| run.noise() + run.treated(f64::ln(0.9));
    let truth = Truth::percent(-10.0);
    let found = Simulated::two("even noise, 10% faster", Blocks(10), "faster on average", truth, half);
    rows.push(Row::new(found).at_least(Counted::Proved, 0.9));
    let even = |run: &mut Run<'_>| run.normal(0.005);
    let found = Simulated::two("even noise of 0.5%", Blocks(400), "equal within 20% on average", SAME, even);
    rows.push(Row::new(found).at_least(Counted::Holds, 0.9));
    rows
}

/// Claims of the p95; the truth is its effect. Where 5% of runs take three times as long, each cost
/// between the two kinds of runs is a p95; with a tenth, it is among the slow ones.
fn p95() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, probability, factor, effect) in [
        ("1% of B takes 10x", 0.01, 10.0, 0.003),
        ("5% of B takes 3x", 0.05, 3.0, 0.5),
        ("a tenth of B takes 3x", 0.1, 3.0, 1.05),
    ] {
        for expects in ["equal within 5% in p95", "faster in p95"] {
            let truth = Truth { typical: effect, average: f64::NAN };
            rows.push(Row::new(Simulated::two(name, Blocks(100), expects, truth, rare(probability, factor))));
        }
    }
    let five = Truth::percent(5.0);
    for (name, law) in [NOISES[0], NOISES[1]] {
        rows.push(Row::new(Simulated::two(name, Blocks(100), "differs in p95", SAME, law)));
        rows.push(effect(&format!("{name}, exactly 5%"), 100, "not slower by 5% in p95", five, law));
    }
    let fifth = Truth { typical: 1.069, average: f64::NAN };
    let found = Simulated::two("a fifth of B takes 3x", Blocks(100), "slower in p95", fifth, rare(0.2, 3.0));
    rows.push(Row::new(found).at_least(Counted::Proved, 0.9));
    let even = |run: &mut Run<'_>| run.noise();
    let found = Simulated::two("even noise", Blocks(200), "equal within 5% in p95", SAME, even);
    rows.push(Row::new(found).at_least(Counted::Proved, 0.9));
    rows
}

fn clocks() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, blocks, costs, step, deviation) in [
        ("steps of 10, 96 and 104, noise 0.3%", 10, [96.0, 104.0], 10.0, 0.003),
        ("steps of 1, 4.6 and 5.4, noise 0.5%", 10, [4.6, 5.4], 1.0, 0.005),
        ("steps of 1, 0.6 and 1.4, noise 0.5%", 10, [0.6, 1.4], 1.0, 0.005),
        ("steps of 10, 96 and 102, noise 1%", 12, [96.0, 102.0], 10.0, 0.01),
        ("steps of 10, 94 and 96, noise 1%", 12, [94.0, 96.0], 10.0, 0.01),
    ] {
        let truth = Truth { typical: f64::ln(costs[1] / costs[0]), average: f64::ln(costs[1] / costs[0]) };
        let law = move |run: &mut Run<'_>| run.clocked(costs[run.arm], step, deviation);
        rows.push(Row::new(Simulated::two(name, Blocks(blocks), "equal within 5%", truth, law)));
    }
    rows.push(Row::new(Simulated::two(
        "steps of 10, both at a border",
        Blocks(10),
        "differs",
        SAME,
        |run| run.clocked(95.0, 10.0, 0.01),
    )));
    let alike = |run: &mut Run<'_>| run.clocked(20.0, 1.0, 0.015);
    let of = Simulated::two("steps of 1, both 20, noise 1.5%", Blocks(30), "equal within 5%", SAME, alike);
    rows.push(Row::new(of).at_most(Counted::Enough, 0.2));
    let exact =
        Simulated::two("exact counts, all one number", Blocks(8), "equal within 2%", SAME, |_| 1000f64.ln());
    rows.push(Row::new(exact.counted()).at_least(Counted::Proved, 0.99));
    rows
}

fn dependence() -> Vec<Row> {
    let mut rows = Vec::new();
    for (blocks, rho) in [(10, 0.9), (24, 0.9), (60, 0.9), (24, 0.5)] {
        let name =
            if rho > 0.6 { "an effect that wanders, AR 0.9" } else { "an effect that wanders, AR 0.5" };
        rows.push(Row::named(Simulated::two(name, Blocks(blocks), "differs", SAME, move |run| {
            let effect = run.wandering(rho);
            run.normal(0.02) + run.treated(NOISE * effect)
        })));
    }
    for (name, blocks, size) in [
        ("the run after B 3 sigma slower", 10, 3.0),
        ("the run after B 0.67 sigma slower", 30, 0.67),
        ("the run after B 0.5 sigma slower", 60, 0.5),
        ("the run after B 0.33 sigma slower", 60, 0.33),
    ] {
        let law =
            move |run: &mut Run<'_>| run.noise() + if run.before == Some(1) { size * NOISE } else { 0.0 };
        let of = Simulated::two(name, Blocks(blocks), "differs", SAME, law);
        rows.push(if size > 2.0 { Row::new(of) } else { Row::named(of) });
    }
    let first = Simulated::two("26% faster in 2 of 12 blocks only", Blocks(12), "faster", SAME, |run| {
        let effect = if run.block < 2 { -0.3 } else { 0.0 };
        run.noise() + run.treated(effect)
    });
    rows.push(Row::named(first));
    for blocks in [12, 30] {
        rows.push(Row::new(Simulated::two(
            "an effect from +10 to -10%",
            Blocks(blocks),
            "differs",
            SAME,
            |run| run.noise() + run.treated(0.1 - 0.2 * run.at),
        )));
    }
    let drift = Simulated::two("the reference drifts by 20%", Blocks(24), "differs", TYPICALLY_SAME, |run| {
        run.noise() + if run.arm == 0 { 0.1 - 0.2 * run.at } else { 0.0 }
    });
    rows.push(Row::new(drift).at_most(Counted::Place, FALSE_MAX));
    rows
}

fn several() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, percents) in [("-10, 0, +5%", [0.0, -10.0, 0.0, 5.0]), ("-5, -4, 0%", [0.0, -5.0, -4.0, 0.0])]
    {
        let effects = percents.map(|percent: f64| (percent / 100.0).ln_1p());
        rows.push(Row::new(Simulated::arms(&format!("four arms, {name}"), 12, &percents, move |run| {
            run.noise() + effects[run.arm]
        })));
    }
    rows.push(Row::new(Simulated::arms("four arms, stalls in all", 16, &[0.0; 4], |run| run.stalls())));
    rows.push(Row::new(Simulated::arms("four arms, noise 100% in the last", 12, &[0.0; 4], |run| {
        run.normal(if run.arm == 3 { 1.0 } else { NOISE })
    })));
    rows.push(Row::new(Simulated::arms("four arms, noise 30% in the reference", 12, &[0.0; 4], |run| {
        run.normal(if run.arm == 0 { 0.3 } else { NOISE })
    })));
    for percent in [10.0, 30.0] {
        rows.push(Row::new(opposite(percent)).at_most(Counted::Levels, FALSE_MAX));
    }
    for (name, law) in [NOISES[0], NOISES[1]] {
        rows.push(Row::new(at_the_edge(name, law)));
    }
    rows
}

/// Two factors: the first gains at one level of the second what it loses at the other.
fn opposite(percent: f64) -> Simulated {
    let size = f64::ln_1p(percent / 100.0);
    let law = move |run: &mut Run<'_>| {
        let effect = if run.levels[1] == 1 { size } else { -size };
        run.noise() + if run.levels[0] == 1 { effect } else { 0.0 }
    };
    let mut of =
        Simulated::two(&format!("two factors that cancel, {percent}%"), Blocks(12), "differs", SAME, law);
    of.factors = vec![2, 2];
    of.effect = Box::new(move |levels| match levels {
        [1, 1] => size,
        [1, _] => -size,
        _ => 0.0,
    });
    of
}

/// Two factors, the first without effect, the second slower by 5% at its first level. Six claims,
/// each just not true, so that any statement about them is false.
fn at_the_edge(name: &str, noise: Draw) -> Simulated {
    let five = f64::ln_1p(0.05);
    let law = move |run: &mut Run<'_>| noise(run) + if run.levels[1] == 0 { five } else { 0.0 };
    let mut of =
        Simulated::two(&format!("six claims just not true, {name}"), Blocks(20), "differs", SAME, law);
    of.factors = vec![2, 2];
    of.effect = Box::new(move |levels| if levels[1] == 0 { five } else { 0.0 });
    let back = |at: &str| format!("factor = 'f1'\nfrom = '1'\nto = '0'\n{at}");
    let claim = |lines: String, expects, truth| Claimed { lines, expects, truth };
    let at = |factor: usize, level: usize| format!("at = {{ f{factor} = '{level}' }}\n");
    let with = "with = { factor = 'f1', from = '1', to = '0' }\n";
    let slower = Truth::percent(5.0);
    of.claims = vec![
        claim(change(0, 1) + &at(1, 0), "differs", SAME),
        claim(change(0, 1) + &at(1, 1), "differs", SAME),
        claim(back(&at(0, 0)), "equal within 5%", slower),
        claim(back(&at(0, 1)), "equal within 5%", slower),
        claim(back(""), "slower by at least 5%", slower),
        claim(change(0, 1) + with, "differs", SAME),
    ];
    of
}

fn sizes() -> Vec<Row> {
    let until = |name: &str, truth: Truth, law: Draw| {
        Row::new(Simulated::two(name, Decided(20), "differs", truth, law))
    };
    let mut rows = vec![
        until("even noise", SAME, |run| run.noise()),
        until(NOISES[1].0, SAME, |run| run.stalls()),
        until("effect by block, 3%", SAME, |run| {
            run.noise() + if run.arm == 1 { run.wandering(0.0) * NOISE } else { 0.0 }
        }),
        until("noise 1% against 20%", TYPICALLY_SAME, |run| {
            run.normal(if run.arm == 1 { 0.2 } else { 0.01 })
        }),
        until("an exponential tail, typically equal", TYPICALLY_SAME, tail),
        until("half of all runs 3x", SAME, |run| run.noise() + run.sometimes(0.5, 3.0)),
        until("the slowest tenth of B fails", SAME, |run| {
            let noise = run.normal(1.0);
            if run.arm == 1 && noise > 1.2816 { f64::NAN } else { NOISE * noise }
        }),
    ];
    for (name, law) in [NOISES[0], NOISES[1]] {
        let ten = Truth::percent(10.0);
        let found = move |run: &mut Run<'_>| law(run) + run.treated(ten.typical);
        let of = Simulated::two(&format!("{name}, 10% slower"), Decided(20), "slower", ten, found);
        rows.push(Row::new(of).at_least(Counted::Proved, 0.9));
    }
    let five = Truth::percent(5.0).typical;
    for (name, law) in [NOISES[0], NOISES[1]] {
        rows.push(Row::new(Simulated::two(name, Find(0.05), "differs", SAME, law)));
        let found = move |run: &mut Run<'_>| law(run) + run.treated(five);
        let of =
            Simulated::two(&format!("{name}, 5% slower"), Find(0.05), "slower", Truth::percent(5.0), found);
        rows.push(Row::new(of).at_least(Counted::Proved, 0.9));
    }
    rows
}

fn power() -> Vec<Row> {
    let found = |name: &str, size: Size, percent: f64, noise: Draw, least: f64| {
        let truth = Truth::percent(percent);
        let expects = if percent < 0.0 { "faster" } else { "slower" };
        let law = move |run: &mut Run<'_>| noise(run) + run.treated(truth.typical);
        Row::new(Simulated::two(name, size, expects, truth, law)).at_least(Counted::Proved, least)
    };
    let mut rows = vec![
        found("stalls, 10% slower", Blocks(10), 10.0, |run| run.stalls(), 0.9),
        found("stalls, 5% slower", Blocks(30), 5.0, |run| run.stalls(), 0.9),
        found("even noise of 2.1%, 5% slower", Blocks(6), 5.0, |run| run.normal(0.021_2), 0.9),
        found("even noise of 2.1%, 2% slower", Blocks(24), 2.0, |run| run.normal(0.021_2), 0.9),
        found("even noise of 1%, 0.5% slower", Blocks(100), 0.5, |run| run.normal(0.01), 0.9),
        found(
            "whole units, 1.6 of 100, noise 0.2",
            Blocks(10),
            1.6,
            |run| {
                let cost = if run.arm == 1 { 101.6 } else { 100.0 };
                let exact: f64 = cost + run.normal(0.2);
                exact.round().ln() - run.treated(0.016f64.ln_1p())
            },
            0.8,
        ),
    ];
    for blocks in [6, 10] {
        let half = f64::ln(0.5);
        let law = move |run: &mut Run<'_>| run.normal(0.01) + run.treated(half);
        let mut of = Simulated::two(
            "-50%, noise 1%, a canary of its own",
            Blocks(blocks),
            "faster",
            Truth::percent(-50.0),
            law,
        );
        of.canary = Some(0.02);
        rows.push(Row::new(of).at_most(Counted::Misses, FALSE_MAX));
    }
    rows
}
