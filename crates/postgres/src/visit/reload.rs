//! Settings of a server of others that need a reload of its files: ALTER SYSTEM, and the way back.
//!
//! ```text
//! planned (rights, old values) ──> journal ──> apply, for each run ──> put_back ──> end of journal
//! apply:  ALTER SYSTEM ──> pg_reload_conf() ──> new sessions until one has the files' new state
//! ```
//!
//! A reload is asynchronous: the function sends a signal. A new session inherits the time of the
//! last load from the first process, so the load has been done when that time is later than the
//! request. Then the value in force must come from the file that ALTER SYSTEM writes.
//!
//! A reload loads all files, so a server is refused if its files have changes that are not loaded
//! ([`unloaded`]).
//!
//! One process at a time changes a server's settings. Each holds a session with a name of its own,
//! connects it first and then looks for others: at least one of two sees the other. The journal's
//! lock is no such guard, because another user or machine has another journal.
//!
//! Refused for good, in a study and on the way back: settings that need a restart; texts, which may
//! be commands and paths; what [`journal::never`] names, such as `fsync` off.
//!
//! A journal says where it is to be carried out. So it is read and shown before anything connects
//! ([`LeftJournal`]): the address may be a stranger's, who waits for a password.
//!
//! Limits: what a killed study of another user or machine left is seen as the server's own values.
//!
//! [`unloaded`]: super::unloaded

use super::fitness::Facts;
use super::journal::{self, ChangedSetting, Journal, JournalFile};
use super::{mark, unloaded};
use crate::PostgresError;
use crate::address::ServerAddress;
use crate::client::Client;
use crate::session::{Served, ServerSession};
use plumb_events::clock;
use plumb_record::calendar::Moment;
use plumb_study::machine;
use plumb_units::{Nanos, hex};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tokio_postgres::Row;

/// Longest time of a reload, and the time between two sessions that look for its end.
const BOUND: Nanos = Nanos(30_000_000_000);
const INTERVAL: Duration = Duration::from_millis(50);
/// The first version with the privilege ALTER SYSTEM.
const GRANTS_SINCE: i32 = 150_000;
/// Start of the name of the session that a process holds while it changes settings.
const GUARD: &str = "plumb reload";
/// Sessions of other processes that change settings: any user may see the names.
const OTHERS: &str = "select application_name, pid::text from pg_catalog.pg_stat_activity \
                      where application_name like $1 and application_name <> $2 limit 1";
/// Identity of a server: with rights to neither, nothing tells it from another.
const IDENTITY: &str = "select case \
                        when pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') \
                        then 'system ' || (select system_identifier from pg_catalog.pg_control_system()) \
                        else 'cluster ' || pg_catalog.current_setting('cluster_name') \
                        || ', port ' || pg_catalog.current_setting('port') end";
const RIGHTS: &str = "select pg_catalog.current_setting('is_superuser') = 'on', current_user::text, \
                      pg_catalog.has_table_privilege('pg_catalog.pg_file_settings', 'select') \
                      and pg_catalog.has_function_privilege('pg_catalog.pg_show_all_file_settings()', \
                      'execute'), \
                      pg_catalog.has_function_privilege('pg_catalog.pg_reload_conf()', 'execute')";
/// The last line of a setting in the file of ALTER SYSTEM.
const WRITTEN: &str = "select setting from pg_catalog.pg_file_settings where pg_catalog.lower(name) = $1 \
                       and sourcefile like '%/postgresql.auto.conf' order by seqno desc limit 1";
/// The last line of a setting in the other files.
const BELOW: &str = "select setting from pg_catalog.pg_file_settings where pg_catalog.lower(name) = $1 \
                     and sourcefile not like '%/postgresql.auto.conf' order by seqno desc limit 1";
/// True if the line of ALTER SYSTEM is the one that counts.
const APPLIES: &str = "select coalesce(pg_catalog.bool_or(applied and error is null), false) \
                       from pg_catalog.pg_file_settings \
                       where pg_catalog.lower(name) = $1 and sourcefile like '%/postgresql.auto.conf'";
const IN_FORCE: &str =
    "select coalesce(setting, ''), source, context, vartype from pg_catalog.pg_settings where name = $1";

