//! The undo journal: values of settings that a study changes in the files of a server of others.
//!
//! ```text
//! made, synced ──> [ ALTER SYSTEM, reload ]* ──> values put back ──> removed
//!      └── killed here: the next study on the server, or `plumb undo FILE`, puts them back
//! ```
//!
//! The file is written once, before the first change, because all values of a study are known
//! then. It has two lines: the content as JSON, and its SHA-256. A file cut off anywhere has
//! another hash. It gets its name by a link when it is whole and synced.
//!
//! - No setting is changed before its journal is on the disk.
//! - The process that made it holds its lock until the values are back. So a file without a
//!   lock is what a killed process left.
//! - A value is put back only if the present one is the study's. Another one was set meanwhile.
//! - It names numbers, truth values and words of a list, never text: a command or a path in a
//!   forged journal would run with the server's rights.
//! - It names no value that a study would not set ([`never`]).
//!
//! It has no password: the address is the one that is shown.
//!
//! Rejected: a line per change. A torn last line would need a rule of its own, and saves nothing.

use crate::PostgresError;
use crate::address::Variables;
use crate::receipts::is_on;
use plumb_host::regular::{open_regular, read_at_most};
use plumb_host::rights::caller;
use plumb_units::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Start of the names of journals.
pub const PREFIX: &str = "undo-";
const FORMAT: u32 = 1;
/// Most bytes of a file, settings of a journal, values of a setting, bytes of a value.
const BYTES_MOST: u64 = 1 << 20;
const SETTINGS_MOST: usize = 100;
const VALUES_MOST: usize = 100;
const VALUE_BYTES_MOST: usize = 200;
/// Settings without which a crash damages data.
pub(super) const OF_CRASHES: [&str; 2] = ["fsync", "full_page_writes"];
/// Settings of access, next to those of TLS, and settings that others' safety depends on.
const OF_ACCESS: [&str; 12] = [
    "allow_alter_system",
    "authentication_timeout",
    "db_user_namespace",
    "idle_replication_slot_timeout",
    "krb_caseins_users",
    "max_slot_wal_keep_size",
    "post_auth_delay",
    "pre_auth_delay",
    "restart_after_crash",
    "vacuum_defer_cleanup_age",
    "wal_keep_segments",
    "wal_keep_size",
];
/// Bytes of a name, as the server has them.
const NAME_MOST: usize = 63;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    pub format: u32,
    /// Identity of the server: the identifier that `initdb` gave it.
    pub server: String,
    pub address: String,
    /// Time, process and host of the study.
    pub made: String,
    pub settings: Vec<ChangedSetting>,
}

impl Journal {
    /// Returns the names of its settings.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.settings.iter().map(|set| set.name.as_str()).collect()
    }
}

/// A setting that the study changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedSetting {
    pub name: String,
    /// Value that ALTER SYSTEM had set before; `None` if it had set none.
    pub before: Option<String>,
    /// Value in force before, in the setting's unit.
    pub in_force: String,
    /// Values that the study sets.
    pub ours: Vec<String>,
}

/// A file in the state directory, with a lock that this process holds.
#[derive(Debug)]
pub(super) struct HeldFile {
    path: PathBuf,
    _lock: File,
}

/// A journal's file, which this process holds.
#[derive(Debug)]
pub struct JournalFile(HeldFile);

/// Returns the directory of journals; `None` without a home.
#[must_use]
pub fn directory(variables: Variables<'_>) -> Option<PathBuf> {
    let state = variables("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(variables("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("plumb"))
}

/// Returns the path of a server's journal: one for each server.
#[must_use]
pub fn path_in(directory: &Path, server: &str) -> PathBuf {
    directory.join(format!("{PREFIX}{}.json", &hex(&Sha256::digest(server.as_bytes()))[..16]))
}

impl HeldFile {
    /// Writes a file and syncs it with its directory; it gets its name when it is whole and locked.
    pub fn make(path: &Path, text: &str) -> Result<HeldFile, PostgresError> {
        let wrong = |source| PostgresError::File { what: "cannot write", path: path.to_path_buf(), source };
        let directory = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(wrong)?;
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        let _ = fs::remove_file(&draft);
        let open = File::options().read(true).write(true).create_new(true).mode(0o600).open(&draft);
        let mut file = open.map_err(wrong)?;
        file.lock().map_err(wrong)?;
        let whole = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let linked = whole.and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        linked.map_err(wrong)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(wrong)?;
        Ok(HeldFile { path: path.to_path_buf(), _lock: file })
    }

