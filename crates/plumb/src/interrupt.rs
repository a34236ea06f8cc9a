//! Ctrl-C, SIGTERM, and the terminal's end (SIGHUP, unless `nohup` has it ignored).
//!
//! The first signal asks the engine to stop; it checks between two pieces of work and removes its
//! temporary files. If it is inside one long piece (a large file that is being filled), a watchdog
//! does not wait: after less than a second it removes the temporary directories and ends the
//! program. Before anything has been made, the first signal ends the program at once. A second
//! signal names the files that stay, and kills the program. File systems of the program's own must
//! be unmounted, for which the watchdog waits longer.
//!
//! Limits: a file system that frees blocks synchronously (mounted with discard) needs its time to
//! remove files of gigabytes, and no program can shorten that.

use crate::failure::Failure;
use crate::{command_line, history, output};
use plumb_engine::EngineError;
use plumb_events::{Cancel, locked, now};
use plumb_host::kernel::status_field;
use plumb_host::proc_files;
use plumb_io::IoError;
use plumb_study::bundle::Reservation;
use plumb_units::Nanos;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use std::{fmt, fs, process, thread};

/// The message of an interrupted command that has changed nothing.
const NOTHING_CHANGED: &str = "interrupted: nothing has been changed";

/// Signals within this time of the first count as the same one.
const ONE_SIGNAL: Nanos = Nanos(50_000_000);
/// Time for the engine to stop.
const PATIENCE: Duration = Duration::from_millis(400);
/// Time to unmount and remove file systems.
const PATIENCE_TAKING_APART: Nanos = Nanos(30_000_000_000);

/// Tries to remove a directory in which files are still made.
const MOST_TRIES: usize = 1000;

/// Set by the thread that ends the program, main or watchdog.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The first signal that asked for an end; 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Returns the exit code of a program that a signal ends, as shells define
/// it; none without a signal.
pub fn exit_code() -> Option<u8> {
    let signal = u8::try_from(SIGNAL.load(SeqCst)).ok().filter(|signal| *signal > 0)?;
    Some(128 + signal)
}

/// True for the first caller, which reports the end and ends the program.
pub fn claim_end() -> bool {
    !ENDING.swap(true, SeqCst)
}

/// Makes a file that grows past the limit on file sizes an error of the write (EFBIG)
/// instead of the program's end.
pub fn survive_large_files() {
    // If the handler cannot be set, the kernel ends the program.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// True if a signal was ignored at the program's start, as `nohup` arranges.
fn is_ignored(signal: i32) -> bool {
    let status = proc_files::text("self", "status").unwrap_or_default();
    let mask =
        status_field(&status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// State shared by the signal handler and the commands.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    cancel: Cancel,
    /// True if something was started that must be cleaned up.
    begun: AtomicBool,
    /// True if the work only reads.
    reads_only: AtomicBool,
    /// True for a study that can continue from its bundle.
    resumable: AtomicBool,
    temporary: Mutex<Vec<PathBuf>>,
    /// Directories that a guard dismantles, which takes longer than removing files.
    taken_apart: Mutex<Vec<PathBuf>>,
    /// True while a study has changes on a server of others.
    undoes: AtomicBool,
    /// Undo journals, which are removed when settings of a server are back.
    put_back: Mutex<Vec<PathBuf>>,
    /// Marks and directories of bundles, removed if nothing was written to them.
    reserved: Mutex<Vec<PathBuf>>,
    /// Replaces the usual message of an interruption.
    message: Mutex<Option<Message>>,
}

/// A message that is formatted on demand.
struct Message(Box<dyn Fn() -> String + Send>);

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&(self.0)()).finish()
    }
}

/// Returns the paths of a list that exist.
fn existing(all: &Mutex<Vec<PathBuf>>) -> Vec<PathBuf> {
    locked(all).iter().filter(|path| path.exists()).cloned().collect()
}

/// Removes directories in which the engine may still make files, each of which defeats a try.
fn remove_all(directories: &[PathBuf]) {
    for directory in directories {
        let gone = |_: &usize| {
            let _ = fs::remove_dir_all(directory);
            !directory.exists()
        };
        let _ = (0..MOST_TRIES).find(gone);
    }
}

impl Interrupt {
    /// Catches the signals from now on.
    pub fn install() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
            .map_err(|error| Failure::run(format!("cannot catch signals: {error}")))?;
        let shared = interrupt.clone();
        let listen = move || {
            let mut first = None;
            for signal in signals.forever() {
                match first {
                    None => {
                        first = Some(now());
                        SIGNAL.store(signal, SeqCst);
                        shared.stop();
                    }
                    // timeout(1) and shells send one signal to the process and again to its group.
                    Some(at) if now().saturating_sub(at) < ONE_SIGNAL => {}
                    Some(_) => {
                        shared.release();
                        shared.say_what_stays();
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                }
            }
        };
        let listening = thread::Builder::new().name("signals".to_string()).spawn(listen);
        listening.map_err(|source| IoError::thread("the thread that takes signals", source))?;
        Ok(interrupt)
    }

    /// Returns the flag that the engine checks.
    pub fn cancel(&self) -> Cancel {
        self.0.cancel.clone()
    }

    /// Gives the engine time to clean up from now on.
    pub fn begin(&self) {
        self.0.begun.store(true, SeqCst);
    }

    /// Gives the engine time to stop from now on; there is nothing to clean up.
    pub fn begin_reading(&self) {
        self.0.reads_only.store(true, SeqCst);
        self.begin();
    }

    /// Returns the failure of an interrupted command.
    pub fn failure(&self) -> Failure {
        Failure { resumable: self.is_resumable(), ..Failure::run(self.message()) }
    }