/// A setting with the values that a study gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub name: String,
    pub values: Vec<String>,
}

/// A setting as the server has it.
struct Present {
    value: String,
    source: String,
    context: String,
    kind: String,
}

/// Returns the identity of a server.
pub(super) fn identity(session: &mut ServerSession<'_>) -> Result<String, PostgresError> {
    session.value("the server is identified", IDENTITY)
}

fn text(row: &Row, column: usize) -> String {
    row.try_get(column).unwrap_or_default()
}

fn present(session: &mut ServerSession<'_>, name: &str) -> Result<Option<Present>, PostgresError> {
    let rows = session.rows("a setting is read", IN_FORCE, &[&name])?;
    let of = |row: &Row| Present {
        value: text(row, 0),
        source: text(row, 1),
        context: text(row, 2),
        kind: text(row, 3),
    };
    Ok(rows.first().map(of))
}

/// Returns the value that ALTER SYSTEM has set.
fn altered(session: &mut ServerSession<'_>, name: &str) -> Result<Option<String>, PostgresError> {
    let rows = session.rows("the file of ALTER SYSTEM is read", WRITTEN, &[&name])?;
    Ok(rows.first().map(|row| text(row, 0)))
}

/// Returns how a setting takes effect, as the server says it; `None` for an unknown one.
pub(super) fn context(session: &mut ServerSession<'_>, name: &str) -> Result<Option<String>, PostgresError> {
    Ok(present(session, name)?.map(|present| present.context))
}

/// The session of the one process that changes a server's settings.
pub(super) struct Guard {
    session: Client,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(GUARD)
    }
}

impl Guard {
    /// Connects the session, and fails if another process has one.
    pub fn take(server: &ServerAddress) -> Result<Guard, PostgresError> {
        let mut session = server.open(&own_guard(), Box::new(|_| {}))?;
        let idle = session.batch_execute("set idle_session_timeout = 0");
        idle.map_err(|error| server.failed("other studies are looked for", &error))?;
        require_alone(&mut session, server)?;
        Ok(Guard { session })
    }

    /// Fails if the session has ended, or another process has one.
    fn require(&mut self, server: &ServerAddress) -> Result<(), PostgresError> {
        require_alone(&mut self.session, server)
    }
}

/// Returns this process's name of the session: numbers of processes repeat on other machines.
fn own_guard() -> String {
    let process = std::process::id();
    let place = hex(&Sha256::digest(mark::origin().as_bytes()));
    format!("{GUARD} by process {process}, {}", &place[..8])
}

/// Fails if another process than this one changes the server's settings.
fn require_alone(session: &mut Client, server: &ServerAddress) -> Result<(), PostgresError> {
    let others = session.query(OTHERS, &[&format!("{GUARD} by %"), &own_guard()]);
    let others = others.map_err(|error| server.failed("other studies are looked for", &error))?;
    match others.first() {
        None => Ok(()),
        Some(row) => Err(PostgresError::Unfit(format!(
            "{server}: another study changes settings of this server, in the session {} of process {} there; wait for its \
             end",
            text(row, 0),
            text(row, 1)
        ))),
    }
}

/// Returns what a study changes, with the values before. Nothing is changed.
pub(super) fn planned(
    server: &ServerAddress,
    version: i32,
    wanted: &[Wanted],
) -> Result<Vec<ChangedSetting>, PostgresError> {
    require_alone(&mut server.open("plumb visit", Box::new(|_| {}))?, server)?;
    let mut session = ServerSession::connect(server, "plumb visit")?;
    require_rights(&mut session, server, version, wanted)?;
    wanted.iter().map(|wanted| one(&mut session, server, wanted)).collect()
}

