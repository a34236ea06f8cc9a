//! Lets Ctrl-C leave nothing behind: a bench checks [`Stop`] between two runs, and keeps its files
//! in a [`Room`].

use anyhow::Context;
use plumb_calibrate::ProgressObserver;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True once the user has asked the bench to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns a flag that SIGINT and SIGTERM set.
    pub(super) fn on_signals() -> anyhow::Result<Stop> {
        let stop = Stop::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.cancelled(), "interrupted");
        Ok(())
    }
}

impl ProgressObserver for Stop {
    fn cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Directory of a bench's files; dropping it removes them.
pub(super) struct Room(PathBuf);

impl Room {
    /// Makes the directory below `path`, named after the bench and this process.
    pub(super) fn create(path: &Path, bench: &str) -> anyhow::Result<Room> {
        let path = path.canonicalize().with_context(|| format!("--path {}", path.display()))?;
        let room = path.join(format!("plumb-{bench}-{}", std::process::id()));
        fs::create_dir(&room).with_context(|| format!("creating {}", room.display()))?;
        Ok(Room(room))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}
