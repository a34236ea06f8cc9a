//! A server of plumb's own: its directory, its start and its end.
//!
//! ```text
//! PATH/plumb-postgres-ID/          this program's, with its mark
//!     data/                        the server's user, 0700; with the socket
//!     golden/                      the loaded directory, if each run has a copy
//!     server.log                   what the server prints
//! ```
//!
//! Settings are given on the command line of `postgres`, so that nothing needs to be restored after
//! a crash. The socket lies in the data directory, which only the server's user and root can enter.
//! No port is opened.
//!
//! A socket's path has at most 107 bytes, and a data directory may be deeper. So the server gets a
//! path relative to its own directory, and the client one through an open descriptor.
//!
//! The end. A server is stopped by SIGINT, which ends its sessions and leaves a clean directory.
//! One that does not stop within a minute, or whose program is killed, gets SIGQUIT: it ends at
//! once, and its directory is removed without a recovery. The kernel sends that signal when this
//! program ends, however it ends. A directory that stays has its mark, and `plumb clean` removes
//! it.
//!
//! The directory finds what a killed server leaves ([`ending`](crate::ending)).
//!
//! Rejected: `pg_ctl`, which starts a server that outlives its caller.

use crate::PostgresError;
use crate::account::{self, Account};
use crate::client::{Client, Says};
use crate::ending::{DATA, GOLDEN, LOG, PREFIX, end_server};
use crate::error::{ClientError, one_line, words_of};
use crate::golden::{self, DirectoryHash};
use crate::installation::Installation;
use crate::wire::{self, AuthTerms};
use plumb_events::{Cancel, clock};
use plumb_host::owner::Owner;
use plumb_host::process::end_with_this_thread;
use plumb_io::named_directory;
use plumb_units::Nanos;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::error::DbError;

/// Codes of the messages with which a server ends a session because it ends itself.
const ENDS: [&str; 2] = ["57P01", "57P02"];
/// Cure of a full disk.
const MORE_ROOM: &str = "; name a --path with more room, or use fewer --rows";
const PORT: u16 = 5432;
/// Longest time of a start and of a stop by SIGINT, and the time between two checks.
const BOUND: Nanos = Nanos(60_000_000_000);
const INTERVAL: Duration = Duration::from_millis(5);
/// Longest time of an end by SIGQUIT.
const END_BOUND: Nanos = Nanos(10_000_000_000);

/// Properties that are fixed when a data directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Creation {
    /// `None` for the version's default.
    pub checksums: Option<bool>,
    pub segment_megabytes: Option<u64>,
}

/// A data directory, removed on drop.
#[derive(Debug)]
pub struct Cluster {
    pub installation: Installation,
    home: PathBuf,
    owner: Option<Owner>,
}

/// A data directory of another process, in which this one starts the server.
#[derive(Debug, Clone)]
pub struct Borrowed {
    pub installation: Installation,
    pub home: PathBuf,
}