fn one(
    session: &mut ServerSession<'_>,
    server: &ServerAddress,
    wanted: &Wanted,
) -> Result<ChangedSetting, PostgresError> {
    let Wanted { name, values } = wanted;
    let refused = |why: String| Err(PostgresError::Unfit(format!("{server}: {name}: {why}")));
    let Some(found) = present(session, name)? else {
        return refused("the server has no such setting".to_string());
    };
    if found.kind == "string" {
        return refused(
            "it is a text, and plumb changes numbers, truth values and words of a list only".to_string(),
        );
    }
    if let Some(value) = values.iter().find(|value| !journal::is_plain(value)) {
        return refused(format!("{value:?} is no number, truth value or word"));
    }
    // The value in force is put back at the end.
    if let Some(why) = values.iter().chain([&found.value]).find_map(|value| journal::never(name, value)) {
        let now = format!("it is {} now; ", found.value);
        let now = if journal::never(name, &found.value).is_some() { now } else { String::new() };
        return refused(format!("{now}{why}"));
    }
    if !["default", "configuration file"].contains(&found.source.as_str()) {
        return refused(format!("it is set by the {}, which ALTER SYSTEM does not change", found.source));
    }
    let before = altered(session, name)?;
    if let Some(value) = before.as_ref().filter(|value| !journal::is_plain(value)) {
        return refused(format!("ALTER SYSTEM has set it to {value:?}, which no journal takes"));
    }
    Ok(ChangedSetting { name: name.clone(), before, in_force: found.value, ours: values.clone() })
}

fn require_rights(
    session: &mut ServerSession<'_>,
    server: &ServerAddress,
    version: i32,
    wanted: &[Wanted],
) -> Result<(), PostgresError> {
    const DURING: &str = "the rights are read";
    let rows = session.rows(DURING, RIGHTS, &[])?;
    let is = |column: usize| rows.first().is_some_and(|row| row.try_get(column).unwrap_or_default());
    let user: String = rows.first().map(|row| text(row, 1)).unwrap_or_default();
    if is(0) {
        return Ok(());
    }
    let refused = |why: String| Err(PostgresError::Unfit(format!("{server}: --allow-reload: {why}")));
    if version < GRANTS_SINCE {
        return refused(format!(
            "before PostgreSQL 15 only a superuser may ALTER SYSTEM, and {user} is none"
        ));
    }
    let mut grants = Vec::new();
    for Wanted { name, .. } in wanted {
        let may =
            session.rows(DURING, "select pg_catalog.has_parameter_privilege($1, 'alter system')", &[name])?;
        if !may.first().is_some_and(|row| row.try_get(0).unwrap_or_default()) {
            grants.push(format!("grant alter system on parameter {name} to {user}"));
        }
    }
    if !is(2) {
        grants.push(format!("grant select on pg_file_settings to {user}"));
        grants.push(format!("grant execute on function pg_show_all_file_settings() to {user}"));
    }
    if !is(3) {
        grants.push(format!("grant execute on function pg_reload_conf() to {user}"));
    }
    match grants.is_empty() {
        true => Ok(()),
        false => refused(format!(
            "{user} may not; a superuser gives the right in the database {}: `{}`",
            server.database(),
            grants.join("; ")
        )),
    }
}

/// Runs ALTER SYSTEM for a setting; the server puts name and value in quotes.
fn alter(session: &mut ServerSession<'_>, name: &str, value: Option<&str>) -> Result<(), PostgresError> {
    let during = match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {value}"),
        None => format!("ALTER SYSTEM RESET {name}"),
    };
    let quoted = match value {
        Some(_) => "select pg_catalog.format('alter system set %I = %L', $1::text, $2::text)",
        None => "select pg_catalog.format('alter system reset %I', $1::text) where $2::text is null",
    };
    let rows = session.rows(&during, quoted, &[&name, &value])?;
    session.run(&during, &rows.first().map(|row| text(row, 0)).unwrap_or_default())
}

