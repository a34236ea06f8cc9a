//! A fixed study for the tests: asynchronous and direct I/O against the sort area, twelve arms in
//! nine blocks.
//!
//! Figures of runs follow a formula with a fixed variation. Results of claims are constants,
//! because this crate computes no verdict.

use crate::run::fixture::large_sort;
use plumb_events::Direction;
use plumb_proof::equivalence::Equivalence;
use plumb_proof::noise::Floor;
use plumb_proof::order::{After, Group, OrderReport};
use plumb_proof::verdict::{Aim, Change, More, TypicalLimits, Verdict};
use plumb_record::{Finding, IoProfile, IoTally, ProfileSeries, RunState};
use plumb_run::embedded::Engine;
use plumb_run::fixture;
use plumb_study::analysis::result::*;
use plumb_study::bundle::Environment;
use plumb_study::definition::{Study, parse};
use plumb_study::vocabulary::Assignment;

const MS: u64 = 1_000_000;
const BLOCKS: u64 = 9;
/// The block with a failed run.
const FAILED_BLOCK: u64 = 5;
const ARMS: usize = 12;

pub(crate) fn parallel_sort() -> Analysis {
    let runs = runs();
    let run = large_sort();
    Analysis {
        schema_version: ANALYSIS_SCHEMA_VERSION,
        study: study(),
        study_hash: "51d0c7aa".to_string(),
        environment: environment(),
        evidence_hash: Some("5f".repeat(32)),
        state: StudyState::Finished,
        end_time: "2025-11-20T21:11:17+00:00".to_string(),
        elapsed_ns: 432_000 * MS,
        arms: arms(&runs),
        design: design(),
        claims: claims(),
        main_effects: main_effects(),
        interactions: interactions(),
        floor: Some(floor()),
        order: Some(order()),
        changes: Vec::new(),
        canary: vec![CanaryFigure {
            what: "fixed processor work".to_string(),
            median_ns: 5_120_000,
            low_ns: 5_060_000,
            high_ns: 5_410_000,
            explains: Some(Explains { share: 0.31, low: 0.08, high: 0.57 }),
            adjusted: true,
        }],
        doubtful: None,
        stolen: Some(StolenFigure {
            median: 0.001,
            low: 0.0,
            high: 0.012,
            most: 0.031,
            much: 0,
            runs: 45,
            explains: Some(Explains { share: 0.08, low: 0.0, high: 0.31 }),
        }),
        changes_need_blocks: 14,
        canary_needs_blocks: 8,
        runs,
        recommendation: Some(recommendation()),
        findings: vec![Finding {
            what: "Direct writes and asynchronous I/O buy the same thing".to_string(),
            evidence: "either alone saves about two thirds; the second adds 0.9% [-0.6, 2.5]".to_string(),
            advice: "set sort_direct_writes first: it also keeps the buffer cache for others".to_string(),
            ..Finding::default()
        }],
        not_tested: vec![
            "sort areas above 4M and below 1M".to_string(),
            "temporary files on a disk of their own".to_string(),
        ],
        calibration: run.calibration,
        settings: run.settings,
    }
}

/// A study with every failure that a report must show.
pub(crate) fn troubled() -> Analysis {
    let mut study = parallel_sort();
    study.claims[0].verdict =
        Verdict::Unstable { reason: "direct=TRUE changes by +7.1% at block 5 (p = 0.0005)".to_string() };
    study.claims[0].outcome = ClaimOutcome::Open;
    study.claims[1].verdict = Verdict::Invalid {
        reason:
            "receipt contradicts filesystemio_options = setall: no O_DIRECT in the open flags of temp01.dbf"
                .to_string(),
    };
    study.claims[1].outcome = ClaimOutcome::Open;
    study.claims[3].verdict =
        Verdict::Impossible { reason: "3.1 GB/s of temp reads, and the device reads 251 MB/s".to_string() };
    study.changes.push(LevelChange {
        arm: "async=FALSE direct=TRUE area=1M".to_string(),
        series: "its ratio to the reference".to_string(),
        block: Some(5),
        ratio: 1.071,
        p: 0.0005,
    });
    study.recommendation = None;
    study
}

