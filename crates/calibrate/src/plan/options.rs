//! The options of a calibration, and their defaults by mode.

use super::{LARGE_COUNTS, Pattern, SMALL_COUNTS};
use crate::CalibrateError;
use plumb_io::MethodKind;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An enum of choices: each row has a variant, its name and its help.
macro_rules! choices {
    ($(#[$doc:meta])* $choice:ident { $($variant:ident, $name:literal, $help:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $choice { $(#[doc = $help] $variant),* }

        impl $choice {
            /// Every choice, in the order of its declaration.
            pub const ALL: &'static [$choice] = &[$($choice::$variant),*];

            /// Returns the name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $($choice::$variant => $name),* }
            }

            /// Returns the help in one line.
            pub const fn help(self) -> &'static str {
                match self { $($choice::$variant => $help),* }
            }
        }
    };
}

choices! {
    /// Extent of a calibration, and its time.
    Mode {
        Quick, "quick", "The main figures, in 30 seconds";
        Simple, "simple", "Small requests alone and large requests alone, in 2 minutes";
        Normal, "normal", "Everything, with the matrix of small and large requests together, in 10 minutes";
        Oltp, "oltp", "Small requests and durable writes, in 3 minutes";
        Dss, "dss", "Large requests, in 3 minutes";
        Advanced, "advanced", "The cells of the matrix that --matrix names, of requests as asked for, in 5 minutes";
    }
}

choices! {
    /// Cells of the matrix of small and large requests to measure, in ORION's words. A row has one
    /// number of large requests, a column one of small ones.
    Cells {
        Basic, "basic", "Small requests alone and large requests alone";
        Detailed, "detailed", "All: 0 to 128 small by 0 to 16 large";
        Point, "point", "One: --num-small by --num-large";
        Col, "col", "Every number of large requests with --num-small small ones";
        Row, "row", "Every number of small requests with --num-large large ones";
        Max, "max", "All up to --num-small by --num-large";
    }
}

choices! {
    /// Address space that several paths form together, in ORION's words.
    VolumeLayout {
        Concat, "concat", "One path after the other";
        Raid0, "raid0", "Stripes on each path in turn";
    }
}

impl Mode {
    /// Returns the total time. It is less than the documented limits (30 seconds for quick, 10
    /// minutes for normal), to leave time for start and end.
    pub const fn budget(self) -> Nanos {
        Nanos(
            1_000_000_000
                * match self {
                    Mode::Quick => 27,
                    Mode::Simple => 120,
                    Mode::Oltp | Mode::Dss => 180,
                    Mode::Advanced => 300,
                    Mode::Normal => 570,
                },
        )
    }

