//! The operating system's user that runs a server.
//!
//! `postgres` and `initdb` refuse root, and `initdb` needs a user that the machine knows. So root
//! runs them as `postgres`, else as `nobody`. The server accepts only plumb's own user, as the
//! kernel reports it for each connection (`peer`), so that there is no password to keep. This holds
//! for `nobody`, too, although other daemons may have its number.

use crate::PostgresError;
use plumb_host::programs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Users that root may run a server as, in order.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// User of the server's processes and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// Numbers of user and group; `None` for the user of this program.
    numbers: Option<(u32, u32)>,
}

impl Account {
    /// Returns the user for a server: this program's, unless that is root.
    ///
    /// # Errors
    /// If root has no other user for it.
    pub fn of_server() -> Result<Account, PostgresError> {
        if !rustix::process::geteuid().is_root() {
            return Account::of_program();
        }
        // Each program that is asked for its version needs it.
        static KNOWN: OnceLock<Option<Account>> = OnceLock::new();
        let known = KNOWN.get_or_init(|| {
            USERS.into_iter().find_map(|name| {
                let number = |option| id(&[option, name])?.parse().ok();
                Some(Account { name: name.to_string(), numbers: Some((number("-u")?, number("-g")?)) })
            })
        });
        known.clone().ok_or(PostgresError::NoAccount)
    }

    /// Returns this program's user.
    ///
    /// # Errors
    /// If the machine has no name for it.
    pub fn of_program() -> Result<Account, PostgresError> {
        Ok(Account { name: own_name()?, numbers: None })
    }

    /// Returns a command of a program in PATH. Relative entries are skipped: the directory in which
    /// plumb runs may be a stranger's.
    #[must_use]
    pub fn program(name: &str) -> Command {
        Command::new(programs::find(name).unwrap_or_else(|| Path::new("/usr/bin").join(name)))
    }

    /// Makes a command run as this user, in a directory that the user can enter, without the
    /// variables of PostgreSQL's clients, of which PGPORT is a server's, too.
    pub fn run(&self, command: &mut Command) {
        command.current_dir("/");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        if let Some((user, group)) = self.numbers {
            command.uid(user).gid(group);
        }
    }

    /// Gives a file or directory to this user.
    ///
    /// # Errors
    /// The kernel's.
    pub fn own(&self, path: &Path) -> std::io::Result<()> {
        let Some((user, group)) = self.numbers else { return Ok(()) };
        std::os::unix::fs::lchown(path, Some(user), Some(group))
    }

    /// True if this user may write to a directory, with all directories above it.
    #[must_use]
    pub fn reaches(&self, directory: &Path) -> bool {
        let mut command = Account::program("test");
        command.arg("-w").arg(directory).stdin(Stdio::null()).stderr(Stdio::null());
        self.run(&mut command);
        command.status().is_ok_and(|status| status.success())
    }
}

/// Returns the name of this program's user, under which it connects.
///
/// # Errors
/// If the machine knows no name for the number.
pub fn own_name() -> Result<String, PostgresError> {
    let unknown =
        || PostgresError::Unfit("the machine has no name for this user (`id -un`); add one".to_string());
    id(&["-un"]).ok_or_else(unknown)
}

fn id(arguments: &[&str]) -> Option<String> {
    said(Account::program("id").args(arguments))
}

/// Returns what a program prints, if it succeeds.
pub(crate) fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}
