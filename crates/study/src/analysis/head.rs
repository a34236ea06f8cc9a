//! The course of a study: its end, arms, design and list of runs.

use super::arm_figures;
use super::result::{Arm, ArmDevice, ArmIo, Counted, Design, IoTable, StudyRun, StudyState};
use super::used_blocks::{UsedBlocks, fault};
use crate::bundle::{Ended, RunRecord, Stop};
use crate::definition::Factor;
use crate::plan::Until;
use crate::vocabulary::{Made, TakesEffect};
use plumb_proof::design::Order;
use plumb_record::calendar::Moment;
use plumb_record::{HostCpu, IoTally, MeasuredLimits, Record, SettingRow};
use plumb_units::{median, total_of};
use std::time::Duration;

/// Returns the state, the end of the last run, and the time the study
/// ran in nanoseconds, without pauses.
pub(super) fn ended(used: &UsedBlocks<'_>) -> (StudyState, String, u64) {
    let contents = used.contents;
    let elapsed_ns = contents.ran().0;
    let state = match contents.end.map(|end| end.stop) {
        None | Some(Stop::Interrupted) => StudyState::Interrupted,
        Some(_) => StudyState::Finished,
    };
    // A study that paused ended later than its running time suggests.
    let last = contents.runs.iter().rev().find_map(|run| Some(run.record.as_ref()?.header.end_time.clone()));
    let begin = || Moment::of(Duration::from_nanos(contents.environment.begin_ns)).iso();
    (state, last.unwrap_or_else(begin), elapsed_ns)
}

pub(super) fn arms(used: &UsedBlocks<'_>) -> Vec<Arm> {
    let plan = &used.contents.plan;
    let counted = |arm: usize| -> Vec<&Record> {
        let records = if used.contents.has_ended() { used.records(&[arm]) } else { Vec::new() };
        records.into_iter().map(|(_, record)| record).collect()
    };
    let of_arms: Vec<Vec<&Record>> = (0..plan.design.arms.len()).map(counted).collect();
    let events = arm_figures::events(&of_arms);
    let of_plan = |arm: usize| {
        let ours = used.contents.runs.iter().filter(|run| run.arm_index == arm);
        let explained = ours.filter_map(|run| run.record.as_ref()).find(|record| record.plan.is_some());
        explained.map_or_else(Vec::new, arm_figures::of_plan)
    };
    let arm = |(arm, levels): (usize, &Vec<usize>)| {
        let runs = &of_arms[arm];
        let mut values: Vec<f64> = runs.iter().map(|run| plan.study.measure.value(run)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let median = median_of(&values);
        let (least, most) = (values.first().copied(), values.last().copied());
        let declared = runs.iter().map(|run| run.memory.declared_bytes()).max().filter(|bytes| *bytes > 0);
        let io = arm_io(runs);
        Arm {
            name: plan.arm_name(arm),
            levels: levels.clone(),
            median,
            least,
            most,
            declared_bytes: declared,
            peak_bytes: runs.iter().filter_map(|run| run.memory.peak_rss_bytes).max(),
            device: arm_device(runs),
            host_cpu: host_cpu(runs),
            io_ns: (!io.is_empty()).then(|| total_of(runs.iter().map(|run| run.header.elapsed_ns))),
            io,
            others: arm_figures::figures(runs, &events).into_iter().chain(of_plan(arm)).collect(),
        }
    };
    plan.design.arms.iter().enumerate().map(arm).collect()
}

/// Returns the median; `None` without values.
fn median_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median(values))
}

/// Returns the medians of the device alone, as these runs measured it.
fn arm_device(runs: &[&Record]) -> Option<ArmDevice> {
    let limits = || runs.iter().filter_map(|run| run.calibration.as_ref());
    let device = ArmDevice {
        sequential_read_bytes_per_s: median_of(
            &limits().filter_map(MeasuredLimits::sequential_limit).collect::<Vec<_>>(),
        ),
        random_read_8k_ns: median_of(
            &limits().filter_map(|limits| Some(limits.random_read_8k_ns? as f64)).collect::<Vec<_>>(),
        ),
    };
    (device.sequential_read_bytes_per_s.is_some() || device.random_read_8k_ns.is_some()).then_some(device)
}

/// Returns the share of the machine's processors in use during the runs.
fn host_cpu(runs: &[&Record]) -> Option<f64> {
    let cpus = || runs.iter().filter_map(|run| run.host_cpu.as_ref());
    let all = total_of(cpus().map(HostCpu::total_ns));
    let used = total_of(cpus().map(|cpu| cpu.user_ns.saturating_add(cpu.system_ns)));
    (all > 0).then(|| used as f64 / all as f64)
}