    /// Returns the length of the file, if there is room. Quick must also write it within its time.
    pub(crate) const fn file_bytes(self) -> Bytes {
        match self {
            Mode::Quick => Bytes(2 * Bytes::G),
            _ => Bytes(16 * Bytes::G),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Cells {
    const fn takes_small(self) -> bool {
        matches!(self, Cells::Point | Cells::Col | Cells::Max)
    }

    const fn takes_large(self) -> bool {
        matches!(self, Cells::Point | Cells::Row | Cells::Max)
    }
}

/// The points of an advanced run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advanced {
    /// Number of writes per hundred requests.
    pub write_percent: u8,
    /// Order of the large requests; small ones are random.
    pub large_pattern: Pattern,
    pub cells: Cells,
    /// Small requests outstanding: of the single column, or the maximum.
    pub num_small: Option<usize>,
    /// Large requests outstanding: of the single row, or the maximum.
    pub num_large: Option<usize>,
}

impl Advanced {
    /// Returns the cells as numbers of small and of large requests outstanding.
    pub(crate) fn cells(&self) -> Vec<(usize, usize)> {
        let (small, large) = (self.num_small.unwrap_or(0), self.num_large.unwrap_or(0));
        let product = |small: &[usize], large: &[usize]| -> Vec<(usize, usize)> {
            large.iter().flat_map(|large| small.iter().map(|small| (*small, *large))).collect()
        };
        let (all_small, all_large) = (counts(&SMALL_COUNTS, None), counts(&LARGE_COUNTS, None));
        match self.cells {
            Cells::Basic => {
                let mut cells = product(&all_small, &[0]);
                cells.extend(product(&[0], &all_large));
                cells
            }
            Cells::Detailed => product(&all_small, &all_large),
            Cells::Point => vec![(small, large)],
            Cells::Col => product(&[small], &all_large),
            Cells::Row => product(&all_small, &[large]),
            Cells::Max => product(&counts(&SMALL_COUNTS, Some(small)), &counts(&LARGE_COUNTS, Some(large))),
        }
    }

    fn check(&self) -> Result<(), CalibrateError> {
        let percent = self.write_percent;
        refuse_unless(percent <= 100, "write", percent.to_string(), "0 to 100")?;
        let asked = [
            ("num_small", self.num_small, self.cells.takes_small(), "point, col and max"),
            ("num_large", self.num_large, self.cells.takes_large(), "point, row and max"),
        ];
        for (option, number, taken, takers) in asked {
            let matrix = self.cells.name();
            match (number, taken) {
                (Some(number), true) => {
                    let fits = number <= OUTSTANDING_MAX;
                    refuse_unless(fits, option, number.to_string(), "0 to 1024 outstanding requests")?;
                }
                (Some(number), false) => {
                    let range = format!("the matrix {matrix} takes none; {takers} do");
                    refuse_unless(false, option, number.to_string(), &range)?;
                }
                (None, true) => {
                    let range = format!("it needs {}", option.replace('_', "-"));
                    refuse_unless(false, "matrix", matrix.to_string(), &range)?;
                }
                (None, false) => {}
            }
        }
        let none = self.cells().iter().all(|cell| *cell == (0, 0));
        refuse_unless(
            !none,
            "num_small",
            "0".to_string(),
            "with no large requests there is nothing to measure",
        )
    }
}

/// Returns zero and the usual numbers: all of them, or those below `most` and `most` itself.
fn counts(usual: &[usize], most: Option<usize>) -> Vec<usize> {
    let below = |count: &usize| most.is_none_or(|most| *count < most);
    let mut counts: Vec<usize> = std::iter::once(0).chain(usual.iter().copied()).filter(below).collect();
    counts.extend(most);
    counts
}

/// Options of a calibration, chosen by the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub mode: Mode,
    /// Points to measure in [`Mode::Advanced`].
    pub advanced: Advanced,
    /// Bytes of a small request.
    pub size_small: Bytes,
    /// Bytes of a large request.
    pub size_large: Bytes,
    /// Size of the file; `None`: the mode's, or what fits.
    pub file_size: Option<Bytes>,
    /// The method; `None`: io_uring if it works, otherwise threads.
    pub method: Option<MethodKind>,
    /// Limit of the mean latency for [`crate::FigureKind::IopsWithinLatency`].
    pub max_latency: Nanos,
    /// Total time; `None`: the mode's budget.
    pub budget: Option<Nanos>,
    /// Measured time of each repeat; `None`: a share of the budget.
    pub duration: Option<Nanos>,
    /// Address space of several paths.
    pub layout: VolumeLayout,
    /// Bytes of a stripe of [`VolumeLayout::Raid0`].
    pub stripe: Bytes,
    /// Time for which one load is kept up after the rounds; `None`: none is.
    pub sustain: Option<Nanos>,
    /// Most requests a second, at least 1; `None`: as many as the device serves.
    pub max_rate: Option<u64>,
    /// Bytes a second of the link to the storage, which no figure can exceed; `None`: not known.
    pub link: Option<Bytes>,
    /// Seed of the order of tasks, the positions of requests and the data.
    pub seed: u64,
    /// Date to record, in the caller's format.
    pub date: String,
}

impl Options {
    /// The default options of a mode.
    pub fn new(mode: Mode, seed: u64, date: impl Into<String>) -> Options {
        Options {
            mode,
            advanced: Advanced {
                write_percent: 0,
                large_pattern: Pattern::Random,
                cells: Cells::Basic,
                num_small: None,
                num_large: None,
            },
            size_small: Bytes(8 * Bytes::K),
            size_large: Bytes(Bytes::M),
            file_size: None,
            method: None,
            max_latency: Nanos(10_000_000),
            budget: None,
            duration: None,
            layout: VolumeLayout::Concat,
            stripe: Bytes(Bytes::M),
            sustain: None,
            max_rate: None,
            link: None,
            seed,
            date: date.into(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), CalibrateError> {
        for (option, bytes) in [("size_small", self.size_small), ("size_large", self.size_large)] {
            let fits = (512..=16 * Bytes::M).contains(&bytes.0) && bytes.0.is_power_of_two();
            refuse_unless(fits, option, bytes.as_setting(), "a power of two from 512 to 16M")?;
        }
        let (small, large) = (self.size_small.as_setting(), self.size_large.as_setting());
        refuse_unless(
            self.size_small < self.size_large,
            "size_small",
            small,
            &format!("less than size_large ({large})"),
        )?;
        if let Some(bytes) = self.file_size {
            let wanted = Bytes(FILE_REQUESTS_MIN * self.size_large.0);
            let range = format!("at least {} ({FILE_REQUESTS_MIN} large requests)", wanted.as_setting());
            refuse_unless(bytes >= wanted, "file_size", bytes.as_setting(), &range)?;
        }
        if let Some(duration) = self.duration {
            let fits = (DURATION_MIN..=DURATION_MAX).contains(&duration);
            refuse_unless(fits, "duration", duration.to_string(), "1 ms to 1 hour")?;
        }
        self.advanced.check()
    }
}

/// Large requests that the file must have room for, because requests are spread over it.
const FILE_REQUESTS_MIN: u64 = 16;
const DURATION_MIN: Nanos = Nanos(1_000_000);
const DURATION_MAX: Nanos = Nanos(3_600_000_000_000);
/// Limit of each load; a channel accepts 4,096 in total.
const OUTSTANDING_MAX: usize = 1024;

fn refuse_unless(fits: bool, option: &'static str, value: String, range: &str) -> Result<(), CalibrateError> {
    if fits { Ok(()) } else { Err(CalibrateError::Option { option, value, range: range.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cells: Cells, numbers: (Option<usize>, Option<usize>), expected: Result<usize, &str>) {
        let advanced = Advanced {
            cells,
            num_small: numbers.0,
            num_large: numbers.1,
            ..Options::new(Mode::Advanced, 1, "").advanced
        };
        let found =
            advanced.check().map(|()| advanced.cells().iter().filter(|cell| **cell != (0, 0)).count());
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_string), "{cells:?}");
    }

    #[test]
    fn the_matrix_is_orions() {
        check(Cells::Basic, (None, None), Ok(8 + 5));
        check(Cells::Detailed, (None, None), Ok(9 * 6 - 1));
        check(Cells::Point, (Some(3), Some(2)), Ok(1));
        check(Cells::Col, (Some(3), None), Ok(6));
        check(Cells::Row, (None, Some(0)), Ok(8));
        check(Cells::Max, (Some(3), Some(1)), Ok(4 * 2 - 1));
        check(Cells::Max, (Some(200), Some(0)), Ok(9));
    }

    #[test]
    fn numbers_that_do_not_belong_to_a_matrix_are_refused() {
        let taken = "num_large = 2 is not possible: the matrix col takes none; point, row and max do";
        check(Cells::Col, (Some(1), Some(2)), Err(taken));
        check(Cells::Point, (None, Some(2)), Err("matrix = point is not possible: it needs num-small"));
        check(
            Cells::Max,
            (Some(2000), Some(2)),
            Err("num_small = 2000 is not possible: 0 to 1024 outstanding requests"),
        );
        let nothing = "num_small = 0 is not possible: with no large requests there is nothing to measure";
        check(Cells::Point, (Some(0), Some(0)), Err(nothing));
    }
}
