//! Rules over what a device did (iostat, sar) and over a load test (fio): what was asked of
//! storage, and what it gave.
//!
//! There is no DB time of which anything is a share, so that no finding has a saving. The worst
//! device or job of each rule is named.

use super::{OWN, TDPPT, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{DeviceSignals, JobSignals, Signals};
use plumb_units::Nanos;

/// Busy share and requests in flight from which on a device is asked for more than it answers.
const BUSY: f64 = 0.9;
const QUEUE: f64 = 2.0;
/// Time of a request from which on a device without a queue is slow.
const SLOW_S: f64 = 0.010;
/// Busy share below which no device held anything back.
const IDLE: f64 = 0.10;
/// Share of the interval in flushes that is worth a word.
const FLUSHES: f64 = 0.10;
/// Rate of the busiest sample over the mean, and the least mean.
const BURST: f64 = 5.0;
const BURST_RATE: f64 = 10.0;
/// Runtime below which a test says little.
const SHORT_S: f64 = 10.0;
/// Requests in flight, of those asked for, below which the depth was not reached.
const REACHED: f64 = 0.5;
/// p99 over the mean from which on the tail is named.
const TAIL: f64 = 5.0;
/// Submission, of the whole time of a request.
const SUBMISSION: f64 = 0.3;
/// CPU of a process of the test.
const CPU: f64 = 0.9;

const fn rule(id: &'static str, rank: Rank, judge: fn(&Signals) -> Option<Observed>) -> FindingRule {
    FindingRule { id, rank, signal: "", threshold: "", origin: OWN, caveat: "", advice: "", judge }
}

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        signal: "busy time and requests in flight of a device",
        threshold: "90% busy with 2 in flight and more",
        caveat: "flash and arrays answer several requests at once: 100% busy is not their limit",
        advice: "find who asks (biosnoop, plumb snoop): fewer or larger requests, or another device",
        ..rule("I1", Rank::Remark, saturated)
    },
    FindingRule {
        signal: "time of a read or a write without a queue",
        threshold: "more than 10 ms with less than 2 in flight",
        origin: TDPPT,
        caveat: "a mean hides whether all requests are slow or a few are very slow",
        advice: "the time is of the device and its path: measure it without the load (plumb calibrate)",
        ..rule("I2", Rank::Remark, slow)
    },
    FindingRule {
        signal: "time of flushes, of the interval",
        threshold: "10% and more",
        advice: "commits and syncs wait for the device's cache: group them, or use one with protected memory",
        ..rule("I3", Rank::Remark, flushes)
    },
    FindingRule {
        signal: "requests of the busiest sample over their mean",
        threshold: "5 times and more, from a mean of 10/s",
        advice: "judge the samples of the bursts: means hide them",
        ..rule("I4", Rank::Remark, bursts)
    },
    FindingRule {
        signal: "busy time of all devices",
        threshold: "less than 10% and less than one in flight",
        caveat: "short bursts between samples are not seen",
        advice: "look for the time elsewhere: CPU, locks, network",
        ..rule("I5", Rank::Remark, idle)
    },
    FindingRule {
        signal: "errors of a test",
        threshold: "any",
        advice: "mend the cause and run it again: a job that fails early or retries has other figures",
        ..rule("F1", Rank::Doubt, errors)
    },
    FindingRule {
        signal: "direct I/O of a test",
        threshold: "direct=0 where options are printed",
        advice: "give direct=1, or test a file several times larger than memory",
        ..rule("F2", Rank::Doubt, buffered)
    },
    FindingRule {
        signal: "runtime of a test",
        threshold: "less than 10 s",
        advice: "give time_based with a runtime of a minute or more, after a ramp_time",
        ..rule("F3", Rank::Doubt, short)
    },
    FindingRule {
        signal: "requests in flight, by rate x time, of iodepth x numjobs",
        threshold: "less than half",
        advice: "the jobs did not ask as deep as they say: an asynchronous engine, direct=1, or more jobs",
        ..rule("F4", Rank::Remark, shallow)
    },
    FindingRule {
        signal: "p99 over the mean time of a request",
        threshold: "5 times and more",
        advice: "size a database by the tail: log_avg_msec with write_lat_log shows when it happens",
        ..rule("F5", Rank::Remark, tail)
    },
    FindingRule {
        signal: "time of submission, of that of a request",
        threshold: "30% and more",
        advice: "submission waits: for the queue (nr_requests), for a sync engine, or for a CPU",
        ..rule("F6", Rank::Remark, submission)
    },
    FindingRule {
        signal: "CPU of a process of the test",
        threshold: "90% and more",
        advice: "the test measures its CPU: more jobs, larger requests, or a cheaper engine",
        ..rule("F7", Rank::Remark, processor)
    },
];

fn time(seconds: f64) -> String {
    Nanos((seconds * 1e9) as u64).to_string()
}

