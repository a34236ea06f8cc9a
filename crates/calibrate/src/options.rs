//! What the caller may choose, and what is chosen for it.

use crate::CalibrateError;
use plumb_io::MethodKind;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is measured, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The main figures, within 30 seconds.
    Quick,
    /// Small requests alone, then large requests alone.
    Simple,
    /// The whole matrix of small and large, and everything else.
    Normal,
    /// Small requests and durable writes.
    Oltp,
    /// Large requests.
    Dss,
    /// The points that [`Advanced`] names.
    Advanced,
}

impl Mode {
    /// Every mode, the shortest first.
    pub const ALL: [Mode; 6] =
        [Mode::Quick, Mode::Simple, Mode::Oltp, Mode::Dss, Mode::Advanced, Mode::Normal];

    /// The name that `--run` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Quick => "quick",
            Mode::Simple => "simple",
            Mode::Normal => "normal",
            Mode::Oltp => "oltp",
            Mode::Dss => "dss",
            Mode::Advanced => "advanced",
        }
    }

    /// How long it may take in all. The documented limits are 30 seconds for quick
    /// and 10 minutes for normal; what is missing here is for starting and ending.
    #[must_use]
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

    /// The file, where there is room. Quick must also write it within its time.
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

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Mode, ()> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or(())
    }
}

/// The points of an advanced run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advanced {
    /// How many in a hundred requests are writes.
    pub write_percent: u8,
    /// Outstanding small requests: the columns of the matrix, 0 for none.
    pub num_small: Vec<usize>,
    /// Outstanding large requests: the rows of the matrix, 0 for none.
    pub num_large: Vec<usize>,
}

/// What the caller may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is measured.
    pub mode: Mode,
    /// The points of [`Mode::Advanced`].
    pub advanced: Advanced,
    /// The bytes of a small request.
    pub size_small: Bytes,
    /// The bytes of a large request.
    pub size_large: Bytes,
    /// The file's size; `None`: the mode's, or what fits.
    pub file_size: Option<Bytes>,
    /// The method; `None`: io_uring where it works, threads elsewhere.
    pub method: Option<MethodKind>,
    /// The mean latency that [`crate::FigureKind::IopsWithinLatency`] must keep.
    pub max_latency: Nanos,
    /// How long it may take; `None`: the mode's budget.
    pub budget: Option<Nanos>,
    /// How long each repeat is measured; `None`: the budget is dealt out.
    pub duration: Option<Nanos>,
    /// What the order of tasks, the places of requests and the data follow from.
    pub seed: u64,
    /// The date to record, in the caller's words.
    pub date: String,
}

impl Options {
    /// The usual choices for a mode.
    #[must_use]
    pub fn new(mode: Mode, seed: u64, date: impl Into<String>) -> Options {
        Options {
            mode,
            advanced: Advanced { write_percent: 0, num_small: vec![0, 1, 4, 16], num_large: vec![0, 1, 4] },
            size_small: Bytes(8 * Bytes::K),
            size_large: Bytes(Bytes::M),
            file_size: None,
            method: None,
            max_latency: Nanos(10_000_000),
            budget: None,
            duration: None,
            seed,
            date: date.into(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), CalibrateError> {
        for (option, bytes) in [("size_small", self.size_small), ("size_large", self.size_large)] {
            let fits = (512..=16 * Bytes::M).contains(&bytes.0) && bytes.0.is_power_of_two();
            refuse_unless(fits, option, bytes.as_setting(), "a power of two from 512 to 16M")?;
        }
        let ordered = self.size_small <= self.size_large;
        refuse_unless(ordered, "size_small", self.size_small.as_setting(), "at most size_large")?;
        if let Some(bytes) = self.file_size {
            let wanted = Bytes(FILE_REQUESTS_MIN * self.size_large.0);
            let range = format!("at least {} ({FILE_REQUESTS_MIN} large requests)", wanted.as_setting());
            refuse_unless(bytes >= wanted, "file_size", bytes.as_setting(), &range)?;
        }
        if let Some(duration) = self.duration {
            let fits = (DURATION_MIN..=DURATION_MAX).contains(&duration);
            refuse_unless(fits, "duration", duration.to_string(), "1 ms to 1 hour")?;
        }
        let percent = self.advanced.write_percent;
        refuse_unless(percent <= 100, "write_percent", percent.to_string(), "0 to 100")?;
        for (option, numbers) in
            [("num_small", &self.advanced.num_small), ("num_large", &self.advanced.num_large)]
        {
            let most = numbers.iter().copied().max().unwrap_or(0);
            refuse_unless(
                most <= OUTSTANDING_MAX,
                option,
                most.to_string(),
                "0 to 1024 outstanding requests",
            )?;
        }
        Ok(())
    }
}

/// A file of fewer large requests is no file to spread requests over.
const FILE_REQUESTS_MIN: u64 = 16;
const DURATION_MIN: Nanos = Nanos(1_000_000);
const DURATION_MAX: Nanos = Nanos(3_600_000_000_000);
/// Of each load; a channel takes 4,096 in all.
const OUTSTANDING_MAX: usize = 1024;

fn refuse_unless(fits: bool, option: &'static str, value: String, range: &str) -> Result<(), CalibrateError> {
    if fits { Ok(()) } else { Err(CalibrateError::Option { option, value, range: range.to_string() }) }
}