    /// Reads the file of a process that has ended, and holds it from now on. Fails with `running`
    /// while the process lives.
    pub fn take(path: &Path, running: &str) -> Result<(HeldFile, Vec<u8>), PostgresError> {
        let wrong = |source| PostgresError::File { what: "cannot read", path: path.to_path_buf(), source };
        let refused = |why: String| PostgresError::Unfit(format!("{}: {why}", path.display()));
        let file = open_regular(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => refused(
                "there is no such file; a journal that was carried out is removed, and its settings are back"
                    .to_string(),
            ),
            _ => wrong(source),
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(refused(running.to_string())),
            Err(TryLockError::Error(source)) => return Err(wrong(source)),
        }
        let found = file.metadata().map_err(wrong)?;
        if (found.uid() != caller() && found.uid() != 0) || found.mode() & 0o022 != 0 {
            return Err(refused(format!(
                "it belongs to user {} with the mode {:04o}, expected this user's own, which no other may write",
                found.uid(),
                found.mode() & 0o7777
            )));
        }
        let copy = file.try_clone().map_err(wrong)?;
        let bytes = read_at_most(copy.into(), BYTES_MOST).map_err(wrong)?;
        Ok((HeldFile { path: path.to_path_buf(), _lock: file }, bytes))
    }

    pub fn remove(self) -> Result<(), PostgresError> {
        let wrong = |source| PostgresError::File { what: "cannot remove", path: self.path.clone(), source };
        fs::remove_file(&self.path).map_err(wrong)
    }
}

impl JournalFile {
    /// Writes a journal and syncs it with its directory.
    ///
    /// # Errors
    /// If another journal of the server is there, or the file cannot be written.
    pub fn make(directory: &Path, journal: &Journal) -> Result<JournalFile, PostgresError> {
        let path = path_in(directory, &journal.server);
        let made = HeldFile::make(&path, &written(journal));
        made.map(JournalFile).map_err(|error| match &error {
            PostgresError::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                PostgresError::Unfit(format!(
                    "{}: another study has just begun to change settings of this server; wait for its end",
                    path.display()
                ))
            }
            _ => error,
        })
    }

    /// Reads the journal of a process that has ended, and holds it from now on.
    ///
    /// # Errors
    /// If a process holds it, others may write it, or it is no whole journal.
    pub fn take(path: &Path) -> Result<(JournalFile, Journal), PostgresError> {
        let running = "the study that made this journal is running; it puts the values back at its end";
        let (held, bytes) = HeldFile::take(path, running)?;
        let refused = |why: String| PostgresError::Unfit(format!("{}: {why}", path.display()));
        Ok((JournalFile(held), read(&bytes).map_err(refused)?))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Removes the file: all values are back.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(self) -> Result<(), PostgresError> {
        self.0.remove()
    }
}

/// Returns the text of a file: a line of JSON, and its hash.
pub(super) fn written<C: Serialize>(content: &C) -> String {
    let content = serde_json::to_string(content).unwrap_or_default();
    let hash = hex(&Sha256::digest(content.as_bytes()));
    format!("{content}\n{hash}\n")
}

