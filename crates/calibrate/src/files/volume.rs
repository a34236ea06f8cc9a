//! The space of all points: one file, or one on each of several paths taken together.
//!
//! Several paths become one address space as a volume manager would make it, in ORION's words:
//!
//! ```text
//! concat    the files one after the other
//! raid0     stripes in turn: stripe n lies on path n mod paths, at stripe n / paths
//! ```
//!
//! A load may also name one path. Then its requests go to that file alone, so that each device can
//! be measured alone, and all of them at once.
//!
//! Limits: no request is cut. A stripe holds whole requests of every size ([`Volume::unit`]), and
//! with fewer bytes a controller would make two requests of one. The logs lie on the first path.

use super::DataFile;
use crate::{CalibrateError, Options, VolumeLayout};
use plumb_io::{DirectIo, File};
use plumb_units::Bytes;
use std::sync::Arc;

/// Files that form one address space.
#[derive(Debug)]
pub(crate) struct Volume {
    files: Vec<DataFile>,
    layout: VolumeLayout,
    stripe: u64,
    /// Used bytes of each file, whole stripes.
    used: Vec<u64>,
}

impl Volume {
    /// Makes a volume of files as the options lay it out.
    pub(crate) fn of(files: Vec<DataFile>, options: &Options) -> Volume {
        let stripe = Volume::unit(options);
        let mut used: Vec<u64> = files.iter().map(|file| file.length().0).collect();
        if files.len() > 1 {
            used.iter_mut().for_each(|length| *length = *length / stripe * stripe);
        }
        if options.layout == VolumeLayout::Raid0 {
            let shortest = used.iter().copied().min().unwrap_or(0);
            used.fill(shortest);
        }
        Volume { files, layout: options.layout, stripe, used }
    }

    /// Makes a volume of one file.
    #[cfg(test)]
    pub(crate) fn single(file: DataFile) -> Volume {
        let length = file.length().0;
        Volume { files: vec![file], layout: VolumeLayout::Concat, stripe: length, used: vec![length] }
    }

    /// Returns the bytes that stay together on a path.
    fn unit(options: &Options) -> u64 {
        match options.layout {
            VolumeLayout::Raid0 => options.stripe.0,
            VolumeLayout::Concat => options.size_large.0.max(Bytes::M),
        }
    }

    /// Returns the length of a path's file, or of the volume.
    pub(crate) fn length(&self, path: Option<usize>) -> Bytes {
        match path {
            Some(path) => Bytes(self.used[path]),
            None => Bytes(self.used.iter().sum()),
        }
    }

    /// Returns the number of paths.
    pub(crate) fn paths(&self) -> usize {
        self.files.len()
    }

    /// True if every file can be opened direct.
    pub(crate) fn has_direct(&self) -> bool {
        self.files.iter().all(DataFile::has_direct)
    }

    pub(crate) fn drop_cache(&self) {
        self.files.iter().for_each(DataFile::drop_cache);
    }

    /// Returns the place of a load: a path's file, or the volume.
    pub(crate) fn place(&self, path: Option<usize>, direct_io: DirectIo) -> Place<'_> {
        let by = |file: &DataFile| Arc::clone(file.by(direct_io));
        let files = match path {
            Some(path) => vec![by(&self.files[path])],
            None => self.files.iter().map(by).collect(),
        };
        Place { volume: self, files }
    }
}

/// The files of a load, open as its point asks for.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    volume: &'a Volume,
    files: Vec<Arc<File>>,
}

impl Place<'_> {
    /// Returns the file and the offset in it of an offset of the place.
    #[inline]
    pub(crate) fn at(&self, offset: u64) -> (&Arc<File>, u64) {
        if let [file] = self.files.as_slice() {
            return (file, offset);
        }
        let (path, offset) = self.volume.at(offset);
        (&self.files[path], offset)
    }

    pub(crate) fn files(&self) -> &[Arc<File>] {
        &self.files
    }
}

impl Volume {
    /// Returns the path and the offset in its file of an offset of the volume.
    fn at(&self, offset: u64) -> (usize, u64) {
        match self.layout {
            VolumeLayout::Raid0 => {
                let (stripe, within) = (offset / self.stripe, offset % self.stripe);
                let paths = self.files.len() as u64;
                ((stripe % paths) as usize, stripe / paths * self.stripe + within)
            }
            VolumeLayout::Concat => {
                let mut rest = offset;
                for (path, used) in self.used.iter().enumerate() {
                    if rest < *used {
                        return (path, rest);
                    }
                    rest -= used;
                }
                unreachable!("an offset of {offset} in a volume of {:?}", self.used)
            }
        }
    }
}

/// Refuses a stripe that would cut requests.
pub(crate) fn check(options: &Options) -> Result<(), CalibrateError> {
    let stripe = options.stripe.0;
    let sizes = [options.size_small.0, options.size_large.0, Bytes::M];
    let whole = |size: &u64| stripe > 0 && stripe.is_multiple_of(*size);
    if options.layout == VolumeLayout::Concat || sizes.iter().all(whole) {
        return Ok(());
    }
    Err(CalibrateError::Option {
        option: "stripe",
        value: options.stripe.as_setting(),
        range: format!(
            "a multiple of 1M and of both request sizes ({} and {}), so that no request is cut",
            options.size_small.as_setting(),
            options.size_large.as_setting()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;

    fn volume(layout: VolumeLayout, used: &[u64]) -> Volume {
        // The files are not reached by `at`; their number is the divisor.
        let files = used.iter().map(|_| crate::fixture::memory_file(Bytes(Bytes::M))).collect();
        Volume { files, layout, stripe: 4, used: used.to_vec() }
    }

    #[test]
    fn stripes_go_round_the_paths() {
        let volume = volume(VolumeLayout::Raid0, &[8, 8, 8]);
        let found: Vec<(usize, u64)> = [0, 3, 4, 8, 12, 13, 23].map(|offset| volume.at(offset)).to_vec();
        assert_eq!(found, [(0, 0), (0, 3), (1, 0), (2, 0), (0, 4), (0, 5), (2, 7)]);
    }

    #[test]
    fn every_byte_of_a_volume_has_one_place() {
        for layout in [VolumeLayout::Raid0, VolumeLayout::Concat] {
            let volume = volume(layout, &[8, 8]);
            let mut places: Vec<(usize, u64)> = (0..16).map(|offset| volume.at(offset)).collect();
            places.sort_unstable();
            let expected: Vec<(usize, u64)> =
                (0..2).flat_map(|path| (0..8).map(move |offset| (path, offset))).collect();
            assert_eq!(places, expected, "{layout:?}");
        }
    }

    #[test]
    fn a_stripe_that_cuts_requests_is_refused() {
        let mut options = Options::new(Mode::Quick, 1, "today");
        (options.layout, options.stripe) = (VolumeLayout::Raid0, Bytes(64 << 10));
        let refused = check(&options).expect_err("64K cuts 1M").to_string();
        assert_eq!(
            refused,
            "stripe = 64K is not possible: a multiple of 1M and of both request sizes (8K and 1M), so that no \
             request is cut"
        );
        options.stripe = Bytes(2 << 20);
        assert!(check(&options).is_ok());
    }
}