/// A study with only its header: it was stopped before its first run.
pub(crate) fn unborn() -> Analysis {
    let mut study = parallel_sort();
    study.state = StudyState::Interrupted;
    study.claims.clear();
    study.main_effects.clear();
    study.interactions.clear();
    study.runs.clear();
    study.study.published = None;
    study.floor = None;
    study.order = None;
    study.recommendation = None;
    study.findings.clear();
    study.not_tested.clear();
    study.environment.devices.clear();
    study.calibration = None;
    study.settings.clear();
    study.design.blocks_used = 0;
    study.design.blocks_marked.clear();
    study.arms.iter_mut().for_each(|arm| (arm.median, arm.least, arm.most) = (None, None, None));
    study
}

/// The study file; figures of runs follow from formulas, verdicts are constants.
const STUDY: &str = r#"
name = "large-sort-parallel"
title = "asynchronous and direct I/O in a parallel sort"
question = """Do direct writes and asynchronous I/O make a parallel index build faster, alone and together, \
and does a larger sort area help?"""
source = "Tuning Large Sorts, figures 9 to 12 (1996)"
workload = "large-sort"
rows = 2000000
blocks = 9
sought = "2%"

[settings]
parallel_degree = 2

[[factor]]
name = "async"
levels = [
    { label = "FALSE", set = { io_method = "sync", filesystemio_options = "directio" } },
    { label = "TRUE", set = { io_method = "io_uring", filesystemio_options = "setall" } },
]

[[factor]]
name = "direct"
setting = "sort_direct_writes"
levels = ["FALSE", "TRUE"]

[[factor]]
name = "area"
setting = "sort_area_size"
levels = ["1M", "2M", "4M"]

[[claim]]
name = "direct-alone"
text = "Direct writes alone cut a parallel sort by about two thirds"
factor = "direct"
from = "FALSE"
to = "TRUE"
expect = "faster by at least 50%"

[published]
title = "Parallel Index Creation, Degree 16"
source = "Tuning Large Sorts, Oracle 7.3, 10 million rows, 450 MB; minutes:seconds"
column = "direct"
rows = ["async", "area"]
cells = [
    { at = { async = "FALSE", area = "1M" }, times = ["14:22", "04:57"] },
    { at = { async = "FALSE", area = "2M" }, times = ["14:00", "05:05"] },
    { at = { async = "FALSE", area = "4M" }, times = ["13:35", "05:14"] },
    { at = { async = "TRUE", area = "1M" }, times = ["05:01", "04:33"] },
    { at = { async = "TRUE", area = "2M" }, times = ["05:11", "04:42"] },
    { at = { async = "TRUE", area = "4M" }, times = ["05:30", ""] },
]
"#;

fn study() -> Study {
    parse("fixture.toml", STUDY, &[&Engine]).unwrap()
}

fn environment() -> Environment {
    let run = large_sort();
    Environment {
        plumb_version: run.header.plumb_version,
        git_revision: run.header.git_revision,
        profile: run.header.profile,
        host: run.header.host,
        devices: run.devices,
        target: "the embedded engine".to_string(),
        begin_time: "2025-11-20T21:04:05+00:00".to_string(),
        command_line: "plumb study large-sort-parallel --path /u02/oradata --budget 8m".to_string(),
        ..fixture::environment()
    }
}

fn assignment(name: &str, value: &str) -> Assignment {
    Assignment { name: name.to_string(), value: value.to_string() }
}

fn levels(arm: usize) -> [usize; 3] {
    [arm / 6, arm / 3 % 2, arm % 3]
}

fn arm_name(arm: usize) -> String {
    let [asynchronous, direct, area] = levels(arm);
    let switch = ["FALSE", "TRUE"];
    format!("async={} direct={} area={}", switch[asynchronous], switch[direct], ["1M", "2M", "4M"][area])
}

/// Seconds without noise: the published table's shape on a faster machine.
fn level_s(arm: usize) -> f64 {
    [1.62, 1.58, 1.53, 0.611, 0.604, 0.622, 0.628, 0.635, 0.651, 0.590, 0.596, 0.607][arm]
}