/// The item with the largest of the figures that pass the threshold.
fn worst<T>(items: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<(&T, f64)> {
    let found = items.iter().filter_map(|item| Some((item, figure(item)?)));
    found.max_by(|one, two| one.1.total_cmp(&two.1))
}

fn saturated(signals: &Signals) -> Option<Observed> {
    let queued =
        |device: &DeviceSignals| device.queue.filter(|queue| *queue >= QUEUE && device.busy >= Some(BUSY));
    let (device, queue) = worst(&signals.devices, queued)?;
    let (rate, busy) = (device.requests_per_s, device.busy?);
    (rate > 0.0).then(|| {
        Observed::new(
            format!("{} is asked for more than it answers", device.name),
            format!(
                "{rate:.0} requests a second keep it {} busy with {queue:.1} in flight: each takes {}, and {} if it were \
                 the only one",
                percent(busy),
                time(queue / rate),
                time(busy / rate)
            ),
        )
    })
}

fn slow(signals: &Signals) -> Option<Observed> {
    let of = |device: &DeviceSignals| {
        let most = device.read_s.unwrap_or(0.0).max(device.write_s.unwrap_or(0.0));
        (most > SLOW_S && device.queue.is_none_or(|queue| queue < QUEUE)).then_some(most)
    };
    let (device, most) = worst(&signals.devices, of)?;
    let what = if device.read_s == Some(most) { "a read" } else { "a write" };
    Some(Observed::new(
        format!("{} is slow although it is not overloaded", device.name),
        format!(
            "{what} takes {} on average with {:.1} requests in flight, at {:.0} requests a second",
            time(most),
            device.queue.unwrap_or(0.0),
            device.requests_per_s
        ),
    ))
}

fn flushes(signals: &Signals) -> Option<Observed> {
    let share = |device: &DeviceSignals| {
        let [rate, seconds] = device.flushes?;
        Some(rate * seconds).filter(|share| *share >= FLUSHES)
    };
    let (device, share) = worst(&signals.devices, share)?;
    let [rate, seconds] = device.flushes?;
    Some(Observed::new(
        format!("{} spends its time flushing its cache", device.name),
        format!("{rate:.0} flushes a second of {} are {} of the interval", time(seconds), percent(share)),
    ))
}

fn bursts(signals: &Signals) -> Option<Observed> {
    let times = |device: &DeviceSignals| {
        let most = device.most_per_s?;
        let is_burst = device.requests_per_s >= BURST_RATE && most >= BURST * device.requests_per_s;
        is_burst.then(|| most / device.requests_per_s)
    };
    let (device, times) = worst(&signals.devices, times)?;
    Some(Observed::new(
        format!("requests of {} come in bursts", device.name),
        format!(
            "{:.0} a second in the busiest sample are {times:.1} times the mean of {:.0}",
            device.most_per_s?, device.requests_per_s
        ),
    ))
}

fn idle(signals: &Signals) -> Option<Observed> {
    let is_idle = |device: &DeviceSignals| {
        device.busy.is_some_and(|busy| busy < IDLE) && device.queue.is_none_or(|queue| queue < 1.0)
    };
    if signals.devices.is_empty() || !signals.devices.iter().all(is_idle) {
        return None;
    }
    let (device, busy) = worst(&signals.devices, |device| device.busy)?;
    Some(Observed::new(
        "storage held nothing back in this interval",
        format!("the busiest device, {}, was busy for {}", device.name, percent(busy)),
    ))
}

fn errors(signals: &Signals) -> Option<Observed> {
    let (job, count) = worst(&signals.jobs, |job| Some(job.errors as f64).filter(|count| *count > 0.0))?;
    let evidence = format!("{} ({count:.0} in all)", job.error);
    Some(Observed::new("the test failed, and its figures are those of a failed run", evidence))
}

fn buffered(signals: &Signals) -> Option<Observed> {
    let job = signals.jobs.iter().find(|job| job.direct == Some(false))?;
    Some(Observed::new(
        "the figures are those of the page cache, not of the device",
        format!("{} has not direct=1", job.name),
    ))
}

fn short(signals: &Signals) -> Option<Observed> {
    let (job, runtime) = worst(&signals.jobs, |job| Some(job.runtime_s).filter(|seconds| *seconds > 0.0))?;
    (runtime < SHORT_S).then(|| {
        let evidence = format!("{} ran for {}", job.name, time(runtime));
        Observed::new("the test is too short: caches and clocks have not settled", evidence)
    })
}

fn shallow(signals: &Signals) -> Option<Observed> {
    let missing = |job: &JobSignals| {
        let (depth, flown) = (job.depth.filter(|depth| *depth >= 2.0)?, job.in_flight?);
        (flown < REACHED * depth).then_some(depth / flown.max(1e-9))
    };
    let (job, _) = worst(&signals.jobs, missing)?;
    Some(Observed::new(
        format!("{} asked less deep than its options say", job.name),
        format!(
            "rate x time of its requests is {:.1} in flight, of {:.0} that iodepth x numjobs allow",
            job.in_flight?, job.depth?
        ),
    ))
}

fn tail(signals: &Signals) -> Option<Observed> {
    let times = |job: &JobSignals| {
        let times = job.p99_s? / job.mean_s.filter(|mean| *mean > 0.0)?;
        (times >= TAIL).then_some(times)
    };
    let (job, times) = worst(&signals.jobs, times)?;
    Some(Observed::new(
        format!("one request of {} in a hundred is far slower than the mean", job.name),
        format!("p99 {} is {times:.1} times the mean of {}", time(job.p99_s?), time(job.mean_s?)),
    ))
}

fn submission(signals: &Signals) -> Option<Observed> {
    let share = |job: &JobSignals| {
        let (submission, mean) = (job.submission_s?, job.mean_s?);
        Some(submission / (submission + mean)).filter(|share| *share >= SUBMISSION)
    };
    let (job, share) = worst(&signals.jobs, share)?;
    Some(Observed::new(
        format!("{} waits to hand over its requests", job.name),
        format!("{} of {} is submission", percent(share), time(job.submission_s? + job.mean_s?)),
    ))
}

fn processor(signals: &Signals) -> Option<Observed> {
    let (job, share) = worst(&signals.jobs, |job| job.cpu.filter(|share| *share >= CPU))?;
    Some(Observed::new(
        format!("{} is limited by its processor", job.name),
        format!("a process uses {} of one", percent(share)),
    ))
}