impl Cluster {
    /// Makes an empty data directory under a path. What a killed process left there is removed.
    ///
    /// # Errors
    /// If `initdb` fails; then nothing is left.
    pub fn create(
        path: &Path,
        id: &str,
        installation: &Installation,
        creation: &Creation,
    ) -> Result<Cluster, PostgresError> {
        let account = Account::of_server()?;
        let home = path.join(format!("{PREFIX}{id}"));
        named_directory::make("--path", path, &home)?;
        let owner = named_directory::own("--path", path, &home)?;
        let cluster = Cluster { installation: installation.clone(), home, owner: Some(owner) };
        cluster.empty()?;
        let data = cluster.data();
        let wrong = |what, source| PostgresError::File { what, path: data.clone(), source };
        // The server's user passes through it and lists nothing.
        let passage = fs::Permissions::from_mode(0o711);
        fs::set_permissions(&cluster.home, passage).map_err(|source| wrong("cannot open", source))?;
        let made = fs::DirBuilder::new().mode(0o700).create(&data);
        made.and_then(|()| account.own(&data)).map_err(|source| wrong("cannot make", source))?;
        if !account.reaches(&data) {
            return Err(PostgresError::Unreachable { path: path.to_path_buf(), user: account.name });
        }
        cluster.initialise(&account, creation)?;
        Ok(cluster)
    }

    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.home.join(DATA)
    }

    #[must_use]
    pub fn borrowed(&self) -> Borrowed {
        Borrowed { installation: self.installation.clone(), home: self.home.clone() }
    }

    /// Keeps the data directory of a stopped server as the golden copy; returns its hash.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep(&self) -> Result<DirectoryHash, PostgresError> {
        let golden = self.home.join(GOLDEN);
        let wrong = |source| PostgresError::File { what: "cannot keep", path: golden.clone(), source };
        fs::rename(self.data(), &golden).map_err(wrong)?;
        DirectoryHash::of(&golden).map_err(wrong)
    }

    /// Replaces the data directory by a copy of the golden one; returns the hash of what it has.
    ///
    /// # Errors
    /// If there is no room.
    pub fn renew(&self) -> Result<DirectoryHash, PostgresError> {
        let data = self.data();
        let wrong = |source| PostgresError::File { what: "cannot renew", path: data.clone(), source };
        end_server(&data).map_err(wrong)?;
        if data.exists() {
            fs::remove_dir_all(&data).map_err(wrong)?;
        }
        golden::copy(&self.home.join(GOLDEN), &data, &Account::of_server()?).map_err(wrong)?;
        DirectoryHash::of(&data).map_err(wrong)
    }

    fn initialise(&self, account: &Account, creation: &Creation) -> Result<(), PostgresError> {
        let mut command = Command::new(self.installation.program("initdb"));
        command.arg("-D").arg(self.data()).arg(format!("--username={}", account::own_name()?));
        command.args(["--auth-local=peer", "--auth-host=reject", "--locale=C", "--encoding=UTF8"]);
        // The first settled run makes the files durable.
        command.args(["--no-sync", "--no-instructions"]);
        match (creation.checksums, self.installation.major) {
            (Some(true), _) => drop(command.arg("--data-checksums")),
            (Some(false), 18..) => drop(command.arg("--no-data-checksums")),
            _ => {}
        }
        if let Some(megabytes) = creation.segment_megabytes {
            command.arg(format!("--wal-segsize={megabytes}"));
        }
        account.run(&mut command);
        // Its bootstrap process ends with it.
        end_with_this_thread(&mut command, Signal::KILL);
        run("initdb", &mut command).map(|_| ())
    }

    /// Removes everything but the mark.
    fn empty(&self) -> Result<(), PostgresError> {
        let wrong = |source| PostgresError::File { what: "cannot empty", path: self.home.clone(), source };
        [self.data(), self.home.join(GOLDEN)].iter().try_for_each(|data| end_server(data)).map_err(wrong)?;
        let mark = self.owner.as_ref().map(|owner| owner.mark().to_path_buf());
        for entry in fs::read_dir(&self.home).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            if Some(&path) == mark.as_ref() {
                continue;
            }
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(wrong)?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let emptied = self.empty();
        if let Some(owner) = self.owner.take() {
            match emptied {
                Ok(()) => drop(owner),
                // Its mark tells the next `plumb clean` what to remove.
                Err(_) => return owner.leave(),
            }
        }
        let _ = fs::remove_dir(&self.home);
    }
}