/// Requests a reload, and waits for a session that was born after it.
fn reload(session: &mut ServerSession<'_>, server: &ServerAddress) -> Result<(), PostgresError> {
    const DURING: &str = "the server's files are reloaded";
    let requested: String = session.value(DURING, "select pg_catalog.clock_timestamp()::text")?;
    let begin = clock::now();
    session.run(DURING, "select pg_catalog.pg_reload_conf()")?;
    loop {
        let mut born = ServerSession::connect(server, "plumb visit")?;
        let loaded = born.rows(
            DURING,
            "select pg_catalog.pg_conf_load_time() >= $1::text::timestamptz",
            &[&requested],
        )?;
        if loaded.first().is_some_and(|row| row.try_get(0).unwrap_or_default()) {
            return Ok(());
        }
        if clock::now().saturating_sub(begin) > BOUND {
            let faults = "select sourcefile || ' line ' || sourceline || ': ' || error from pg_catalog.pg_file_settings \
                          where error is not null limit 1";
            let fault = born.rows(DURING, faults, &[])?.first().map(|row| text(row, 0));
            let why = fault.map_or(String::new(), |fault| format!("; {fault}"));
            return Err(PostgresError::Unfit(format!(
                "{server}: it did not load its files within {BOUND}{why}"
            )));
        }
        thread::sleep(INTERVAL);
    }
}

/// Settings of a server that this process has changed. Dropping it puts them back.
#[derive(Debug)]
pub(super) struct Reloads {
    server: ServerAddress,
    journal: Journal,
    /// `None` when all values are back.
    file: Option<JournalFile>,
    /// Values that ALTER SYSTEM has set by now, in the order of the journal.
    present: Vec<Option<String>>,
    guard: Guard,
    is_superuser: bool,
}

impl Reloads {
    /// Writes the journal. No setting is changed yet.
    pub fn begin(
        server: &ServerAddress,
        directory: &Path,
        settings: Vec<ChangedSetting>,
        guard: Guard,
        facts: &Facts,
    ) -> Result<Reloads, PostgresError> {
        let identity = identity(&mut ServerSession::connect(server, "plumb visit")?)?;
        let (host, process) = (machine::describe().name, std::process::id());
        let made = format!("{} by process {process} of {host}", Moment::of(clock::wall()).iso());
        let present = settings.iter().map(|set| set.before.clone()).collect();
        let journal = journal::new(&identity, &server.to_string(), made, settings);
        let file = JournalFile::make(directory, &journal)?;
        Ok(Reloads {
            server: server.clone(),
            journal,
            file: Some(file),
            present,
            guard,
            is_superuser: facts.is_superuser,
        })
    }

    /// Sets the values of an arm, and waits until they are in force. Returns the value in force of
    /// each setting of the journal.
    pub fn apply(
        &mut self,
        value_of: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, PostgresError> {
        self.guard.require(&self.server)?;
        unloaded::require_none(&self.server, self.is_superuser, &self.journal.names())?;
        let mut session = ServerSession::connect(&self.server, "plumb visit")?;
        let mut changes = false;
        for (setting, present) in self.journal.settings.iter().zip(&mut self.present) {
            let name = &setting.name;
            let found = altered(&mut session, name)?;
            if found != *present {
                return Err(PostgresError::Unfit(format!(
                    "{}: {name} was set to {} meanwhile, expected {}, the value of the study; it stays, and the study ends",
                    self.server,
                    shown(found.as_deref()),
                    shown(present.as_deref())
                )));
            }
            let value = value_of(name).or_else(|| setting.before.clone());
            if found != value {
                alter(&mut session, name, value.as_deref())?;
                *present = value;
                changes = true;
            }
        }
        if changes {
            reload(&mut session, &self.server)?;
        }
        self.in_force()
    }

    /// Returns the values in force of a new session; fails if one has another origin than the file
    /// of ALTER SYSTEM.
    fn in_force(&self) -> Result<Vec<(String, String)>, PostgresError> {
        let mut born = ServerSession::connect(&self.server, "plumb visit")?;
        let mut found = Vec::new();
        for (setting, set) in self.journal.settings.iter().zip(&self.present) {
            let name = &setting.name;
            let Some(Present { value, source, .. }) = present(&mut born, name)? else { continue };
            let applies = born.rows("the value in force is read", APPLIES, &[name])?;
            let applies = applies.first().is_some_and(|row| row.try_get(0).unwrap_or_default());
            if set.is_some() && !(applies && source == "configuration file") {
                return Err(PostgresError::Unfit(format!(
                    "{}: {name} is {value} by {source} after the reload, expected {} by ALTER SYSTEM",
                    self.server,
                    shown(set.as_deref())
                )));
            }
            found.push((name.clone(), value));
        }
        Ok(found)
    }

    /// Puts all values back and removes the journal. Returns a line for each that stays.
    pub fn put_back(&mut self) -> Result<Vec<String>, PostgresError> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let said = put_back(&self.server, &self.journal).map_err(|error| left(file.path(), &error))?;
        match self.file.take() {
            Some(file) => file.remove().map(|()| said),
            None => Ok(said),
        }
    }
}

