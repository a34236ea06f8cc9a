//! The table of rules, by subject.
//!
//! Thresholds of R and G rules are published ones; rules of other letters are this program's. A
//! rule about storage is silent if less than a tenth of DB time is I/O ([`IO_GATE`]), because no
//! latency matters then. Rules over traces of other programs ([`trace`]) have the elapsed time
//! instead.

mod cache;
mod doubts;
mod load;
mod log;
mod periods;
mod reads;
mod server;
mod sort;
mod time;
mod trace;
mod users;

pub(crate) use doubts::of_circumstances;

use crate::rule::FindingRule;
use crate::signals::Signals;
use plumb_record::WaitEvent;
use plumb_units::Nanos;

/// Oracle Database 2 Day + Performance Tuning Guide, Monitoring I/O.
const TDPPT: &str = "Oracle 2 Day + Performance Tuning Guide";
/// Oracle Database Performance Tuning Guide, chapter 10.
const TGDBA: &str = "Oracle Performance Tuning Guide, chapter 10";
const OWN: &str = "own";

/// Share of DB time in I/O below which rules about storage are silent.
const IO_GATE: f64 = 0.10;
/// Share of DB time below which the average of an event is not judged.
const EVENT_GATE: f64 = 0.05;

/// Returns every rule, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static FindingRule> {
    let groups = [
        doubts::RULES,
        time::RULES,
        log::RULES,
        periods::RULES,
        reads::RULES,
        cache::RULES,
        users::RULES,
        sort::RULES,
        server::RULES,
        trace::RULES,
        load::RULES,
    ];
    groups.into_iter().flatten()
}

/// True if I/O and commits have the share of DB time from which on storage matters.
fn is_io_bound(signals: &Signals) -> bool {
    // Tablespaces without DB time, as people paste them, leave it open.
    signals.db_time() == 0 && !signals.tablespaces.is_empty()
        || signals.class_share(&["User I/O", "System I/O", "Commit", "Configuration"]) >= IO_GATE
}

/// Prints a share: `41%`, `3.2%`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

fn average(wait: &WaitEvent) -> Nanos {
    Nanos(wait.time_ns / wait.waits.max(1))
}

/// Prints a saving with its share: `at most 3.30 s of 8.00 s DB time (41%)`.
fn at_most(signals: &Signals, ns: u64) -> String {
    if signals.db_time() == 0 {
        return format!("at most {}", Nanos(ns));
    }
    format!("at most {}", of_db_time(signals, ns.min(signals.db_time())))
}

/// Prints the waits of a cause as a saving, and the most it can be: `its own waits: 3.30 s of
/// 8.00 s DB time (41%); at most 6.00 s (75%) with what queues behind them, all but the CPU`.
/// Sessions queue behind a wait: without the log's device, commits that said 47% of DB time saved
/// 91%. The processor's time stays, so the rest of DB time is the bound.
fn own_waits(signals: &Signals, ns: u64) -> String {
    let own = format!("its own waits: {}", of_db_time(signals, ns));
    let most = signals.db_cpu_ns.map_or(0, |cpu| signals.db_time().saturating_sub(cpu));
    if most <= ns {
        return own;
    }
    let share = percent(signals.share(most));
    format!("{own}; at most {} ({share}) with what queues behind them, all but the CPU", Nanos(most))
}

/// Prints what a cause would take of its own waits if it were better, which is no bound either.
fn own_waits_less(signals: &Signals, ns: u64) -> String {
    format!("its own waits are less by {}", of_db_time(signals, ns))
}

/// Prints a time as a part of DB time: `3.30 s of 8.00 s DB time (41%)`.
fn of_db_time(signals: &Signals, ns: u64) -> String {
    format!("{} of {} DB time ({})", Nanos(ns), Nanos(signals.db_time()), percent(signals.share(ns)))
}

/// Prints the time and share of waits: `4.20 s in 10000 waits, 41% of DB time`.
fn waited(signals: &Signals, wait: &WaitEvent) -> String {
    let share = percent(signals.share(wait.time_ns));
    format!("{} in {} waits of {}, {share} of DB time", Nanos(wait.time_ns), count(wait.waits), average(wait))
}

fn count(number: u64) -> String {
    plumb_units::RowCount(number).to_string()
}