impl Borrowed {
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.home.join(DATA)
    }

    /// Returns all files of the data directory.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        golden::files_below(&self.data())
    }

    /// Returns the effective values of these settings if the server were started with `given`.
    ///
    /// # Errors
    /// If the server refuses a setting, with its own message.
    pub fn effective(
        &self,
        given: &[(String, String)],
        names: &[&str],
    ) -> Result<Vec<String>, PostgresError> {
        let account = Account::of_server()?;
        let value = |name: &&str| {
            let mut command = Command::new(self.installation.program("postgres"));
            command.arg("-D").arg(self.data()).args(options(given)).args(["-C", name]);
            account.run(&mut command);
            run("postgres", &mut command).map_err(|error| match error {
                PostgresError::Program { said, .. } => PostgresError::NoStart { with: listed(given), said },
                other => other,
            })
        };
        names.iter().map(value).collect()
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// If it refuses a setting or ends, with its own last words.
    pub fn start(&self, given: &[(String, String)], cancel: &Cancel) -> Result<RunningServer, PostgresError> {
        let (data, log) = (self.data(), self.home.join(LOG));
        let wrong =
            |what, path: &Path, source| PostgresError::File { what, path: path.to_path_buf(), source };
        let directory = File::open(&data).map_err(|source| wrong("cannot open", &data, source))?;
        let output = File::create(&log).map_err(|source| wrong("cannot write", &log, source))?;
        let errors = output.try_clone().map_err(|source| wrong("cannot write", &log, source))?;
        let mut command = Command::new(self.installation.program("postgres"));
        command.arg("-D").arg(&data).args(options(given));
        command.stdin(Stdio::null()).stdout(output).stderr(errors).env("LC_ALL", "C");
        Account::of_server()?.run(&mut command);
        // A signal of the terminal is for this program alone.
        command.process_group(0);
        end_with_this_thread(&mut command, Signal::QUIT);
        let program = self.installation.program("postgres");
        let user = account::own_name()?;
        let child = command.spawn().map_err(|source| wrong("cannot start", &program, source))?;
        let installation = self.installation.clone();
        let mut server = RunningServer { child, directory, data, log, user, installation };
        server.wait_until_ready(given, cancel)?;
        Ok(server)
    }
}

/// A running server; dropping it ends it at once.
#[derive(Debug)]
pub struct RunningServer {
    child: Child,
    /// The open data directory, through which clients reach the socket.
    directory: File,
    data: PathBuf,
    log: PathBuf,
    user: String,
    pub(crate) installation: Installation,
}

impl RunningServer {
    /// Returns the directory of the socket, as other processes reach it while this one runs, and
    /// the name of the user that the server accepts.
    #[must_use]
    pub fn address(&self) -> (String, &str) {
        (format!("/proc/{}/fd/{}", std::process::id(), self.directory.as_raw_fd()), &self.user)
    }

    /// Returns the number of the server's first process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Connects a session under a name, with what the server says to it.
    ///
    /// # Errors
    /// If the server has ended or refuses.
    pub fn connect(
        &self,
        name: &str,
        says: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Client, PostgresError> {
        self.begin(name, Box::new(says)).map_err(|error| self.failed("a session connects", &error))
    }

    fn begin(&self, name: &str, says: Says) -> Result<Client, ClientError> {
        let mut config = Config::new();
        config.user(&self.user).dbname("postgres").application_name(name);
        let socket = format!("/proc/self/fd/{}/.s.PGSQL.{PORT}", self.directory.as_raw_fd());
        let place = wire::Place::Unix(Path::new(&socket));
        let terms = wire::Terms { auth: &AuthTerms::default(), tls: None };
        Client::start(wire::start(place, terms, &config), Duration::from_nanos(BOUND.0), says, None)
    }

    fn wait_until_ready(&mut self, given: &[(String, String)], cancel: &Cancel) -> Result<(), PostgresError> {
        let begin = clock::now();
        loop {
            cancel.check()?;
            if let Ok(Some(status)) = self.child.try_wait() {
                let said = self.last_words().unwrap_or_else(|| status.to_string());
                return Err(PostgresError::NoStart { with: listed(given), said });
            }
            match self.begin("plumb start", Box::new(|_| {})) {
                Ok(_) => return Ok(()),
                Err(error) if clock::now().saturating_sub(begin) > BOUND => {
                    return Err(self.failed("it starts", &error));
                }
                Err(_) => thread::sleep(INTERVAL),
            }
        }
    }

    /// Returns the error of a statement, or that of a server that has ended.
    #[must_use]
    pub fn failed(&self, during: &str, error: &ClientError) -> PostgresError {
        let during = during.to_string();
        let ends = |theirs: &&DbError| ENDS.contains(&theirs.code().code());
        let Some(theirs) = error.as_db_error().filter(|theirs| !error.is_closed() && !ends(theirs)) else {
            // The session sees the closed connection before the process has ended.
            thread::sleep(10 * INTERVAL);
            let said = self.reason().unwrap_or_else(|| error.to_string());
            return PostgresError::Died { during, said };
        };
        let cure = match theirs.code().code() {
            "53100" => MORE_ROOM,
            _ => "",
        };
        PostgresError::Statement { during, said: words_of(theirs), cure }
    }

    /// Returns the server's last line about an error, otherwise its last line.
    fn last_words(&self) -> Option<String> {
        fs::read_to_string(&self.log).ok().and_then(|log| last_error(&log).or_else(|| last_line(&log)))
    }

    /// Returns the reason why the server has ended: the signal that killed it, or its own line
    /// about an error. Lines before a signal are no reason.
    fn reason(&self) -> Option<String> {
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.pid()), seen).ok().flatten();
        let signal = status.and_then(|status| status.terminating_signal());
        let killed = signal.map(|signal| format!("signal {signal} killed its first process"));
        killed.or_else(|| last_error(&fs::read_to_string(&self.log).ok()?))
    }

    /// Stops the server in order, so that its files are complete.
    ///
    /// # Errors
    /// If it had ended before, or had to be ended.
    pub fn stop(mut self) -> Result<(), PostgresError> {
        let _ = kill_process(self.pid(), Signal::INT);
        match ended(&mut self.child, BOUND) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(PostgresError::Died {
                during: "it stops".to_string(),
                said: match status.signal() {
                    Some(signal) => format!("signal {signal} killed its first process"),
                    None => self.last_words().unwrap_or_else(|| status.to_string()),
                },
            }),
            None => Err(PostgresError::Died {
                during: "it stops".to_string(),
                said: format!("it did not end within {BOUND}"),
            }),
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = kill_process(self.pid(), Signal::QUIT);
            if ended(&mut self.child, END_BOUND).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        let _ = end_server(&self.data);
    }
}

