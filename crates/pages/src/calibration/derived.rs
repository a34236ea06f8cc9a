//! Meaning of a calibration: a sentence for each question, and the parameters of optimizers.
//!
//! Fitness for transactions has the usual limits of readers of AWR reports:
//!
//! ```text
//!                        good to    slow from
//! one 8K read, median    2 ms       20 ms       flash or a cached array; db file sequential read
//! 4K write + fdatasync   5 ms       20 ms       log file parallel write
//! ```
//!
//! Limits: a rotating disk within both limits is called moderate, independent of its later load.

use super::number;
use plumb_calibrate::{AnswerSource, Calibration, DerivedFigure, DerivedKind, FigureKind};
use plumb_report::table::Facts;
use plumb_report::{Section, table};
use plumb_units::Nanos;

/// Median times up to which storage is good, and from which it is slow, microseconds.
struct Limits {
    good: f64,
    slow: f64,
}

const READ: Limits = Limits { good: 2_000.0, slow: 20_000.0 };
const LOG_WRITE: Limits = Limits { good: 5_000.0, slow: 20_000.0 };

/// Returns questions with their answers.
pub(super) fn words(calibration: &Calibration) -> Vec<(&'static str, String)> {
    let derived = calibration.derived();
    let of = |kind| derived.iter().find(|figure| figure.kind == kind);
    let median = |kind| calibration.figure(kind).map(|figure| figure.estimate.median);
    let mut words = Vec::new();
    if let Some(micros) = median(FigureKind::SmallReadLatency) {
        // Under a limit the rate is the limit's.
        let most = median(FigureKind::SmallReadIops)
            .filter(|_| calibration.max_rate.is_none())
            .map_or(String::new(), |most| format!("; at most {} a second", number(most)));
        words.push(("Reads", format!("one small random read takes {}{most}", time(micros))));
    }
    if let Some(one) = of(DerivedKind::CommitsOne) {
        let shared = of(DerivedKind::CommitsShared).map_or(String::new(), |shared| {
            format!(", 32 sessions that share log writes at most {}", number(shared.median))
        });
        words.push(("Commits", format!("one session commits {} times a second{shared}", number(one.median))));
    }
    if let Some(scan) = of(DerivedKind::Scan) {
        words.push(("Scans", format!("100 GB are read in {}", minutes(scan.median))));
    }
    if let Some(sustained) = &calibration.sustained {
        words.push(("Sustained", super::sustained::sentence(&sustained.levels())));
    }
    words.extend(fitness(calibration).map(|fit| ("Fit for", fit)));
    words
}

fn fitness(calibration: &Calibration) -> Option<String> {
    let median = |kind| Some(calibration.figure(kind)?.estimate.median);
    let (read, write) = (median(FigureKind::SmallReadLatency)?, median(FigureKind::DurableWrite)?);
    let figures = format!("a read takes {} and a log write {}", time(read), time(write));
    let fit = if read > READ.slow || write > LOG_WRITE.slow {
        let slow = if read > READ.slow { ("a read", READ.slow) } else { ("a log write", LOG_WRITE.slow) };
        format!("not for transactions: {figures}, and from {} on {} is slow", time(slow.1), slow.0)
    } else if read <= READ.good && write <= LOG_WRITE.good {
        format!("transactions: {figures} (good to {} and {})", time(READ.good), time(LOG_WRITE.good))
    } else {
        format!(
            "transactions at a moderate rate: {figures} (good to {} and {})",
            time(READ.good),
            time(LOG_WRITE.good)
        )
    };
    let doubted = calibration
        .measured()
        .any(|result| result.durable().is_some() && result.answer.source == AnswerSource::HostCacheSuspected);
    let doubt =
        if doubted { "; only if the log writes are durable, which their time makes doubtful" } else { "" };
    Some(fit + doubt)
}

pub(super) fn in_words(calibration: &Calibration) -> Option<Section> {
    let words = words(calibration);
    let mut facts = Facts::default();
    for (question, answer) in &words {
        facts.add(*question, answer);
    }
    (!words.is_empty()).then(|| Section::front("words", "In Words").facts(facts))
}

/// Returns the parameters of each optimizer in one text, with intervals and arithmetic.
pub(super) fn optimizers(calibration: &Calibration) -> Vec<(&'static str, String)> {
    let derived = calibration.derived();
    let of = |user: &'static str| {
        let ours = derived.iter().filter(|figure| figure.kind.user() == user);
        let said = ours.map(|DerivedFigure { kind, median, low, high, arithmetic }| {
            let interval = between(*low, *high).map_or(String::new(), |interval| format!(" {interval}"));
            format!("{} = {}{interval} ({arithmetic})", kind.name(), figures(*median))
        });
        (user, said.collect::<Vec<_>>().join("; "))
    };
    ["PostgreSQL", "Oracle"].into_iter().map(of).filter(|(_, said)| !said.is_empty()).collect()
}

fn between(low: f64, high: f64) -> Option<String> {
    (low < high).then(|| format!("[{}, {}]", figures(low), figures(high)))
}

/// Why a parameter of an optimizer may not be taken as it is.
pub(super) const CAVEAT: &str = "costs of the device; where most blocks are in a cache, a random read costs less, and \
                                 random_page_cost is set lower";

/// Returns the arithmetic of each derived figure, and the settings of optimizers.
pub(super) fn section(calibration: &Calibration) -> Option<Section> {
    let derived = calibration.derived();
    let table = table!(figure in &derived; {
        let DerivedFigure { kind, median, low, high, arithmetic } = figure;
        let interval = between(*low, *high).unwrap_or_default();
    } [
        text "For" => kind.user(),
        text "Figure" => kind.name(),
        numbers "Value" => figures(*median),
        text "Unit" => kind.unit(),
        text "Interval" => interval,
        wrapped(44) "Arithmetic" => arithmetic,
    ]);
    (!derived.is_empty()).then(|| Section::front("derived", "What Follows").note(CAVEAT).table(table))
}

/// Prints three significant figures, because a read of flash is a fraction of a millisecond.
fn figures(value: f64) -> String {
    if value < 0.995 { format!("{value:.3}") } else { number(value) }
}

fn time(micros: f64) -> Nanos {
    Nanos((micros * 1e3) as u64)
}

fn minutes(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0),
    }
}