/// A fixed variation between -1 and 1.
fn wobble(block: u64, slot: usize) -> f64 {
    let mixed = (block * 7_919 + slot as u64 * 104_729 + 17).wrapping_mul(2_654_435_761) >> 7;
    (mixed % 2_001) as f64 / 1_000.0 - 1.0
}

fn runs() -> Vec<StudyRun> {
    let mut runs = Vec::new();
    let mut start_ns = 2_000 * MS;
    for block in 0..=BLOCKS {
        // Block 0 is the warm-up, with the first four arms.
        let slots = if block == 0 { 4 } else { ARMS + 1 };
        for position in 0..slots {
            // A multiplier without a common factor with 13 visits every slot once.
            let slot = (position * 5 + block as usize * 3) % slots;
            let arm = if slot == ARMS { 0 } else { slot };
            let cold = if block == 0 && position == 0 { 1.35 } else { 1.0 };
            let value = level_s(arm) * cold * (1.0 + 0.004 * block as f64 + 0.012 * wobble(block, slot));
            let failed = block == FAILED_BLOCK && slot == 7;
            runs.push(run(
                runs.len() as u64 + 1,
                [block, position as u64],
                [slot, arm],
                start_ns,
                value,
                failed,
            ));
            start_ns += (value * 1e9) as u64 + 2_400 * MS;
        }
    }
    runs
}

fn run(
    number: u64,
    [block, position]: [u64; 2],
    [slot, arm]: [usize; 2],
    start_ns: u64,
    value: f64,
    failed: bool,
) -> StudyRun {
    let counted = match block {
        0 => Counted::WarmUp,
        FAILED_BLOCK if failed => {
            Counted::No { reason: "verification failed: rowid file 1 block 17 slot 3 is missing".to_string() }
        }
        FAILED_BLOCK => Counted::No { reason: "its block is marked".to_string() },
        _ => Counted::Yes,
    };
    StudyRun {
        doubtful: Vec::new(),
        number,
        block: (block > 0).then_some(block),
        position: position + 1,
        slot,
        arm,
        start_ns,
        elapsed_ns: (!failed).then_some((value * 1e9) as u64),
        value: (!failed).then_some(value),
        counted,
        validity: (!failed).then_some(RunState::Valid),
        basis: "3 of 3 checks passed, 15 of 15 receipts held".to_string(),
    }
}

fn arms(runs: &[StudyRun]) -> Vec<Arm> {
    let arm = |arm: usize| {
        let counted = runs.iter().filter(|run| run.slot == arm && run.counted == Counted::Yes);
        let mut values = counted.filter_map(|run| run.value).collect::<Vec<_>>();
        values.sort_by(f64::total_cmp);
        let median = (values[values.len() / 2] + values[(values.len() - 1) / 2]) / 2.0;
        Arm {
            name: arm_name(arm),
            levels: levels(arm).to_vec(),
            median: Some(median),
            least: values.first().copied(),
            most: values.last().copied(),
            declared_bytes: Some((64 + 16 * arm as u64) << 20),
            peak_bytes: Some((71 + 16 * arm as u64) << 20),
            device: Some(ArmDevice {
                sequential_read_bytes_per_s: Some(1.5e9 + 1e6 * arm as f64),
                random_read_8k_ns: Some(82_000.0 + 100.0 * arm as f64),
            }),
            host_cpu: Some(0.42),
            io_ns: Some(values.iter().map(|value| (value * 1e9) as u64).sum()),
            io: arm_io(arm as u64),
            others: arm_others(arm),
        }
    };
    (0..ARMS).map(arm).collect()
}

/// Processor time, bytes and waits of an arm; every second one writes directly.
fn arm_others(arm: usize) -> Vec<ArmFigure> {
    let direct = arm % 2 == 1;
    let figure = |name: &str, unit, median| ArmFigure { name: name.to_string(), unit, median };
    vec![
        figure("CPU", ArmUnit::Nanoseconds, 412e6 - arm as f64 * 1e6),
        figure("read", ArmUnit::Bytes, 121.0 * 1_048_576.0),
        figure("written", ArmUnit::Bytes, 66.0 * 1_048_576.0),
        figure("written to temp", ArmUnit::Bytes, 31.0 * 1_048_576.0),
        figure("free buffer waits", ArmUnit::Nanoseconds, if direct { 0.0 } else { 871e6 }),
        figure("direct path write temp", ArmUnit::Nanoseconds, if direct { 61e6 } else { 0.0 }),
    ]
}

