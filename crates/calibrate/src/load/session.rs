//! Tasks one at a time, on a file and a log that stay.
//!
//! [`crate::calibrate`] makes its file, measures a plan and removes the file. A comparison with
//! another tool needs the same measurement in a different order, on a file that the other tool can
//! access. A [`TaskSession`] provides the path of that file, and measures with the [`TaskRunner`]
//! of calibrations.
//!
//! Limits: one task at a time. Dropping the session removes the file and its directory, so the
//! other tool must have finished.

use super::TaskRunner;
use crate::files::{
    Content, DataFile, Filling, Flexible, Logs, ScratchDirectory, Size, Volume, check_place, fitting_length,
};
use crate::measure::{CpuMeter, DeviceMeter};
use crate::progress::StopCheck;
use crate::{CalibrateError, Measurement, ProgressObserver, Task};
use plumb_host::device::DeviceDescription;
use plumb_io::{Disk, Method, MethodKind};
use plumb_units::{Bytes, Nanos};
use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;

/// Requests in flight while the file is filled.
const FILL_OUTSTANDING: usize = 8;

/// A file of random bytes and a log of zeros, both written once and durable.
pub struct TaskSession<'a> {
    scratch: ScratchDirectory,
    volume: Volume,
    logs: Logs,
    meter: DeviceMeter,
    cpu: CpuMeter,
    stop: StopCheck<'a>,
    seed: u64,
    /// Number of the next repeat, unique in the session.
    order: Cell<usize>,
}

impl fmt::Debug for TaskSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("TaskSession");
        fields.field("scratch", &self.scratch).field("volume", &self.volume).finish_non_exhaustive()
    }
}

impl<'a> TaskSession<'a> {
    /// Makes a file of `length` and a log of `log_bytes` under `device.path`. Fails
    /// if the place is unsuitable (no device, no space, no permission to write), a
    /// write fails, or `observer` cancels.
    pub fn create(
        device: &DeviceDescription,
        length: Bytes,
        log_bytes: Bytes,
        seed: u64,
        observer: &'a dyn ProgressObserver,
    ) -> Result<TaskSession<'a>, CalibrateError> {
        check_place(device)?;
        let size = Size { wanted: length, flexible: Flexible::No, beside: log_bytes };
        let length = fitting_length(&device.path, device.space.free, size)?;
        let scratch = ScratchDirectory::create(Disk::Kernel, &device.path)?;
        let method = Method::start(MethodKind::Threads, FILL_OUTSTANDING)?;
        let stop = StopCheck::new(observer);
        // No time limit, because a shorter file would not be the requested one.
        let filling = Filling {
            method: &method,
            content: Content::Random(seed),
            time_max: Nanos(u64::MAX),
            max_rate: None,
            stop: &stop,
        };
        let file = DataFile::create(&scratch, &device.direct_io, length, &filling)?;
        let logs = Logs::create(&scratch, log_bytes, None, &stop)?;
        let (meter, cpu) = (DeviceMeter::of([device]), CpuMeter::start());
        let volume = Volume::single(file);
        Ok(TaskSession { scratch, volume, logs, meter, cpu, stop, seed, order: Cell::new(0) })
    }

    /// Returns the path of the points' file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.scratch.path_of(DataFile::NAME)
    }

    /// Returns the path of the zeroed log for durable writes.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.scratch.path_of(Logs::ZEROED)
    }

    /// Measures a task once, for `time` after a ramp of an eighth of it.
    pub fn measure(&self, task: &Task, time: Nanos) -> Result<Measurement, CalibrateError> {
        self.runner().run(task, self.order.replace(self.order.get() + 1), time)
    }

    pub(crate) fn runner(&self) -> TaskRunner<'_> {
        let TaskSession { scratch, volume, logs, meter, cpu, stop, seed, .. } = self;
        TaskRunner { scratch, volume, logs, meter, cpu, stop, seed: *seed, max_rate: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::place;
    use crate::{Buffers, DurableMethod, DurablePoint, Load, LogSpace, Point, Ring, leftovers};
    use plumb_io::DirectIo;

    #[test]
    fn a_session_measures_any_task_and_leaves_nothing() {
        let (directory, device) = place();
        let session =
            TaskSession::create(&device, Bytes(64 * Bytes::M), Bytes(Bytes::M), 1, &()).expect("one");
        let point = Point {
            loads: vec![Load::random_read(Bytes(8192), 2)],
            threads: 1,
            method: MethodKind::Threads,
            direct_io: DirectIo::Off,
            buffers: Buffers::Ordinary,
            ring: Ring::default(),
        };
        let log = DurablePoint {
            method: DurableMethod::Fdatasync,
            direct_io: DirectIo::Off,
            request_bytes: 4096,
            space: LogSpace::Zeroed,
        };
        for task in [Task::Point(point), Task::Durable(log)] {
            let measured = session.measure(&task, Nanos(200_000_000)).expect("a measurement");
            assert!(measured.iops(0) > 0.0, "{task}");
        }
        assert_eq!(std::fs::metadata(session.file()).expect("the file").len(), 64 * Bytes::M);
        assert_eq!(std::fs::metadata(session.log()).expect("the log").len(), Bytes::M);
        drop(session);
        assert!(leftovers(directory.path()).is_empty());
    }
}
