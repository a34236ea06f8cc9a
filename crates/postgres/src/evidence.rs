//! Everything observed of a run, as one value.
//!
//! Rules read nothing but this value, no server and no /proc. So a test changes one fact, and sees
//! the rule that depends on it fail.

use crate::installation;
use crate::process::SharedMapping;
use crate::session::InForce;
use crate::watch::WatchedProcesses;
use plumb_host::proc_files;
use plumb_host::readings::{DiskStats, pages_untold, residency};
use plumb_host::regular::open_regular;
use plumb_units::{Bytes, Nanos};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The two states of the page cache that a study may ask for.
pub(crate) const PAGE_CACHE: [&str; 2] = ["empty", FILLED];
pub(crate) const FILLED: &str = "filled";

/// A setting of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSetting {
    pub name: String,
    /// Value as the study has it.
    pub value: String,
    /// The same value as the server writes it, without its unit.
    pub canonical: String,
}

/// The work, as far as rules depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkDone {
    pub table: Bytes,
    /// Bytes of the index that was built.
    pub index: Bytes,
    pub commits: u64,
    /// Sessions that worked at once.
    pub sessions: u64,
}

/// Log of the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogFacts {
    pub bytes: Bytes,
    /// Positions of begin and end in the log, bytes.
    pub positions: [u64; 2],
    /// Images of whole pages, as the server counts them.
    pub image_count: u64,
    /// Bytes of images of whole pages, as `pg_waldump` counts them in the files.
    pub image_bytes: Option<Bytes>,
    /// Size of a file of the log.
    pub segment: Option<Bytes>,
    /// Syncs that the server counts.
    pub syncs: Option<u64>,
}

/// Place of the data directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlaceFacts {
    pub data: PathBuf,
    pub path: PathBuf,
    /// Numbers of the devices of the data directory and of the run's path, by the kernel.
    pub device: Option<u64>,
    pub device_of_path: Option<u64>,
}

impl PlaceFacts {
    #[must_use]
    pub fn of(data: &Path, path: &Path) -> PlaceFacts {
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let plain = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        PlaceFacts {
            data: plain(data),
            path: plain(path),
            device: device(data),
            device_of_path: device(path),
        }
    }
}

/// Program of a server's first process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Path without links, by the kernel.
    pub path: PathBuf,
    pub sha256: String,
}

impl ProgramFacts {
    /// Reads it from `/proc`; `None` if this user may not.
    #[must_use]
    pub fn of(postmaster: i32) -> Option<ProgramFacts> {
        let path = proc_files::link(postmaster, "exe")?;
        // By the link: another program may have the path by now.
        let running = PathBuf::from(format!("/proc/{postmaster}/exe"));
        Some(ProgramFacts { path, sha256: installation::sha256(&running)? })
    }
}

/// Pages of a table's files, when the work began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedPages {
    /// Pages that the page cache had.
    pub cached: u64,
    pub all: u64,
}

impl CachedPages {
    /// Counts the pages of these files. Returns `None` if they have no page, or if the kernel tells
    /// nothing of one of them.
    #[must_use]
    pub fn of(files: &[PathBuf]) -> Option<CachedPages> {
        let pages = files.iter().try_fold(CachedPages::default(), |sum, path| {
            let file = open_regular(path).ok()?;
            if pages_untold(file.as_fd()).is_some() {
                return None;
            }
            let found = residency(file.as_fd(), Bytes(file.metadata().ok()?.len())).ok()?;
            Some(CachedPages { cached: sum.cached + found.resident_pages, all: sum.all + found.total_pages })
        });
        pages.filter(|pages| pages.all > 0)
    }

    /// Returns the share of the pages that the page cache had.
    #[must_use]
    pub fn share(self) -> f64 {
        self.cached as f64 / self.all.max(1) as f64
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerEvidence {
    pub major: u32,
    pub asked: Vec<GivenSetting>,
    pub in_force: Vec<InForce>,
    pub elapsed: Nanos,
    pub watched: WatchedProcesses,
    pub done: WorkDone,
    pub log: LogFacts,
    pub place: Option<PlaceFacts>,
    pub program: Option<ProgramFacts>,
    pub shared: Option<SharedMapping>,
    /// `None` if the study does not ask for a state of the page cache, or the kernel tells none.
    pub page_cache: Option<CachedPages>,
    /// Checksum of the first page of the table's file, read from the file.
    pub page_checksum: Option<u16>,
    /// Counters of the device; `None` if there is none, as on tmpfs.
    pub disk: Option<DiskStats>,
    /// Lines that the server wrote about its sorts.
    pub sort_lines: Vec<String>,
}

impl ServerEvidence {
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&InForce> {
        self.in_force.iter().find(|set| set.name == name)
    }

    /// Returns a value in force as a number, in its unit.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.setting(name)?.value.parse().ok()
    }

    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.setting(name)?.bytes()
    }
}
