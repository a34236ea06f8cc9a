//! Several paths of a calibration: rates of each, of all at once, and of one volume.
//!
//! The share of the sum is computed round by round. A round takes seconds, so a drift of the
//! machine over minutes cancels.

use crate::files::Volume;
use crate::measure::{SETTLED_LIMIT, find};
use crate::plan::volume_loads;
use crate::{Calibration, Estimate, Load, Measurement, Options, Point, TaskResult, VolumeLayout};
use plumb_host::device::DeviceDescription;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// Paths of a calibration of several, and the address space that they form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRecord {
    pub layout: VolumeLayout,
    /// Bytes of a stripe of [`VolumeLayout::Raid0`].
    pub stripe_bytes: u64,
    pub paths: Vec<VolumePath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumePath {
    pub path: String,
    /// Name of the disk under the path; empty if the file system has none.
    pub disk: String,
    /// Bytes of its file that are used.
    pub bytes: u64,
}

impl VolumeRecord {
    /// Describes the paths; `None` for a single one.
    pub(crate) fn of(
        devices: &[DeviceDescription],
        volume: &Volume,
        options: &Options,
    ) -> Option<VolumeRecord> {
        let path = |(index, device): (usize, &DeviceDescription)| VolumePath {
            path: plumb_units::path_text(&device.path),
            disk: device.block.as_ref().map_or(String::new(), |block| block.disk.clone()),
            bytes: volume.length(Some(index)).0,
        };
        (devices.len() > 1).then(|| VolumeRecord {
            layout: options.layout,
            stripe_bytes: options.stripe.0,
            paths: devices.iter().enumerate().map(path).collect(),
        })
    }
}

/// Rates of one kind of load on several paths: requests a second of small ones, MB/s of large ones.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeRates {
    /// The load of each path.
    pub load: Load,
    pub unit: &'static str,
    /// Rate of each path alone.
    pub alone: Vec<Estimate>,
    /// Sum of all paths' rates, all busy at once.
    pub together: Estimate,
    /// `together` as a share of the sum of `alone`.
    pub share: Estimate,
    /// Rate of the volume with as many requests outstanding as all paths had together.
    pub volume: Estimate,
    /// `volume` as a share of the sum of `alone`.
    pub volume_share: Estimate,
}

impl Calibration {
    /// Returns the rates of several paths, a kind of load each; empty for a single path.
    pub fn volume_rates(&self) -> Vec<VolumeRates> {
        let Some(volume) = &self.volume else { return Vec::new() };
        let loads = volume_loads(Bytes(self.size_small), Bytes(self.size_large));
        let rates = loads.into_iter().filter_map(|load| self.rates_of(load, volume.paths.len()));
        rates.collect()
    }

    fn rates_of(&self, load: Load, paths: usize) -> Option<VolumeRates> {
        let usual = self.usual();
        let on = |path| Load { path: Some(path), ..load };
        let measured = |point: &Point| find(&self.tasks, point);
        let alone: Vec<&TaskResult> =
            (0..paths).map(|path| measured(&usual.with(vec![on(path)], 1))).collect::<Option<_>>()?;
        let together = measured(&usual.with((0..paths).map(on).collect(), paths))?;
        let whole = Load { outstanding: load.outstanding * paths, ..load };
        let volume = measured(&usual.with(vec![whole], paths))?;

        let small = load.request_bytes == self.size_small;
        let rate = |measurement: &Measurement| -> f64 {
            let of = |index| match small {
                true => measurement.iops(index),
                false => measurement.mb_per_second(index, load.request_bytes),
            };
            (0..measurement.loads.len()).map(of).sum()
        };
        let share = |result: &TaskResult| {
            let rounds = result.repeats.iter().filter_map(|repeat| {
                let same = |alone: &&TaskResult| {
                    let found = alone.repeats.iter().find(|other| other.round == repeat.round)?;
                    Some(rate(&found.measurement))
                };
                let sum: f64 = alone.iter().map(same).sum::<Option<f64>>()?;
                Some(rate(&repeat.measurement) / sum)
            });
            Estimate::of(&rounds.collect::<Vec<f64>>(), SETTLED_LIMIT)
        };
        Some(VolumeRates {
            load,
            unit: if small { "IOPS" } else { "MB/s" },
            alone: alone.iter().map(|one| one.estimate(|one| Some(rate(one)))).collect::<Option<_>>()?,
            together: together.estimate(|all| Some(rate(all)))?,
            share: share(together)?,
            volume: volume.estimate(|all| Some(rate(all)))?,
            volume_share: share(volume)?,
        })
    }
}