/// I/O of an arm: a scan, and temp writes by the session or by DBWR.
fn arm_io(arm: u64) -> Vec<ArmIo> {
    let tally =
        |requests: u64, bytes: u64, ms: u64| IoTally { requests, bytes, time_ns: Some(ms * 1_000_000) };
    let none = IoTally::default();
    let line = |table, name: &str, reads, writes| {
        let time = (table == IoTable::Device).then_some(40_000_000_000);
        ArmIo { table, name: name.to_string(), reads, writes, busy_ns: time, weighted_ns: time }
    };
    let scanned = tally(9_000, 9 << 30, 40_000);
    let written = tally(4_000 + 100 * arm, 2 << 30, 18_000);
    let writer = if arm.is_multiple_of(2) { "DBWR" } else { "Direct Writes" };
    vec![
        line(IoTable::Function, "Direct Reads", scanned, none),
        line(IoTable::Function, writer, none, written),
        line(IoTable::Filetype, "Data File", scanned, none),
        line(IoTable::Filetype, "Temp File", none, written),
        line(IoTable::Tablespace, "USERS", scanned, none),
        line(IoTable::Device, "nvme0n1", scanned, written),
    ]
}

fn design() -> Design {
    Design {
        kind: "full factorial".to_string(),
        confounded: Vec::new(),
        reference_arm: 0,
        order: "every order of a block equally likely".to_string(),
        seed: 1996,
        stopping: "after 9 blocks".to_string(),
        blocks_used: BLOCKS - 1,
        blocks_marked: vec![MarkedBlock {
            block: FAILED_BLOCK,
            reason: "run 63 failed verification: rowid file 1 block 17 slot 3 is missing".to_string(),
        }],
        warm_up_runs: 4,
        settling: "cached pages of the files dropped, sync, device idle for 100 ms, at most 5 s".to_string(),
        loading_ns: 21_400 * MS,
        canary_ns: 1_100 * MS,
        not_randomised: "only the order of runs within blocks was drawn; not the machine".to_string(),
    }
}

fn effect(low: f64, ratio: f64, high: f64, confidence: f64) -> Effect {
    Effect { ratio, low: Some(low), high: Some(high), confidence }
}

fn faster(percent: f64, low: f64, high: f64) -> Verdict {
    Verdict::Faster(Change { percent, low, high })
}

/// A claim of two arms without optional parts.
fn claim(
    name: &str,
    text: &str,
    [reference, treatment]: [usize; 2],
    said: Verdict,
    outcome: ClaimOutcome,
) -> JudgedClaim {
    let proved = said.exit_code() == 0;
    JudgedClaim {
        asked_only: false,
        name: name.to_string(),
        text: text.to_string(),
        comparison: format!("{} against {}", arm_name(treatment), arm_name(reference)),
        arms: Some(ArmPair { reference, treatment }),
        measure: None,
        verdict: said,
        outcome,
        reasons: vec![
            "adjusted p = 0.0391 over 5 claims and 8 blocks, interval clear of no effect".to_string(),
        ],
        effect: None,
        average: Some(effect(0.95, 0.98, 1.01, 0.99)),
        shape_p: Some(0.62),
        wanders_p: None,
        slow_runs: Some(SlowShare { slow: 0, runs: BLOCKS - 1, low: 0.0, high: 0.312 }),
        carry_over: Some(After { shift: 0.004, p: 0.41 }),
        p: Some(0.0078),
        adjusted_p: Some(if proved { 0.0391 } else { 0.2 }),
        blocks: BLOCKS - 1,
        blocks_needed: None,
        smallest_effect: Some(0.021),
        covered: None,
        equivalence: None,
        why: None,
        profiles: None,
    }
}

