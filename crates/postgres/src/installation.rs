//! Finds server programs: the directory that is named, or the highest version of the usual places.
//!
//! Debian's PATH has wrappers only, so a directory counts if it holds both `postgres` and `initdb`.
//! `pg_config` comes last, because that of a client library may be of another version.
//!
//! A study's file may name the directory. So its programs run as the user of servers, never as
//! root, also when they are only asked for their version.
//!
//! Packages of embedded servers have no more than these two programs. Then the flags of the
//! compiler are read from `postgres`, extensions are looked for next to it, and pgbench may be
//! another installation's, since it speaks to servers of all versions.

use crate::PostgresError;
use crate::account::{Account, said};
use plumb_host::programs;
use plumb_units::hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest version whose views and options are known here.
pub const OLDEST: u32 = 14;

/// Directory of a server's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub directory: PathBuf,
    pub major: u32,
    /// Version as the server prints it: `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
}

impl Installation {
    /// Returns the named server; without a name the highest version found.
    ///
    /// # Errors
    /// If there is none, or it is too old.
    pub fn find(named: Option<&str>) -> Result<Installation, PostgresError> {
        match named {
            Some(named) => Installation::of(&directory_of(Path::new(named))),
            None => Installation::all().into_iter().next().ok_or_else(|| PostgresError::NoServer {
                looked: "PATH, /usr/lib/postgresql/*/bin, /usr/pgsql-*/bin and `pg_config --bindir`"
                    .to_string(),
            }),
        }
    }

    /// Returns all servers of the usual places, the highest version first.
    #[must_use]
    pub fn all() -> Vec<Installation> {
        let mut directories = programs::directories();
        directories.extend(versions_in("/usr/lib/postgresql", ""));
        directories.extend(versions_in("/usr", "pgsql-"));
        directories.extend(asked(Account::program("pg_config").arg("--bindir")).map(PathBuf::from));
        let mut found: Vec<Installation> = Vec::new();
        for directory in directories {
            let Ok(installation) = Installation::of(&directory) else { continue };
            if found.iter().all(|known| known.directory != installation.directory) {
                found.push(installation);
            }
        }
        found.sort_by_key(|installation| std::cmp::Reverse(installation.major));
        found
    }

    fn of(directory: &Path) -> Result<Installation, PostgresError> {
        for program in ["postgres", "initdb"] {
            if !directory.join(program).is_file() {
                return Err(PostgresError::NoProgram { directory: directory.to_path_buf(), program });
            }
        }
        let directory = linked(directory);
        let program = directory.join("postgres");
        let Some(line) = asked(Command::new(&program).arg("--version")) else {
            return Err(PostgresError::NotRun { program, user: Account::of_server()?.name });
        };
        let version = line.rsplit_once("(PostgreSQL) ").map_or("", |(_, version)| version).to_string();
        let digits = version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        let major = digits.parse().unwrap_or(0);
        match major >= OLDEST {
            true => Ok(Installation { directory, major, version }),
            false => {
                let found = if version.is_empty() { line } else { version };
                Err(PostgresError::TooOld { directory, found, oldest: OLDEST })
            }
        }
    }

    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns a line of `pg_config`; `None` if it is not installed.
    #[must_use]
    pub fn config(&self, option: &str) -> Option<String> {
        asked(Command::new(self.program("pg_config")).arg(option))
    }

    /// Returns a program that speaks to a server of any version: this installation's, otherwise
    /// that of the highest version that has one.
    ///
    /// # Errors
    /// If no installation has it.
    pub fn client(&self, name: &'static str) -> Result<PathBuf, PostgresError> {
        let own = std::iter::once(self.program(name));
        let others = Installation::all().into_iter().map(|installation| installation.program(name));
        own.chain(others)
            .find(|program| program.is_file())
            .ok_or_else(|| PostgresError::NoClient { directory: self.directory.clone(), program: name })
    }

    /// Returns the optimisation that the server was built with, such as `-O2`. Builds for size
    /// (`-Os`) are slower, and no figure of theirs holds for a distribution's server.
    #[must_use]
    pub fn optimisation(&self) -> Option<String> {
        let in_program = || flags_in(&fs::read(self.program("postgres")).ok()?);
        let flags = self.config("--cflags").or_else(in_program)?;
        flags.split_whitespace().rev().find(|flag| flag.starts_with("-O")).map(str::to_string)
    }

    /// True if an extension's control file is installed.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        let next = |path| self.directory.join(path);
        let shared = self.config("--sharedir").map(PathBuf::from);
        let shared = shared.into_iter().chain(["../share/postgresql", "../share"].map(next));
        shared.into_iter().any(|shared| shared.join(format!("extension/{name}.control")).is_file())
    }

    #[must_use]
    pub fn sha256(&self) -> Option<String> {
        sha256(&self.program("postgres"))
    }

    /// Names the server in the record of a run by its version, and by its build if that is not
    /// `-O2`.
    #[must_use]
    pub fn named(&self) -> String {
        let unusual = self.optimisation().filter(|flag| flag != "-O2");
        let built = unusual.map_or(String::new(), |flag| format!(", built with {flag}"));
        format!("PostgreSQL {}{built}", self.version)
    }

    /// Describes the server for the head of a report.
    #[must_use]
    pub fn describe(&self) -> String {
        let built = self.optimisation().map_or(String::new(), |flag| format!(", built with {flag}"));
        let hash = self.sha256().map_or(String::new(), |hash| format!(", sha256 {}", &hash[..16]));
        format!("PostgreSQL {} of {}{built}{hash}", self.version, self.directory.display())
    }
}