/// Returns the line of JSON if the hash is its own.
pub(super) fn content(bytes: &[u8]) -> Option<&str> {
    let (content, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    (rest == format!("{}\n", hex(&Sha256::digest(content.as_bytes())))).then_some(content)
}

/// Reads the text of a journal's file, which another may have written.
fn read(bytes: &[u8]) -> Result<Journal, String> {
    let torn = || {
        "it is no whole undo journal: its hash is not that of its content; it changes nothing: put the settings that it \
            names back by hand, then remove it".to_string()
    };
    let content = content(bytes).ok_or_else(torn)?;
    let journal: Journal =
        serde_json::from_str(content).map_err(|error| format!("it is no undo journal: {error}"))?;
    if journal.format != FORMAT {
        return Err(format!(
            "it has the format {}, expected {FORMAT}; use the plumb that wrote it",
            journal.format
        ));
    }
    if journal.settings.is_empty() || journal.settings.len() > SETTINGS_MOST {
        return Err(format!("it has {} settings, expected 1 to {SETTINGS_MOST}", journal.settings.len()));
    }
    let shown = [&journal.server, &journal.address, &journal.made];
    if let Some(text) = shown.into_iter().find(|text| text.chars().any(char::is_control)) {
        return Err(format!("it has control characters in {text:?}"));
    }
    journal.settings.iter().try_for_each(require)?;
    Ok(journal)
}

/// Rejects a name or a value that no study writes.
fn require(setting: &ChangedSetting) -> Result<(), String> {
    let ChangedSetting { name, before, in_force, ours } = setting;
    if name.is_empty() || name.len() > NAME_MOST || !name.chars().all(is_of_name) {
        return Err(format!("{name:?} is no name of a setting"));
    }
    if ours.is_empty() || ours.len() > VALUES_MOST {
        return Err(format!("{name} has {} values, expected 1 to {VALUES_MOST}", ours.len()));
    }
    let mut values = before.iter().chain(ours).chain([in_force]);
    if let Some(value) = values.find(|value| !is_plain(value)) {
        return Err(format!("{name} = {value:?} is no number, truth value or word"));
    }
    let mut values = before.iter().chain(ours).chain([in_force]);
    match values.find_map(|value| never(name, value)) {
        Some(why) => Err(format!("{name}: {why}")),
        None => Ok(()),
    }
}

/// Returns the reason why plumb never gives a setting a value, neither in a study nor on the way
/// back.
pub(super) fn never(name: &str, value: &str) -> Option<&'static str> {
    if OF_CRASHES.contains(&name) && !is_on(value) {
        return Some("off lets a crash damage the data of others; run this study without --target");
    }
    (OF_ACCESS.contains(&name) || name.starts_with("ssl"))
        .then_some("it decides who may connect, or what replicas and the administrator rely on, and plumb does not set it")
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_' || letter == '.'
}

/// True for a value that a number, a truth value or a word of a list may have.
#[must_use]
pub(super) fn is_plain(value: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || " _-+.".contains(letter);
    value.len() <= VALUE_BYTES_MOST && value.chars().all(plain)
}

