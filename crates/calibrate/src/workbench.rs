//! A workbench: a file and a log that stay, and any task on them, one at a time.
//!
//! [`crate::calibrate`] makes its file, measures a plan and removes it. Whoever holds
//! plumb against another tool needs the same measurement on a file that the other tool
//! reaches too, in an order of his own: this is that file, by its path, and that
//! measurement, by the runner that calibrations use. There is nothing here to measure
//! with besides.
//!
//! Limits: one task at a time. The file and its directory are removed when this is
//! dropped, so the other tool must be done by then.

use crate::durable::Logs;
use crate::effort::EffortMeter;
use crate::evidence::DeviceMeter;
use crate::file::{CalibrationFile, Filling, Flexible, Size, check_place, fitting_length};
use crate::home::Home;
use crate::runner::Runner;
use crate::watch::Guard;
use crate::{CalibrateError, Measurement, Task, Watch};
use plumb_io::device::DeviceDescription;
use plumb_io::{Disk, Method, MethodKind};
use plumb_units::{Bytes, Nanos};
use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;

/// Requests in flight while the file is filled.
const FILL_OUTSTANDING: usize = 8;

/// A file of random bytes and a log of zeros, both written once and durable.
pub struct Workbench<'a> {
    home: Home,
    file: CalibrationFile,
    logs: Logs,
    meter: DeviceMeter,
    effort: EffortMeter,
    watch: &'a dyn Watch,
    seed: u64,
    /// Tells each repeat from all others.
    order: Cell<usize>,
}

impl fmt::Debug for Workbench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workbench")
            .field("home", &self.home)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl<'a> Workbench<'a> {
    /// Makes a file of `length` and a log of `log_bytes` under `device.path`.
    ///
    /// # Errors
    /// When the place will not do (no device, no space, no right to write), a write
    /// fails, or `watch` asks to stop.
    pub fn create(
        device: &DeviceDescription,
        length: Bytes,
        log_bytes: Bytes,
        seed: u64,
        watch: &'a dyn Watch,
    ) -> Result<Workbench<'a>, CalibrateError> {
        check_place(device)?;
        let size = Size { wanted: length, flexible: Flexible::No, beside: log_bytes };
        let length = fitting_length(&device.path, device.space.free, size)?;
        let home = Home::create(Disk::Kernel, &device.path)?;
        let method = Method::start(MethodKind::Threads, FILL_OUTSTANDING)?;
        let guard = Guard::new(watch);
        // However long it takes: a shorter file would not be the one that was asked for.
        let filling = Filling { method: &method, seed, time_max: Nanos(u64::MAX), guard: &guard };
        let file = CalibrationFile::create(&home, &device.direct_io, length, &filling)?;
        let logs = Logs::create(&home, log_bytes, &guard)?;
        let (meter, effort) = (DeviceMeter::of(device), EffortMeter::start());
        Ok(Workbench { home, file, logs, meter, effort, watch, seed, order: Cell::new(0) })
    }

    /// The file that points are measured on.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.home.path_of(CalibrationFile::NAME)
    }

    /// The zeroed log that durable writes go to.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.home.path_of(Logs::ZEROED)
    }

    /// Measures a task once, for `time` after a ramp of an eighth of it.
    ///
    /// # Errors
    /// When a request fails, or the watch asks to stop.
    pub fn measure(&self, task: &Task, time: Nanos) -> Result<Measurement, CalibrateError> {
        let order = self.order.replace(self.order.get() + 1);
        let guard = Guard::new(self.watch);
        let runner = Runner {
            home: &self.home,
            file: &self.file,
            logs: &self.logs,
            meter: &self.meter,
            effort: &self.effort,
            guard: &guard,
            seed: self.seed,
        };
        runner.run(task, order, time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::place;
    use crate::{
        Access, Buffers, DurableMethod, DurablePoint, Load, Pattern, Point, Ring, Space, Way, leftovers,
    };

    #[test]
    fn a_workbench_measures_any_task_and_leaves_nothing() {
        let (directory, device) = place();
        let bench = Workbench::create(&device, Bytes(64 * Bytes::M), Bytes(Bytes::M), 1, &()).expect("one");
        let load = Load {
            pattern: Pattern::Random,
            request_bytes: 8192,
            write_percent: 0,
            outstanding: 2,
            zone_bytes: None,
        };
        let point = Point {
            loads: vec![load],
            threads: 1,
            way: Way::Threads,
            access: Access::Buffered,
            buffers: Buffers::Ordinary,
            ring: Ring::default(),
        };
        let log = DurablePoint {
            method: DurableMethod::Fdatasync,
            access: Access::Buffered,
            request_bytes: 4096,
            space: Space::Zeroed,
        };
        for task in [Task::Point(point), Task::Durable(log)] {
            let measured = bench.measure(&task, Nanos(10_000_000)).expect("a measurement");
            assert!(measured.iops(0) > 0.0, "{task}");
        }
        assert_eq!(std::fs::metadata(bench.file()).expect("the file").len(), 64 * Bytes::M);
        assert_eq!(std::fs::metadata(bench.log()).expect("the log").len(), Bytes::M);
        drop(bench);
        assert!(leftovers(directory.path()).is_empty());
    }
}
