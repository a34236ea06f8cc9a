//! The log writer: sequential durable writes, each timed until it is durable.
//!
//! An eighth of the time is a ramp, because the first writes meet cold code and an idle disk. A
//! full zeroed log is written again from its start. A full allocated log ends the measurement,
//! because only the first write of each block counts.

use super::TaskRunner;
use super::requests::stamp;
use crate::files::LogFile;
use crate::measure::Traffic;
use crate::pace::Pace;
use crate::plan::{DurableMethod, DurablePoint};
use crate::random::Random;
use crate::{CalibrateError, DeviceEvidence, LoadMeasurement, Measurement};
use plumb_events::{Recorder, Role, now};
use plumb_host::readings;
use plumb_io::Arena;
use plumb_units::Nanos;

/// Divisor of the measured time that gives the ramp.
const RAMP_PARTS: u64 = 8;

/// Writes one durable write after the other, and measures for `time`.
pub(crate) fn run(
    runner: &TaskRunner<'_>,
    point: DurablePoint,
    mut random: Random,
    time: Nanos,
) -> Result<Measurement, CalibrateError> {
    let recorder = Recorder::new();
    let session = recorder.session(Role::CalibrationLogWriter);
    let mut log = LogFile::open(runner.scratch, runner.logs, point)?;
    let (_arena, mut buffers) = Arena::buffers(point.request_bytes as usize, 1)?;
    let Some(mut buffer) = buffers.pop() else { unreachable!("one was asked for") };
    random.fill(&mut buffer);
    let (mut number, mut load, mut writes) = (random.word(), LoadMeasurement::default(), 0);
    let cpu = runner.cpu.read();
    let mut pace = Pace::of(runner.max_rate, 1);
    let mut at = now();
    let mut measured_from = at + Nanos(time.0 / RAMP_PARTS);
    let end = measured_from + time;
    while at < end && log.has_room(writes) {
        if writes % 64 == 0 {
            runner.stop.check()?;
        }
        stamp(&mut buffer, &mut number);
        pace.wait();
        let begin = now();
        buffer = log.write(&session, buffer, writes)?;
        at = now();
        writes += 1;
        if begin >= measured_from {
            load.writes += 1;
            load.latency.add(at.saturating_sub(begin));
        } else {
            // A write that started in the ramp ends it, so that the measurement starts with a whole
            // write.
            measured_from = measured_from.max(at);
        }
    }
    let cpu = runner.cpu.read().since(&cpu);
    // Read before the log's ring is closed, because its workers end with it.
    let io_wq_workers = readings::io_wq_workers().unwrap_or(0);
    log.close(runner.scratch)?;
    let asked = Traffic { requests: writes, read_bytes: 0, write_bytes: writes * point.request_bytes };
    let syncs = if point.method == DurableMethod::None { 0 } else { writes };
    let evidence = DeviceEvidence { asked, syncs, io_wq_workers, ..DeviceEvidence::default() };
    let elapsed_ns = at.saturating_sub(measured_from).0;
    Ok(Measurement { elapsed_ns, loads: vec![load], cpu_ns: cpu.time.0, cycles: cpu.cycles, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogSpace;
    use crate::files::{Logs, ScratchDirectory, Volume};
    use crate::fixture::{memory_file, place};
    use crate::measure::{CpuMeter, DeviceMeter};
    use crate::progress::StopCheck;
    use plumb_io::{DirectIo, Disk};
    use plumb_units::Bytes;

    #[test]
    fn every_way_writes_both_logs() {
        let (_directory, device) = place();
        let log_bytes = Bytes(Bytes::M);
        let scratch = ScratchDirectory::create(Disk::Kernel, &device.path).expect("a directory");
        let stop = StopCheck::new(&());
        let runner = TaskRunner {
            scratch: &scratch,
            volume: &Volume::single(memory_file(Bytes(Bytes::M))),
            logs: &Logs::create(&scratch, log_bytes, None, &stop).expect("the logs"),
            meter: &DeviceMeter::of([&device]),
            cpu: &CpuMeter::start(),
            stop: &stop,
            seed: 1,
            max_rate: None,
        };
        {
            for method in DurableMethod::ALL {
                for (space, direct_io) in [
                    (LogSpace::Zeroed, DirectIo::Off),
                    (LogSpace::Allocated, DirectIo::Off),
                    (LogSpace::Zeroed, DirectIo::Required),
                ] {
                    let point = DurablePoint { method, direct_io, request_bytes: 4096, space };
                    if let Some(why) = point.refusal(&device) {
                        println!("{point}: {why}: not tested");
                        continue;
                    }
                    let found = run(&runner, point, Random::seeded(1), Nanos(10_000_000))
                        .unwrap_or_else(|error| panic!("{point}: {error}"));
                    let asked = found.evidence.asked;
                    assert_eq!(asked.write_bytes, asked.requests * 4096, "{point}");
                    assert!(asked.requests > 0, "{point}");
                    let room = log_bytes.0 / 4096;
                    assert!(space == LogSpace::Zeroed || asked.requests <= room, "{point} is written once");
                    assert!(!runner.scratch.path_of("log-allocated").exists(), "{point}");
                }
            }
        }
    }
}