    /// True if a study can continue from its bundle.
    pub fn is_resumable(&self) -> bool {
        self.0.resumable.load(SeqCst)
    }

    /// Marks the study as resumable from its bundle from now on.
    pub fn leaves_resumable(&self) {
        self.0.resumable.store(true, SeqCst);
    }

    fn message(&self) -> String {
        if let Some(message) = &*locked(&self.0.message) {
            return (message.0)();
        }
        if self.0.reads_only.load(SeqCst) {
            return NOTHING_CHANGED.to_string();
        }
        EngineError::Interrupted.to_string()
    }

    /// Sets the message for an interruption of this command.
    pub fn say(&self, message: String) {
        self.say_as_it_is(move || message.clone());
    }

    /// Sets a message that reports the progress of the command.
    pub fn say_as_it_is(&self, message: impl Fn() -> String + Send + 'static) {
        *locked(&self.0.message) = Some(Message(Box::new(message)));
    }

    /// Adds a directory to remove if the engine does not stop in time.
    pub fn temporary(&self, directory: PathBuf) {
        self.begin();
        self.directories().push(directory);
    }

    /// Makes a directory while no signal ends the program, and adds it to those that are removed,
    /// so that there is no moment at which it stands and is not known.
    pub fn whole<T>(&self, make: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
        make(&mut self.directories())
    }

    /// Adds a directory reserved for a bundle, removed if nothing is written to it.
    pub fn reserved(&self, reservation: &Reservation) {
        locked(&self.0.reserved).extend(reservation.traces());
    }

    /// Fills a directory by a call that removes its work if it fails or
    /// is interrupted, and reports that.
    pub fn whole_or_nothing<T>(
        &self,
        directory: &Path,
        make: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, Failure> {
        self.say(format!("interrupted: nothing of {} stays", directory.display()));
        self.takes_apart(directory.to_path_buf());
        match make() {
            Ok(made) => {
                locked(&self.0.taken_apart).clear();
                self.say(format!("interrupted: {} is whole", directory.display()));
                Ok(made)
            }
            Err(EngineError::Interrupted) => Err(self.failure()),
            // Rejected before anything was made, or reported by the call itself.
            Err(error @ EngineError::Backup { .. }) => Err(Failure::from(error)),
            Err(error) => {
                let failure = Failure::from(error);
                let message = format!("{}; what had been made is removed", failure.message);
                Err(Failure { message, ..failure })
            }
        }
    }

    /// Adds a directory that a guard dismantles when dropped; the program waits for that.
    pub fn takes_apart(&self, directory: PathBuf) {
        self.begin();
        locked(&self.0.taken_apart).push(directory);
    }

    /// Waits from now on until a study on a server of others has undone its changes. The journal is
    /// named if the program is killed before.
    pub fn undoes(&self, journal: Option<PathBuf>) {
        self.0.undoes.store(true, SeqCst);
        locked(&self.0.put_back).extend(journal);
    }

    /// Notes that these changes are undone.
    pub fn has_undone(&self) {
        self.0.undoes.store(false, SeqCst);
    }

    /// Returns the directories still to be dismantled.
    fn taken_apart(&self) -> Vec<PathBuf> {
        existing(&self.0.taken_apart)
    }

    /// Keeps the directories that were temporary.
    pub fn keep(&self) {
        self.directories().clear();
    }

    fn directories(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        locked(&self.0.temporary)
    }

    /// Removes reservations, as dropping them would.
    fn release(&self) {
        for path in locked(&self.0.reserved).iter() {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }

    /// Prints the directories that stay, before an end without cleanup.
    fn say_what_stays(&self) {
        for journal in existing(&self.0.put_back) {
            let named = command_line::quoted(&journal.display().to_string());
            output::complain(&format!(
                "killed: settings of the study stay on the server; `plumb undo {named}` puts them back"
            ));
        }
        let mut stay: Vec<PathBuf> =
            self.directories().iter().filter(|path| path.exists()).cloned().collect();
        stay.extend(self.taken_apart());
        let Some(first) = stay.first() else { return };
        let all: Vec<String> = stay.iter().map(|path| path.display().to_string()).collect();
        output::complain(&format!(
            "killed: {} stays; `plumb clean --path {}` removes it",
            all.join(", "),
            first.parent().unwrap_or(first).display()
        ));
    }

    fn stop(&self) {
        if !self.0.begun.load(SeqCst) {
            let _nothing_half_made = self.directories();
            self.release();
            output::complain(NOTHING_CHANGED);
            history::note(&Failure::run(NOTHING_CHANGED));
            process::exit(exit_code().unwrap_or(1).into());
        }
        self.0.cancel.request();
        let shared = self.clone();
        let watchdog = move || {
            thread::sleep(PATIENCE);
            let end = now() + PATIENCE_TAKING_APART;
            let is_busy = || !shared.taken_apart().is_empty() || shared.0.undoes.load(SeqCst);
            while is_busy() && now() < end {
                thread::sleep(PATIENCE);
            }
            if !claim_end() {
                return;
            }
            let temporary = shared.directories().clone();
            remove_all(&temporary);
            shared.release();
            let failure = shared.failure();
            output::complain(&failure.message);
            history::note(&failure);
            shared.say_what_stays();
            // Those made since then; no other is made while the list is locked.
            let temporary = shared.directories();
            remove_all(&temporary);
            process::exit(exit_code().unwrap_or(1).into());
        };
        // Without a watchdog the engine has unlimited time.
        let _ = thread::Builder::new().name("watchdog".to_string()).spawn(watchdog);
    }
}
