//! Durable log writes: a sync call after the write, or a file opened for durable writes.
//!
//! The cheapest method depends on the device and the file system. `auto` measures: it writes one
//! log block a few times by each method in turn, to an unused log file. It runs when the log is
//! opened, before anything is timed, and takes as long as some thirty commits. It keeps fdatasync
//! unless another method is clearly faster: by its lower quartile, and in all rounds but one in
//! eight. By the quartile alone, a device on which all four methods cost the same changed its
//! method between openings. That spoils a comparison of runs.
//!
//! If sessions share threads, `auto` takes the durable write. A ring hands a sync to a kernel
//! thread, and a session that syncs in a call of its own stops the others of its thread. With 32
//! sessions on one thread, fdatasync made 70K commits/s and open_datasync 104K, both before
//! [`group_commit`](super::group_commit).

use super::log_file::FILE_HEADER;
use crate::EngineError;
use crate::access::Access;
pub use crate::settings::SyncMethod;
use crate::settings::{Setting, Settings};
use plumb_events::{Event, IoStream, Session, now};
use plumb_io::{Arena, Durability, Method, MethodKind, OpenMode, Operation, Request};
use plumb_units::Nanos;
use std::path::Path;
use std::sync::Arc;

/// Writes by each method; the first one is not counted.
const ROUNDS: usize = 9;
/// Fewest rounds on a slow device, once [`LONG`] has passed.
const ROUNDS_LEAST: usize = 4;
const LONG: Nanos = Nanos(50_000_000);
/// A device whose first durable writes take this long gets no more rounds,
/// because opening would take minutes.
const TOO_LONG: Nanos = Nanos(2_000_000_000);
/// Another method must need less than this share of fdatasync's time, and may lose one round in
/// [`LOST_ONE_IN`]. An equal method does the latter in 9 of 256 openings.
const CLEARLY: f64 = 0.95;
const LOST_ONE_IN: usize = 8;

impl SyncMethod {
    /// All methods, in order of preference.
    pub const ALL: [SyncMethod; 4] =
        [SyncMethod::Fdatasync, SyncMethod::OpenDatasync, SyncMethod::Fsync, SyncMethod::OpenSync];

    /// Returns the durability with which a file is opened for the method.
    pub const fn durability(self) -> Durability {
        match self {
            SyncMethod::Fdatasync | SyncMethod::Fsync => Durability::OnSync,
            SyncMethod::OpenDatasync => Durability::Data,
            SyncMethod::OpenSync => Durability::All,
        }
    }

    /// Returns the operation of one durable write.
    pub const fn operation(self) -> Operation {
        match self {
            SyncMethod::Fdatasync => Operation::WriteAndSync,
            SyncMethod::Fsync => Operation::WriteAndSyncAll,
            SyncMethod::OpenDatasync | SyncMethod::OpenSync => Operation::Write,
        }
    }
}

/// The sync method of a log, and the reason for it.
#[derive(Debug, Clone)]
pub struct SyncChoice {
    /// The chosen method.
    pub method: SyncMethod,
    /// The reason, as half a sentence for reports.
    pub reason: String,
}

impl SyncChoice {
    /// Chooses as the setting says; `auto` measures on an unused log file, if there is one.
    pub(super) fn of(
        settings: &Settings,
        session: &Session,
        access: &Access,
        unused: Option<&Path>,
        log_block: u64,
    ) -> Result<SyncChoice, EngineError> {
        let choice = |method, why: &str| Ok(SyncChoice { method, reason: why.to_string() });
        let plain = |why| choice(SyncMethod::Fdatasync, why);
        match (settings.log.log_sync_method, unused) {
            (Some(method), _) => Ok(SyncChoice { method, reason: settings.assigned(Setting::LogSyncMethod) }),
            (None, _) if access.disk.is_memory() => {
                plain("auto: files in memory have no methods to choose from")
            }
            (None, _) if settings.io.shared_servers > 0 => choice(
                SyncMethod::OpenDatasync,
                "auto: sessions share threads, and a ring leaves a sync to a thread of the kernel",
            ),
            (None, None) => plain("auto: every log file is needed, so none can be measured on"),
            (None, Some(path)) => measure(session, access, path, log_block as usize),
        }
    }
}