fn claims() -> Vec<JudgedClaim> {
    let direct = JudgedClaim {
        effect: Some(effect(0.360, 0.377, 0.399, 0.99)),
        why: Some(why()),
        profiles: Some(profiles()),
        ..claim(
            "direct-alone",
            "Direct writes alone cut a parallel sort by about two thirds",
            [0, 3],
            faster(62.3, 60.1, 64.0),
            ClaimOutcome::Holds,
        )
    };
    let asynchronous = JudgedClaim {
        effect: Some(effect(0.371, 0.388, 0.407, 0.99)),
        covered: Some(Covered {
            parts: vec!["redo write time".to_string()],
            of: "elapsed time".to_string(),
            share: 0.579,
            low: 0.503,
            high: 0.667,
        }),
        ..claim(
            "async-alone",
            "Asynchronous I/O alone cuts it by about two thirds",
            [0, 6],
            faster(61.2, 59.3, 62.9),
            ClaimOutcome::Holds,
        )
    };
    let together = JudgedClaim {
        effect: Some(effect(0.948, 0.966, 0.984, 0.99)),
        equivalence: Some(Equivalence { margin: 0.05, p_lower: 0.0039, p_upper: 0.0039, p: 0.0039 }),
        reasons: vec!["both margins are rejected, p = 0.0039".to_string()],
        ..claim(
            "together",
            "Together they add little to either",
            [3, 9],
            Verdict::Equal { within: 5.0, beside: Some(TypicalLimits::default()) },
            ClaimOutcome::Holds,
        )
    };
    let area = JudgedClaim {
        effect: Some(Effect { ratio: 0.993, low: Some(0.969), high: None, confidence: 0.99 }),
        blocks_needed: Some(14),
        reasons: vec!["adjusted p = 0.200, effect -0.7%".to_string()],
        ..claim(
            "larger-area",
            "A larger sort area does not always help",
            [3, 5],
            Verdict::NotProved { floor: 2.1, more: More::Blocks(14, Aim::Find(1.0)) },
            ClaimOutcome::Open,
        )
    };
    let conventional = JudgedClaim {
        effect: Some(effect(0.92, 0.944, 0.968, 0.99)),
        ..claim(
            "conventional-area",
            "Without direct writes and asynchronous I/O a larger sort area costs time",
            [0, 2],
            faster(5.6, 3.2, 8.0),
            ClaimOutcome::Refuted,
        )
    };
    vec![direct, asynchronous, together, area, conventional]
}

fn why() -> Why {
    let part = |name: &str, wait_class: &str, reference: u64, treatment: u64| WhyPart {
        name: name.to_string(),
        wait_class: wait_class.to_string(),
        reference_ns: reference * MS,
        treatment_ns: treatment * MS,
        ends: Some(around(reference, treatment)),
    };
    let phase = |name: &str, reference: u64, treatment: u64| PhasePart {
        name: name.to_string(),
        reference_ns: reference * MS,
        treatment_ns: treatment * MS,
        ends: Some(around(reference, treatment)),
    };
    Why {
        per: None,
        ends: Some(around(1_645, 620)),
        basis: "a session's times count by its share of the foreground sessions: servers work side by side"
            .to_string(),
        reference: arm_name(0),
        treatment: arm_name(3),
        reference_elapsed_ns: 1_645 * MS,
        treatment_elapsed_ns: 620 * MS,
        parts: vec![
            part("DB CPU", "", 412, 398),
            part("free buffer waits", "Configuration", 871, 0),
            part("direct path write temp", "User I/O", 0, 61),
            part("direct path read temp", "User I/O", 204, 88),
            part("direct path read", "User I/O", 111, 49),
            part("log file sync", "Commit", 3, 3),
        ],
        phases: vec![phase("sort runs", 1_240, 320), phase("merge", 402, 297)],
    }
}

/// Interval of a difference in milliseconds.
fn around(reference: u64, treatment: u64) -> EndsNanos {
    let difference = treatment as i64 - reference as i64;
    let reach = 4 + difference.abs() / 10;
    let end = |ms: i64| ms * MS as i64;
    EndsNanos { low_ns: end(difference - reach), high_ns: end(difference + reach) }
}