/// Sums the I/O of runs by function, type of file, tablespace and device.
fn arm_io(runs: &[&Record]) -> Vec<ArmIo> {
    let mut sums: Vec<ArmIo> = Vec::new();
    let mut add = |table: IoTable, name: &str, [reads, writes]: [IoTally; 2]| match sums
        .iter_mut()
        .find(|known| known.table == table && known.name == name)
    {
        Some(known) => {
            known.reads.add(&reads);
            known.writes.add(&writes);
        }
        None => {
            let name = name.to_string();
            sums.push(ArmIo { table, name, reads, writes, busy_ns: None, weighted_ns: None });
        }
    };
    for run in runs {
        for (table, groups) in
            [(IoTable::Function, run.io_by_function()), (IoTable::Filetype, run.io_by_file_type())]
        {
            let moved = groups.iter().filter(|group| group.reads.requests + group.writes.requests > 0);
            moved.for_each(|group| add(table, &group.name, [group.reads, group.writes]));
        }
        for stats in run.io_by_tablespace().iter().filter(|it| it.reads.requests + it.writes.requests > 0) {
            add(IoTable::Tablespace, &stats.tablespace, [stats.reads, stats.writes]);
        }
        run.io_devices.iter().for_each(|it| add(IoTable::Device, &it.device, [it.reads, it.writes]));
    }
    for sum in sums.iter_mut().filter(|sum| sum.table == IoTable::Device) {
        let of_device = || runs.iter().flat_map(|run| &run.io_devices).filter(|it| it.device == sum.name);
        sum.busy_ns = of_device().map(|device| device.busy_ns).sum();
        sum.weighted_ns = of_device().map(|device| device.weighted_ns).sum();
    }
    sums
}

pub(super) fn design(used: &UsedBlocks<'_>) -> Design {
    let plan = &used.contents.plan;
    let study = &plan.study;
    let names = |word: &Vec<usize>| {
        word.iter().map(|factor| study.factors[*factor].name.as_str()).collect::<Vec<_>>().join(" x ")
    };
    let confounded = plan.design.defining_words.iter().map(|word| {
        format!("{} is constant: each part of it looks like the product of the others", names(word))
    });
    let factors = created(used);
    let made = if own_data(used) { Made::EachRun } else { Made::Once(&factors) };
    Design {
        kind: plan.design.resolution().map_or_else(
            || "full factorial".to_string(),
            |resolution| format!("regular fraction, resolution {resolution}"),
        ),
        confounded: confounded.collect(),
        reference_arm: plan.schedule.reference,
        order: match study.order {
            Order::Shuffled => "every order of a block equally likely".to_string(),
            Order::Williams => "Williams: every slot follows every other equally often".to_string(),
        },
        seed: plan.schedule.seed,
        stopping: stopping(used),
        blocks_used: used.blocks.len() as u64,
        blocks_marked: used.marked.clone(),
        warm_up_runs: used.contents.runs.iter().filter(|run| run.block.is_none()).count() as u64,
        settling: used
            .contents
            .environment
            .between_runs
            .clone()
            .unwrap_or_else(|| study.vocabulary.between_runs(&study.all_settings().collect::<Vec<_>>())),
        loading_ns: loading(used),
        canary_ns: used.contents.runs.iter().map(sung).sum(),
        not_randomised: study.vocabulary.not_randomised(made),
    }
}

/// Returns the time of the canary before a run, nanoseconds.
fn sung(run: &RunRecord) -> u64 {
    run.settled.canary.map_or(0, |canary| canary.cpu_ns + canary.read_ns.unwrap_or(0))
}

/// Returns the time before the first run, and before the first run after each resumption, in
/// nanoseconds. Settling and the canary of that run are excluded.
pub(super) fn loading(used: &UsedBlocks<'_>) -> u64 {
    let mut ended = 0;
    let mut loading = 0;
    for (index, run) in used.contents.runs.iter().enumerate() {
        // A warm-up after a resumption has position 0.
        if index == 0 || run.position == 0 {
            loading += run.start_ns.saturating_sub(ended + run.settled.waited_ns + sung(run));
        }
        ended = run.start_ns + run.record.as_ref().map_or(0, |record| record.header.elapsed_ns);
    }
    loading
}

/// Returns the factors whose levels take effect when a database is made, each level one database.
pub(super) fn created<'a>(used: &UsedBlocks<'a>) -> Vec<&'a str> {
    if own_data(used) {
        return Vec::new();
    }
    let at_creation = |name: &str| {
        let known = &used.contents.environment.settings;
        known.iter().any(|facts| facts.name == name && facts.takes_effect == TakesEffect::Creation)
    };
    let factors = used.contents.plan.study.factors.iter();
    let varied = |factor: &&Factor| {
        (1..factor.levels.len()).any(|level| factor.differing(0, level).into_iter().any(at_creation))
    };
    factors.filter(varied).map(|factor| factor.name.as_str()).collect()
}