pub(super) fn new(server: &str, address: &str, made: String, settings: Vec<ChangedSetting>) -> Journal {
    let (server, address) = (server.to_string(), address.to_string());
    Journal { format: FORMAT, server, address, made, settings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn journal() -> Journal {
        let setting = ChangedSetting {
            name: "max_wal_size".to_string(),
            before: None,
            in_force: "1024".to_string(),
            ours: vec!["1GB".to_string(), "4GB".to_string()],
        };
        new("system 7", "postgres://me@h:5432/d", "then".to_string(), vec![setting])
    }

    #[test]
    fn a_journal_is_held_then_taken_then_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("state/plumb");
        let held = JournalFile::make(&directory, &journal()).expect("it is written");
        let path = held.path().to_path_buf();
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let running = JournalFile::take(&path).expect_err("it is held").to_string();
        assert!(running.contains("the study that made this journal is running"), "{running}");
        let second = JournalFile::make(&directory, &journal()).expect_err("one for each server").to_string();
        assert!(second.contains("another study has just begun"), "{second}");
        // What a kill does: the lock is gone and the file is not.
        drop(held);
        let (taken, found) = JournalFile::take(&path).expect("nobody holds it");
        assert_eq!(found, journal());
        taken.remove().expect("removed");
        assert!(fs::read_dir(&directory).expect("a directory").next().is_none());
    }

    #[test]
    fn a_journal_cut_anywhere_or_with_a_byte_changed_is_refused() {
        let whole = written(&journal());
        assert!(read(whole.as_bytes()).is_ok());
        for end in 0..whole.len() {
            let error = read(&whole.as_bytes()[..end]).expect_err("cut off");
            assert!(error.contains("no whole undo journal"), "{end}: {error}");
        }
        let changed = whole.replace("4GB", "9GB");
        assert!(read(changed.as_bytes()).expect_err("changed").contains("no whole undo journal"));
    }

    #[test]
    fn a_journal_that_no_study_writes_is_refused_in_a_line() {
        let refused = |change: fn(&mut Journal)| {
            let mut journal = journal();
            change(&mut journal);
            let error = read(written(&journal).as_bytes()).expect_err("hostile");
            assert!(!error.contains('\n') && error.len() < 300, "{error}");
            error
        };
        assert!(refused(|it| it.format = 2).contains("format 2, expected 1"));
        assert!(refused(|it| it.settings.clear()).contains("0 settings"));
        assert!(
            refused(|it| it.settings[0].name = "a; drop table t".into()).contains("no name of a setting")
        );
        assert!(refused(|it| it.settings[0].before = Some("'; x".into())).contains("no number"));
        assert!(refused(|it| it.settings[0].ours = vec!["/bin/sh".into()]).contains("no number"));
        assert!(refused(|it| it.settings[0].ours.clear()).contains("0 values"));
        for name in ["fsync", "full_page_writes"] {
            let off = ChangedSetting {
                name: name.to_string(),
                before: Some("off".to_string()),
                in_force: "on".to_string(),
                ours: vec!["on".to_string()],
            };
            let of =
                |set: ChangedSetting| read(written(&new("s", "a", "m".to_string(), vec![set])).as_bytes());
            assert!(of(off.clone()).expect_err("before").contains("a crash damage the data"));
            let in_force = ChangedSetting { before: None, in_force: "0".to_string(), ..off.clone() };
            assert!(of(in_force).expect_err("in force").contains("a crash damage the data"));
            let ours = ChangedSetting { before: None, ours: vec!["off".to_string()], ..off.clone() };
            assert!(of(ours).expect_err("ours").contains("a crash damage the data"));
            of(ChangedSetting { before: Some("on".to_string()), ..off }).expect("on");
        }
        assert!(refused(|it| it.settings[0].name = "ssl_ciphers".into()).contains("who may connect"));
        assert!(refused(|it| it.settings[0].name = "pre_auth_delay".into()).contains("who may connect"));
        assert!(refused(|it| it.address = "postgres://h\n\u{1b}[2J".into()).contains("control characters"));
        let more = written(&journal()).replacen("{\"format\"", "{\"more\":1,\"format\"", 1);
        let (content, _) = more.split_once('\n').expect("two lines");
        let more = format!("{content}\n{}\n", hex(&Sha256::digest(content.as_bytes())));
        assert!(read(more.as_bytes()).expect_err("unknown").contains("unknown field"));
    }

    #[test]
    fn a_forged_journal_has_nothing_that_a_study_would_not_set() {
        const NAMES: [&str; 10] = [
            "fsync",
            "full_page_writes",
            "max_wal_size",
            "ssl",
            "archive_command",
            "autovacuum",
            "a; drop table t",
            "restart_after_crash",
            "\u{1b}[2J",
            "",
        ];
        const VALUES: [&str; 10] =
            ["on", "off", "0", "1GB", "/bin/sh -c id", "'; select 1", "lz4", "fal", "-1", "\u{202e}"];
        let mut random = plumb_units::SplitMix(65);
        let mut taken = 0;
        for _ in 0..200 {
            let mut pick = |known: &[&str; 10]| known[random.below(10) as usize].to_string();
            let setting = ChangedSetting {
                name: pick(&NAMES),
                before: Some(pick(&VALUES)),
                in_force: pick(&VALUES),
                ours: vec![pick(&VALUES)],
            };
            let forged = new("system 1", "postgres://h/d", pick(&VALUES), vec![setting]);
            match read(written(&forged).as_bytes()) {
                Ok(journal) => {
                    taken += 1;
                    let set = &journal.settings[0];
                    let values = [&set.in_force, &set.ours[0]].into_iter().chain(&set.before);
                    for value in values {
                        assert!(is_plain(value) && never(&set.name, value).is_none(), "{set:?}");
                    }
                    assert!(set.name != "ssl" && set.name != "restart_after_crash", "{set:?}");
                }
                Err(why) => assert!(!why.contains(['\n', '\u{1b}']) && why.len() < 300, "{why}"),
            }
        }
        assert!((5..150).contains(&taken), "{taken} of 200");
    }

    #[test]
    fn a_journal_that_others_may_write_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("undo.json");
        fs::write(&path, written(&journal())).expect("a file");
        for (mode, is_taken) in [(0o600, true), (0o620, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            let taken = JournalFile::take(&path);
            assert_eq!(taken.is_ok(), is_taken, "{mode:o}: {taken:?}");
        }
        let missing = JournalFile::take(&place.path().join("none.json")).expect_err("no file").to_string();
        assert!(missing.contains("none.json") && !missing.contains('\n'), "{missing}");
    }

    #[test]
    fn journals_are_kept_below_the_state_of_the_user() {
        let of = |known: &[(&str, &str)]| {
            directory(&|name| {
                let found = known.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.to_string())
            })
        };
        assert_eq!(of(&[("HOME", "/h")]), Some(PathBuf::from("/h/.local/state/plumb")));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]), Some(PathBuf::from("/s/plumb")));
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]),
            Some(PathBuf::from("/h/.local/state/plumb"))
        );
        assert_eq!(of(&[]), None);
    }
}