/// Writes by all methods in turn, and chooses by the lower quartiles.
fn measure(session: &Session, access: &Access, path: &Path, bytes: usize) -> Result<SyncChoice, EngineError> {
    let mut channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
    let mut buffer = Arena::buffers(bytes, 1)?.1.remove(0);
    let open = |method: SyncMethod| {
        access.disk.open_durable(path, OpenMode::Write, access.direct, method.durability()).map(Arc::new)
    };
    let files = SyncMethod::ALL.map(open);
    let mut times = SyncMethod::ALL.map(|_| Vec::with_capacity(ROUNDS));
    let (mut offset, start) = (FILE_HEADER, now());
    for round in 0..ROUNDS {
        if round >= ROUNDS_LEAST && now().saturating_sub(start) > LONG {
            break;
        }
        for ((method, file), times) in SyncMethod::ALL.into_iter().zip(&files).zip(&mut times) {
            let file = file.as_ref().map_err(|error| EngineError::Log {
                path: path.to_path_buf(),
                why: format!(
                    "it cannot be opened for {}: {error}; name another log_sync_method",
                    method.name()
                ),
            })?;
            let begin = now();
            if round < ROUNDS_LEAST && begin.saturating_sub(start) > TOO_LONG {
                let reason = format!(
                    "auto: {} durable writes took {}, so no other method was measured",
                    (offset - FILE_HEADER) / bytes as u64,
                    begin.saturating_sub(start)
                );
                return Ok(SyncChoice { method: SyncMethod::Fdatasync, reason });
            }
            let request = Request {
                operation: method.operation(),
                file: Arc::clone(file),
                offset,
                buffer,
                range: 0..bytes,
                event: Event::LogFileParallelWrite,
                stream: IoStream::ProbeWrites,
                tag: 0,
            };
            channel.submit(session, request)?;
            buffer = channel.wait(session, Event::LogFileParallelWrite)?.buffer;
            times.push(now().saturating_sub(begin).0);
            offset += bytes as u64;
        }
    }
    Ok(choose(&times.map(|times| times[1..].to_vec())))
}

/// Returns the lower quartile in microseconds: other work on the machine lengthens writes only.
fn lower_quartile(times: &[u64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 4] as f64 / 1000.0
}

/// Chooses by the times of each round in nanoseconds, in the order of [`SyncMethod::ALL`].
fn choose(times: &[Vec<u64>; 4]) -> SyncChoice {
    let quartiles = times.each_ref().map(|times| lower_quartile(times));
    let wins = |method: usize| times[method].iter().zip(&times[0]).filter(|(own, plain)| own < plain).count();
    let rounds = times[0].len();
    let is_clear = |method: usize| {
        quartiles[method] < CLEARLY * quartiles[0] && rounds - wins(method) <= rounds / LOST_ONE_IN
    };
    let clear = (1..times.len()).filter(|method| is_clear(*method));
    let best = clear.min_by(|one, other| quartiles[*one].total_cmp(&quartiles[*other])).unwrap_or(0);
    let said = SyncMethod::ALL.iter().zip(quartiles).map(|(method, us)| format!("{} {us:.0}", method.name()));
    let said: Vec<String> = said.collect();
    let why = match best {
        0 => "no other is clearly faster than fdatasync".to_string(),
        best => format!("faster than fdatasync in {} of {rounds} rounds", wins(best)),
    };
    let reason = format!("auto measured, in microseconds: {}; {why}", said.join(", "));
    SyncChoice { method: SyncMethod::ALL[best], reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_one_request_to_a_suitable_file() {
        let of = |method: SyncMethod| (method.operation(), method.durability());
        assert_eq!(of(SyncMethod::Fdatasync), (Operation::WriteAndSync, Durability::OnSync));
        assert_eq!(of(SyncMethod::Fsync), (Operation::WriteAndSyncAll, Durability::OnSync));
        assert_eq!(of(SyncMethod::OpenDatasync), (Operation::Write, Durability::Data));
        assert_eq!(of(SyncMethod::OpenSync), (Operation::Write, Durability::All));
    }

    #[test]
    fn another_method_is_taken_only_when_it_is_clearly_faster() {
        let even = |us: [u64; 4]| us.map(|us| vec![1000 * us; 8]);
        let chosen = |us| choose(&even(us)).method;
        assert_eq!(chosen([100, 96, 110, 120]), SyncMethod::Fdatasync);
        assert_eq!(chosen([100, 94, 110, 120]), SyncMethod::OpenDatasync);
        assert_eq!(chosen([100, 94, 110, 50]), SyncMethod::OpenSync);
        assert_eq!(
            choose(&even([100, 94, 110, 50])).reason,
            "auto measured, in microseconds: fdatasync 100, open_datasync 94, fsync 110, open_sync 50; faster than fdatasync in 8 of 8 rounds"
        );
    }

    #[test]
    fn a_method_that_loses_two_rounds_is_not_chosen() {
        let with_lost = |lost: usize| {
            let mut times = [100, 50, 110, 110].map(|us| vec![1000 * us; 8]);
            times[1][..lost].fill(101_000);
            choose(&times)
        };
        assert_eq!(with_lost(1).method, SyncMethod::OpenDatasync);
        assert_eq!(with_lost(2).method, SyncMethod::Fdatasync);
        assert!(with_lost(2).reason.ends_with("; no other is clearly faster than fdatasync"));
    }
}