impl Drop for Reloads {
    fn drop(&mut self) {
        // If the server has ended, the journal lets the next study or `plumb undo` do it.
        let _ = self.put_back();
    }
}

fn left(path: &Path, error: &PostgresError) -> PostgresError {
    PostgresError::Unfit(format!(
        "{error}; settings of the study stay on the server until `plumb undo {}` puts them back",
        path.display()
    ))
}

/// Puts the values of a journal back, and waits until they are in force. Returns a line for each
/// that stays as it is.
fn put_back(server: &ServerAddress, journal: &Journal) -> Result<Vec<String>, PostgresError> {
    let mut session = ServerSession::connect(server, "plumb undo")?;
    let mut said = Vec::new();
    for setting in &journal.settings {
        match step(&mut session, setting)? {
            Step::AsBefore => {}
            Step::PutBack => alter(&mut session, &setting.name, setting.before.as_deref())?,
            Step::Stays(why) => said.push(why),
        }
    }
    // Also if nothing differs: a study killed before its reload has left the old values unloaded.
    reload(&mut session, server)?;
    let mut born = ServerSession::connect(server, "plumb undo")?;
    for ChangedSetting { name, in_force, before, .. } in &journal.settings {
        let found = present(&mut born, name)?.map(|present| present.value);
        if found.as_ref() != Some(in_force) && !said.iter().any(|line| line.starts_with(&format!("{name} ")))
        {
            let applies = born.rows("the value in force is read", APPLIES, &[name])?;
            let by_journal =
                before.is_some() && applies.first().is_some_and(|row| row.try_get(0).unwrap_or_default());
            let why = match by_journal {
                true => "that is what the journal says of ALTER SYSTEM, and not what it says was in force",
                false => "another file of the server has changed meanwhile",
            };
            said.push(format!("{name} is {} now and was {in_force} before: {why}", shown(found.as_deref())));
        }
    }
    Ok(said)
}

/// Step for a setting of a journal.
enum Step {
    AsBefore,
    PutBack,
    /// Another value was set meanwhile, in a line.
    Stays(String),
}

fn step(session: &mut ServerSession<'_>, setting: &ChangedSetting) -> Result<Step, PostgresError> {
    let ChangedSetting { name, before, ours, .. } = setting;
    let found = altered(session, name)?;
    if found == *before {
        return Ok(Step::AsBefore);
    }
    if found.as_ref().is_some_and(|found| ours.contains(found)) {
        return Ok(Step::PutBack);
    }
    Ok(Step::Stays(format!(
        "{name} stays {}: it was set meanwhile by another, and is none of the study's values ({})",
        shown(found.as_deref()),
        ours.join(", ")
    )))
}

fn shown(value: Option<&str>) -> &str {
    value.unwrap_or("not set")
}

/// A journal that a killed study left. Nothing has connected to its server.
#[derive(Debug)]
pub struct LeftJournal {
    file: JournalFile,
    journal: Journal,
}

impl LeftJournal {
    /// Reads a journal and holds it.
    ///
    /// # Errors
    /// If a study holds it, it is no whole journal, or has what no study writes.
    pub fn take(path: &Path) -> Result<LeftJournal, PostgresError> {
        let (file, journal) = JournalFile::take(path)?;
        Ok(LeftJournal { file, journal })
    }