fn profiles() -> ProfilePair {
    let side = |arm: usize, run: u64, elapsed_ms: u64, writes_mb: u64| {
        let buckets = (elapsed_ms / 20) as usize;
        let stream = |name: &str, direction, from: usize, to: usize, megabytes: u64| {
            let each = (megabytes << 20) / (to - from) as u64;
            let bytes = (0..buckets).map(|bucket| {
                let wave = (bucket * 37 % 23) as u64;
                if (from..to).contains(&bucket) { each * (89 + wave) / 100 } else { 0 }
            });
            ProfileSeries { name: name.to_string(), direction, bytes: bytes.collect() }
        };
        let half = buckets / 2;
        RunProfile {
            arm: arm_name(arm),
            run,
            elapsed_ns: elapsed_ms * MS,
            profile: IoProfile {
                bucket_ns: 20 * MS,
                y_max_mb_per_s: None,
                x_max_s: None,
                series: vec![
                    stream("table reads", Direction::Read, 0, half, 85),
                    stream("temp writes", Direction::Write, 1, half + 1, writes_mb),
                    stream("temp reads", Direction::Read, half, buckets, writes_mb),
                    stream("index writes", Direction::Write, half, buckets, 35),
                    stream("data writes", Direction::Write, 0, half, 0),
                ],
            },
            phases: Vec::new(),
        }
    };
    ProfilePair { reference: side(0, 27, 1_640, 31), treatment: side(3, 41, 620, 31) }
}

fn main_effects() -> Vec<MainEffect> {
    let row = |factor: &str, from: &str, to: &str, effect: Effect, p: f64| MainEffect {
        factor: factor.to_string(),
        from: from.to_string(),
        to: to.to_string(),
        effect,
        p: Some(p),
    };
    vec![
        row("async", "FALSE", "TRUE", effect(0.605, 0.62, 0.634, 0.95), 0.0078),
        row("direct", "FALSE", "TRUE", effect(0.583, 0.598, 0.611, 0.95), 0.0078),
        row("area", "1M", "2M", effect(0.985, 0.996, 1.008, 0.95), 0.4609),
        row("area", "1M", "4M", effect(0.983, 0.999, 1.014, 0.95), 0.8438),
    ]
}

fn interactions() -> Vec<Interaction> {
    let row = |first: &str, second: &str, effect: Effect, p: f64| Interaction {
        first: first.to_string(),
        second: second.to_string(),
        effect,
        p: Some(p),
    };
    vec![
        row("async FALSE -> TRUE", "direct FALSE -> TRUE", effect(2.37, 2.46, 2.55, 0.95), 0.0078),
        row("direct FALSE -> TRUE", "area 1M -> 4M", effect(1.021, 1.048, 1.074, 0.95), 0.0156),
    ]
}

fn floor() -> NoiseFloor {
    NoiseFloor {
        floor: Floor {
            deviation: 0.0131,
            robust_deviation: 0.0118,
            blocks: BLOCKS as usize - 1,
            within: 0.000_086,
            between: 0.000_210,
            removed: Some([0.41, 0.96]),
        },
        aa: Some(effect(0.991, 1.002, 1.014, 0.95)),
        aa_p: Some(0.7422),
    }
}

fn order() -> OrderReport {
    let group = |index: usize, ratio: f64| Group { index, shift: ratio.ln() };
    let positions = (0..13).map(|index| group(index, 1.0 + 0.004 * wobble(index as u64 + 1, 1)));
    let after = (0..=ARMS).map(|slot| group(slot, 1.0 + 0.006 * wobble(3, slot)));
    OrderReport {
        position_p: 0.412,
        positions: positions.collect(),
        carry_over_p: 0.287,
        predecessors: after.collect(),
        drift_p: 0.001,
        drift_per_block: 1.004_f64.ln(),
    }
}

fn recommendation() -> Recommendation {
    Recommendation {
        blocks_to_tell_apart: None,
        arm: 9,
        settings: vec![
            assignment("io_method", "io_uring"),
            assignment("filesystemio_options", "setall"),
            assignment("sort_direct_writes", "true"),
            assignment("sort_area_size", "1M"),
        ],
        against: arm_name(0),
        candidates: vec![9, 10],
        gain: effect(0.349, 0.364, 0.381, 0.95),
        evidence: "claims 1 and 3; costs no memory: write buffers come out of the sort area".to_string(),
    }
}