/// Returns what a program prints as the user of servers, because a study's file may name it.
pub(crate) fn asked(command: &mut Command) -> Option<String> {
    Account::of_server().ok()?.run(command);
    said(command)
}

/// Returns the hash of a program's file; `None` if it cannot be read.
pub(crate) fn sha256(program: &Path) -> Option<String> {
    let mut file = fs::File::open(program).ok()?;
    let (mut hash, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
    while let count @ 1.. = file.read(&mut piece).ok()? {
        hash.update(&piece[..count]);
    }
    Some(hex(&hash.finalize()))
}

/// Returns the directory that the links of a directory's programs lead to, because the server's
/// other programs are there; the directory itself if its programs are no links to one.
fn linked(directory: &Path) -> PathBuf {
    let program = directory.join("postgres").canonicalize();
    let there = program.ok().and_then(|program| Some(program.parent()?.to_path_buf()));
    there.filter(|there| there.join("initdb").is_file()).unwrap_or_else(|| directory.to_path_buf())
}

/// Returns the directory of a server named by its directory, its `bin` or its program.
fn directory_of(asked: &Path) -> PathBuf {
    match asked {
        _ if asked.is_file() => asked.parent().unwrap_or(asked).to_path_buf(),
        _ if asked.join("bin/postgres").is_file() => asked.join("bin"),
        _ => asked.to_path_buf(),
    }
}

/// Returns the compiler's flags, which a server has as text for its view `pg_config`. All words of
/// the text begin with a dash, and one is an optimisation.
fn flags_in(program: &[u8]) -> Option<String> {
    let is_flags =
        |text: &&str| text.contains(" -O") && text.split_whitespace().all(|word| word.starts_with('-'));
    let texts = program.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    texts.into_iter().find(is_flags).map(str::to_string)
}

/// Returns `bin` of each directory whose name is a prefix and a version.
fn versions_in(directory: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_version = |name: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_version));
    named.map(|entry| entry.path().join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Makes a directory that the user of servers can enter.
    fn open_directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        directory
    }

    /// Makes a directory with programs that print this version.
    fn fake(version: &str, programs: &[&str]) -> tempfile::TempDir {
        let directory = open_directory();
        for program in programs {
            let path = directory.path().join(program);
            fs::write(&path, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"))
                .expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        directory
    }

    #[test]
    fn a_server_is_known_by_its_two_programs_and_its_version() {
        let found = fake("16.4 (Debian 16.4-1)", &["postgres", "initdb"]);
        let named = found.path().to_str().expect("text");
        let installation = Installation::find(Some(named)).expect("both programs");
        assert_eq!((installation.major, installation.version.as_str()), (16, "16.4 (Debian 16.4-1)"));
        let by_program = found.path().join("postgres");
        let by_program = Installation::find(by_program.to_str()).expect("by its program");
        assert_eq!(by_program, installation);
        let links = open_directory();
        for program in ["postgres", "initdb"] {
            std::os::unix::fs::symlink(found.path().join(program), links.path().join(program))
                .expect("a link");
        }
        let linked = Installation::find(links.path().to_str()).expect("both programs");
        assert_eq!(linked.directory, installation.directory, "the other programs are there");
        let half = fake("16.4", &["postgres"]);
        let error = Installation::find(half.path().to_str()).expect_err("no initdb").to_string();
        assert!(error.contains("there is no initdb in it; name the directory that has both"), "{error}");
    }

    #[test]
    fn a_package_with_two_programs_tells_its_build_its_extensions_and_who_has_pgbench() {
        let package = open_directory();
        let bin = package.path().join("bin");
        fs::create_dir(&bin).expect("a directory");
        for program in ["postgres", "initdb"] {
            let texts = "#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'; exit\n\0-O0A\0 'CFLAGS=-Os' '--with-icu'\0\
                         -Wall -fwrapv -Os -DMAP_HUGETLB=0x40000\0-O3 is a flag\0";
            fs::write(bin.join(program), texts).expect("a program");
            fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        let extensions = package.path().join("share/postgresql/extension");
        fs::create_dir_all(&extensions).expect("directories");
        fs::write(extensions.join("amcheck.control"), "").expect("a file");
        let installation = Installation::find(package.path().to_str()).expect("both programs");
        assert_eq!(installation.optimisation().as_deref(), Some("-Os"));
        assert!(installation.describe().contains(", built with -Os, "), "{}", installation.describe());
        assert!(installation.has_extension("amcheck") && !installation.has_extension("pg_prewarm"));
        let error = installation.client("pg_no_such").expect_err("none has it").to_string();
        assert!(
            error.contains("pg_no_such is neither in ") && error.contains("apt-get install postgresql"),
            "{error}"
        );
        fs::copy(bin.join("postgres"), bin.join("pgbench")).expect("a program");
        assert_eq!(installation.client("pgbench").ok(), Some(installation.program("pgbench")));
    }

    #[test]
    fn an_old_server_is_refused_in_one_line() {
        for version in ["9.6.24", "13.22 (Debian 13.22-1)"] {
            let old = fake(version, &["postgres", "initdb"]);
            let error = Installation::find(old.path().to_str()).expect_err("too old").to_string();
            assert!(
                error.ends_with(&format!(
                    " is PostgreSQL {version}, expected 14 or later; name another server"
                )),
                "{error}"
            );
            assert!(!error.contains('\n'));
        }
    }
}