    /// Returns the address that it names.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.journal.address
    }

    /// True if it lies in the directory of this user's journals.
    #[must_use]
    pub fn lies_in(&self, directory: &Path) -> bool {
        let around = self.file.path().parent().unwrap_or(Path::new("."));
        let around = if around.as_os_str().is_empty() { Path::new(".") } else { around };
        let real = |path: &Path| path.canonicalize().ok();
        real(around).is_some_and(|around| real(directory) == Some(around))
    }

    /// Returns what it asks for, a sentence each.
    #[must_use]
    pub fn intentions(&self, server: &ServerAddress) -> Vec<String> {
        let mut lines = vec![format!("connect to {server}, for the journal of {}", self.journal.made)];
        lines.extend(self.journal.settings.iter().map(|set| {
            let ours = set.ours.join(" or ");
            match &set.before {
                Some(before) => format!("ALTER SYSTEM SET {} = {before}, if it is {ours}", set.name),
                None => format!("ALTER SYSTEM RESET {}, if it is {ours}", set.name),
            }
        }));
        lines.push("reload the files of the server".to_string());
        lines
    }

    /// Connects to its server; nothing is changed.
    ///
    /// # Errors
    /// If the server is another, or has a setting that no study changes.
    pub fn at(self, server: &ServerAddress) -> Result<Undo, PostgresError> {
        let LeftJournal { file, journal } = self;
        let mut session = ServerSession::connect(server, "plumb undo")?;
        let refused = |why: String| PostgresError::Unfit(format!("{}: {why}", file.path().display()));
        let found = identity(&mut session)?;
        if found != journal.server {
            return Err(refused(format!(
                "it is of {} at {}, and {server} is {found}; name its server: --target postgres://...",
                journal.server, journal.address
            )));
        }
        for ChangedSetting { name, before, .. } in &journal.settings {
            let known = present(&mut session, name)?;
            let is_fit = |present: &Present| present.context == "sighup" && present.kind != "string";
            if !known.as_ref().is_some_and(is_fit) {
                return Err(refused(format!("{name}: no study changes this setting by a reload")));
            }
            // Without ALTER SYSTEM another file decides.
            let below = session.rows("the server's files are read", BELOW, &[name])?;
            let below = below.first().map(|row| text(row, 0)).filter(|_| before.is_none());
            if let Some(why) = below.and_then(|value| journal::never(name, &value)) {
                return Err(refused(format!("{name}: the server's files have it off: {why}")));
            }
        }
        Ok(Undo { server: server.clone(), file, journal })
    }
}

/// A journal that a killed study left, with its server.
#[derive(Debug)]
pub struct Undo {
    server: ServerAddress,
    file: JournalFile,
    journal: Journal,
}

impl Undo {
    /// Returns the value that ALTER SYSTEM has when a setting is back; `None` if it stays as it is.
    pub(super) fn back(&self, name: &str) -> Option<Option<String>> {
        let setting = self.journal.settings.iter().find(|set| set.name == name)?;
        let mut session = ServerSession::connect(&self.server, "plumb undo").ok()?;
        matches!(step(&mut session, setting), Ok(Step::PutBack)).then(|| setting.before.clone())
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the settings of its journal.
    pub(super) fn names(&self) -> Vec<&str> {
        self.journal.names()
    }

    /// Returns what it would do, a sentence each.
    ///
    /// # Errors
    /// The server's.
    pub fn intentions(&self) -> Result<Vec<String>, PostgresError> {
        let mut session = ServerSession::connect(&self.server, "plumb undo")?;
        let line = |setting: &ChangedSetting| {
            let name = &setting.name;
            Ok(match step(&mut session, setting)? {
                Step::AsBefore => format!("leave {name} as it is: {}", shown(setting.before.as_deref())),
                Step::Stays(why) => why,
                Step::PutBack => match &setting.before {
                    Some(before) => format!("ALTER SYSTEM SET {name} = {before}"),
                    None => format!("ALTER SYSTEM RESET {name}"),
                },
            })
        };
        let mut lines: Vec<String> =
            self.journal.settings.iter().map(line).collect::<Result<_, PostgresError>>()?;
        lines.push(format!("reload the files of {}", self.server));
        Ok(lines)
    }

    /// Puts the values back and removes the journal; returns a line for each that stays.
    ///
    /// # Errors
    /// The server's; the journal then stays.
    pub fn carry_out(self) -> Result<Vec<String>, PostgresError> {
        let _guard = Guard::take(&self.server)?;
        let said = put_back(&self.server, &self.journal).map_err(|error| left(self.file.path(), &error))?;
        self.file.remove()?;
        Ok(said)
    }
}