fn ended(child: &mut Child, bound: Nanos) -> Option<std::process::ExitStatus> {
    let begin = clock::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if clock::now().saturating_sub(begin) <= bound => thread::sleep(INTERVAL),
            _ => return None,
        }
    }
}

/// Returns the options of `postgres` for settings, those of every server first.
fn options(given: &[(String, String)]) -> Vec<String> {
    let own = [
        ("listen_addresses", ""),
        ("unix_socket_directories", "."),
        ("unix_socket_permissions", "0700"),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
    ];
    let own = own.map(|(name, value)| (name.to_string(), value.to_string()));
    own.iter().chain(given).flat_map(|(name, value)| ["-c".to_string(), format!("{name}={value}")]).collect()
}

/// Lists settings for a message.
fn listed(given: &[(String, String)]) -> String {
    given.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Runs a program to its end; returns its output.
fn run(program: &str, command: &mut Command) -> Result<String, PostgresError> {
    let failed = |said: String| PostgresError::Program { program: program.to_string(), said };
    let output = command.stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let reason = last_error(&said).or_else(|| last_line(&said));
            Err(failed(reason.unwrap_or_else(|| output.status.to_string())))
        }
    }
}

/// Returns the line of a server's output that gives the reason: the last one that names an error,
/// with the cure if the disk is full.
fn last_error(log: &str) -> Option<String> {
    let words = ["PANIC:", "FATAL:", "error:", "ERROR:"];
    let after = |word: &&str| Some(log.lines().rev().find_map(|line| line.split_once(*word))?.1);
    let said = one_line(words.iter().find_map(after)?);
    let cure = if said.contains("No space left on device") { MORE_ROOM } else { "" };
    Some(said + cure)
}

fn last_line(log: &str) -> Option<String> {
    log.lines().rev().find(|line| !line.trim().is_empty()).map(one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_that_names_an_error() {
        let log = "2026-01-01 LOG:  starting\n2026-01-01 [7] FATAL:  could not write lock file: No space left\nLOG: down\n";
        assert_eq!(last_error(log).as_deref(), Some("could not write lock file: No space left"));
        let log = "LOG:  one\n2026 PANIC:  no room\nFATAL:  later\n";
        assert_eq!(last_error(log).as_deref(), Some("no room"));
        let full = "PANIC:  could not write to file \"pg_wal/xlogtemp.7\": No space left on device\n";
        assert!(last_error(full).is_some_and(|said| said.ends_with(MORE_ROOM)));
        assert_eq!(last_error("LOG:  ready\n\n"), None);
        assert_eq!(last_line("LOG:  ready\n\n").as_deref(), Some("LOG: ready"));
    }
}