/// True if each run had a database of its own.
fn own_data(used: &UsedBlocks<'_>) -> bool {
    let mut runs = used.blocks.iter().flat_map(|(_, runs)| runs);
    runs.next().is_some_and(|run| run.settled.own_data)
}

/// Describes the rule by which the study stops, and the reason if it stopped otherwise.
fn stopping(used: &UsedBlocks<'_>) -> String {
    let plan = &used.contents.plan;
    let rule = match plan.until {
        Until::Blocks => format!("after {} blocks", plan.study.blocks),
        Until::Decided => {
            format!("when every claim is decided or hardly can be, at most {} blocks", plan.study.blocks)
        }
    };
    let why = match used.contents.end.map(|end| end.stop) {
        Some(Stop::Planned | Stop::Decided) => return rule,
        Some(Stop::Budget) => "another block would not have fitted the budget",
        Some(Stop::Failures) => return format!("{rule}; {}", failures(used)),
        Some(Stop::Interrupted) => "it was stopped from outside",
        Some(Stop::Ended) => "it was ended where it had been stopped",
        None => "it has not ended",
    };
    format!("{rule}; {why}")
}

/// Counts the blocks whose failures ended the study; the warm-up is one.
fn failures(used: &UsedBlocks<'_>) -> String {
    let warm_up = used.contents.runs.iter().any(|run| run.block.is_none() && fault(run).is_some());
    let blocks = used.marked.len();
    if warm_up {
        format!("the warm-up and {blocks} blocks failed")
    } else {
        format!("{blocks} blocks failed")
    }
}

pub(super) fn runs(used: &UsedBlocks<'_>) -> Vec<StudyRun> {
    let measure = &used.contents.plan.study.measure;
    let shown = used.contents.has_ended();
    let row = |run: &RunRecord| {
        let record = run.record.as_ref();
        let validity = record.map(Record::validity);
        StudyRun {
            number: run.number,
            block: run.block,
            position: run.position,
            slot: run.slot,
            arm: run.arm_index,
            start_ns: run.start_ns,
            elapsed_ns: record.filter(|_| shown).map(|record| record.header.elapsed_ns),
            value: record.filter(|_| shown).map(|record| measure.value(record)),
            counted: counted(used, run),
            validity: validity.as_ref().map(|validity| validity.state),
            doubtful: validity.as_ref().map_or_else(Vec::new, |validity| validity.doubtful.clone()),
            basis: match (&run.ended, validity) {
                (Ended::Failed { reason }, _) => reason.clone(),
                (Ended::Finished, validity) => validity.map_or(String::new(), |validity| validity.basis),
            },
        }
    };
    used.contents.runs.iter().map(row).collect()
}

fn counted(used: &UsedBlocks<'_>, run: &RunRecord) -> Counted {
    if run.block.is_none() {
        return Counted::WarmUp;
    }
    if used.counts(run) {
        return Counted::Yes;
    }
    let block = used.marked.iter().find(|marked| run.block == Some(marked.block));
    // The reason is printed at the run that failed; the others of its block name that run.
    let run_of =
        |reason: &str| format!("its block: {}", reason.split_once(": ").map_or(reason, |(run, _)| run));
    let of_block =
        || block.map_or_else(|| "its block is not used".to_string(), |marked| run_of(&marked.reason));
    Counted::No { reason: fault(run).unwrap_or_else(of_block) }
}

/// Returns the device's limits, with the shares of the run that came closest to one.
pub(super) fn calibration(used: &UsedBlocks<'_>) -> Option<MeasuredLimits> {
    let found = used.contents.runs.iter().filter_map(|run| run.record.as_ref()?.calibration.clone());
    let most = |calibration: &MeasuredLimits| {
        let shares =
            calibration.shares.iter().map(|share| share.reached_bytes_per_s / share.limit_bytes_per_s);
        shares.fold(0.0, f64::max)
    };
    found.max_by(|one, two| most(one).total_cmp(&most(two)))
}

/// Returns the settings that all arms share.
pub(super) fn settings(used: &UsedBlocks<'_>) -> Vec<SettingRow> {
    let factors = &used.contents.plan.study.factors;
    let levels = || factors.iter().flat_map(|factor| &factor.levels);
    let varied = |name: &str| levels().any(|level| level.settings.iter().any(|set| set.name == name));
    let first = used.contents.runs.iter().find_map(|run| run.record.as_ref());
    let settings = first.map(|record| record.settings.iter()).into_iter().flatten();
    settings.filter(|setting| !varied(&setting.name)).cloned().collect()
}
