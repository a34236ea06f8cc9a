//! The address of a running server that is not plumb's own, and a session of it.
//!
//! ```text
//! URL, environment ──> words ──> ServerAddress ──> Wire (TLS, heads) ──> Client
//! ```
//!
//! A password is taken from the URL, PGPASSWORD or a password file, in this order. It is in no
//! message and in no file: [`ServerAddress`] shows itself without it.
//!
//! A database's owner may have set a search_path for it, with functions and operators of the names
//! that plumb uses; they would run with the rights of plumb's user. So:
//!
//! - Each session of plumb's own asks for `search_path = pg_catalog` in its start. This has
//!   precedence over all that the server has for user and database, and RESET returns to it.
//! - It then reads what it got, because a pooler may drop start-up options.
//! - In a database of plumb's own its tables are in a schema in which no other user may create.
//! - Only the session of a user's query has the server's path, and no look-up of plumb's.
//!
//! Limits: one host.

use crate::PostgresError;
use crate::account;
use crate::client::{BOUNDS, Bounds, Client, Says};
use crate::error::{ClientError, one_line, words_of};
use crate::session::Served;
use crate::tls::{self, TlsFile, TlsMode, TlsTerms};
use crate::wire::{self, AuthTerms, METHODS, Method};
use crate::words::Words;
use plumb_host::regular::read_regular;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::ChannelBinding;

pub use crate::words::{SCHEMES, Variables};

const PORT: u16 = 5432;
/// Directory of the sockets of Debian's and Red Hat's servers.
const SOCKETS: &str = "/var/run/postgresql";
/// Longest start of a session without `connect_timeout`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a password file.
const PASSWORDS_MOST: u64 = 1 << 20;
/// Schema of plumb's tables in a database of its own.
pub(crate) const SCHEMA: &str = "plumb";
/// Words of a URL that are shown with it, because a journal and advice must not lose them.
const KEPT: [&str; 8] = [
    "hostaddr",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "require_auth",
    "channel_binding",
];

/// Returns a variable of the environment; none if it is empty.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A server's address with a password that is not shown.
#[derive(Clone)]
pub struct ServerAddress {
    config: Config,
    /// Directory of the socket, a name, or an IP address.
    host: String,
    port: u16,
    /// Longest start of a session.
    timeout: Duration,
    auth: AuthTerms,
    tls: TlsTerms,
    bounds: Bounds,
    /// True for a database of plumb's own.
    is_own: bool,
    shown: String,
}

impl std::fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Cure of a password that is wrong or missing.
const NO_PASSWORD: &str = "; PGPASSWORD, ~/.pgpass or the address gives the password";

impl ServerAddress {
    /// # Errors
    /// If the text is no address, has several hosts or an option that is not followed, or others
    /// may read the password file.
    pub fn parse(url: &str, variables: Variables<'_>) -> Result<ServerAddress, PostgresError> {
        let unfit = |why: String| PostgresError::Unfit(format!("--target: {why}"));
        let words = Words::of(url, variables).map_err(unfit)?;
        complete(&words, variables)?.map_err(unfit)
    }

    /// Returns the name of its database.
    #[must_use]
    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Returns the address with other bounds of the waits for its server.
    #[must_use]
    pub fn bounded(self, bounds: Bounds) -> ServerAddress {
        ServerAddress { bounds, ..self }
    }

    /// Returns the address of a database of plumb's own on the server.
    #[must_use]
    pub fn at(&self, database: &str) -> ServerAddress {
        let mut own = ServerAddress { is_own: true, ..self.clone() };
        own.config.dbname(database);
        own
    }

    /// Opens a session for a user's query, with the server's search_path.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub(crate) fn open_for_query(&self, name: &str) -> Result<Client, PostgresError> {
        let mut config = self.config.clone();
        config.application_name(name);
        let started = self.start(&config, self.timeout, Box::new(|_| {}));
        started.map_err(|error| self.failed(CONNECTS, &error))
    }

    /// Starts a session for nothing but an answer to a statement.
    fn probe(&self, within: Duration) -> Result<(), ClientError> {
        let probed = self.clone().bounded(Bounds { look_up: within, silence: within });
        let config = self.of_plumb("plumb probe");
        let mut client = probed.start(&config, self.timeout.min(within), Box::new(|_| {}))?;
        client.query_alone("show search_path").map(|_| ())
    }

    /// Returns the terms of a session of plumb's own.
    fn of_plumb(&self, name: &str) -> Config {
        let mut config = self.config.clone();
        let given = config.get_options().map_or(String::new(), |options| format!("{options} "));
        config.options(format!("{given}-c search_path=pg_catalog")).application_name(name);
        config
    }

    fn start(&self, config: &Config, within: Duration, says: Says) -> Result<Client, ClientError> {
        let socket = PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port));
        let is_socket = self.host.starts_with('/');
        let place = match is_socket {
            true => wire::Place::Unix(&socket),
            false => wire::Place::Tcp { host: &self.host, port: self.port },
        };
        let terms = wire::Terms { auth: &self.auth, tls: (!is_socket).then_some(&self.tls) };
        let server = self.clone();
        let probe = move |within| server.probe(within);
        Client::start(wire::start(place, terms, config), within, says, Some((self.bounds, Box::new(probe))))
    }

    /// Returns the error of a step, with the server's reason.
    #[must_use]
    pub fn failed(&self, during: &str, error: &ClientError) -> PostgresError {
        let (server, during) = (self.shown.clone(), during.to_string());
        let Some(theirs) = error.as_db_error() else {
            let said = one_line(&error.to_string());
            let cure = if said.contains("password missing") { NO_PASSWORD } else { "" };
            return PostgresError::Visited { server, during, said, cure };
        };
        let cure = match theirs.code().code() {
            "08P01" if theirs.message().contains("startup parameter") => {
                "; a pooler that refuses start-up options cannot serve plumb's own sessions; name the server's own address"
            }
            "25006" => "; --write lets a query write, and it is rolled back",
            "28P01" | "28000" => NO_PASSWORD,
            "42601" if theirs.message().contains("multiple commands") => "; name a file with one statement",
            "42501" => "; connect as a user with the right to it",
            "53100" => "; make room on the server's disk",
            "57014" => "; the server's or your statement_timeout ended it",
            _ => "",
        };
        PostgresError::Visited { server, during, said: words_of(theirs), cure }
    }

    /// Gives a session the path of names that it asked for, or fails.
    fn require_path(&self, client: &mut Client) -> Result<(), PostgresError> {
        const DURING: &str = "the search_path is read";
        let failed = |error: ClientError| self.failed(DURING, &error);
        if self.is_own {
            return client.batch_execute(&format!("set search_path = {SCHEMA}")).map_err(failed);
        }
        let rows = client.query_alone("show search_path").map_err(failed)?;
        let found: Option<String> = rows.first().and_then(|row| row.try_get(0).ok());
        match found.as_deref() {
            Some("pg_catalog") => Ok(()),
            _ => Err(PostgresError::Unfit(format!(
                "{self}: its sessions do not have the search_path that they ask for, so that functions of others would run; \
                 a pooler drops it: name the server's own address"
            ))),
        }
    }
}

const CONNECTS: &str = "a session connects";

impl Served for ServerAddress {
    fn open(&self, name: &str, says: Says) -> Result<Client, PostgresError> {
        let started = self.start(&self.of_plumb(name), self.timeout, says);
        let mut client = started.map_err(|error| self.failed(CONNECTS, &error))?;
        self.require_path(&mut client)?;
        Ok(client)
    }

    fn failed(&self, during: &str, error: &ClientError) -> PostgresError {
        ServerAddress::failed(self, during, error)
    }
}

/// Adds what the words leave out. The inner error is of a word.
fn complete(words: &Words, variables: Variables<'_>) -> Result<Result<ServerAddress, String>, PostgresError> {
    let given = |name: &str| words.get(name).map(str::to_string);
    let socket = || Path::new(SOCKETS).is_dir().then(|| SOCKETS.to_string());
    let address = given("hostaddr");
    let name = given("host").or(address.clone()).or_else(socket).unwrap_or_else(|| "localhost".to_string());
    let user = given("user").map_or_else(account::own_name, Ok)?;
    let database = given("dbname").unwrap_or_else(|| user.clone());
    let home = variables("HOME").map(PathBuf::from).unwrap_or_default();
    let terms = match Terms::of(words, &name, &home) {
        Ok(terms) => terms,
        Err(why) => return Ok(Err(why)),
    };
    let mut config = Config::new();
    config.user(&user).dbname(&database).channel_binding(terms.binding);
    if let Some(options) = given("options") {
        config.options(options);
    }
    let entry = Entry { host: &name, port: terms.port, database: &database, user: &user };
    let file = given("passfile").map_or_else(|| home.join(".pgpass"), PathBuf::from);
    if let Some(password) =
        given("password").map_or_else(|| password(&entry, &file), |given| Ok(Some(given)))?
    {
        config.password(password);
    }
    let port = terms.port;
    let [user, database] = [user, database].map(|text| escaped(&text));
    let kept: Vec<String> =
        words.of_url(&KEPT).map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    let (place, mut kept) = match &name {
        host if host.starts_with('/') => {
            (String::new(), [vec![format!("host={}", escaped(host)), format!("port={port}")], kept].concat())
        }
        host if host.contains(':') => (format!("[{host}]:{port}"), kept),
        host => (format!("{}:{port}", escaped(host)), kept),
    };
    if let Some(first) = kept.first_mut() {
        first.insert(0, '?');
    }
    let shown = format!("postgres://{user}@{place}/{database}{}", kept.join("&"));
    Ok(Ok(ServerAddress {
        config,
        host: address.filter(|_| !name.starts_with('/')).unwrap_or(name),
        port,
        timeout: terms.timeout,
        auth: terms.auth,
        tls: terms.tls,
        bounds: BOUNDS,
        is_own: false,
        shown,
    }))
}

/// Terms of a connection, by the words of an address.
struct Terms {
    port: u16,
    timeout: Duration,
    binding: ChannelBinding,
    auth: AuthTerms,
    tls: TlsTerms,
}

impl Terms {
    fn of(words: &Words, host: &str, home: &Path) -> Result<Terms, String> {
        const BINDINGS: [(&str, ChannelBinding); 3] = [
            ("disable", ChannelBinding::Disable),
            ("prefer", ChannelBinding::Prefer),
            ("require", ChannelBinding::Require),
        ];
        let port = words.number("port", 1, u64::from(u16::MAX))?.map_or(PORT, |port| port as u16);
        let timeout = words.number("connect_timeout", 1, 3600)?.map_or(CONNECT_TIMEOUT, Duration::from_secs);
        let auth = match words.get("require_auth") {
            Some(list) => auth_of(list).ok_or_else(|| {
                let known: Vec<&str> = METHODS.iter().map(|(word, _)| *word).collect();
                let (shown, known) = (words.shown("require_auth"), known.join(", "));
                format!("{shown}: expected some of {known}, or some with ! before each")
            })?,
            None => AuthTerms::default(),
        };
        let is_direct = words.one_of("sslnegotiation", &[("postgres", false), ("direct", true)])?;
        let sends_name = words.one_of("sslsni", &[("0", false), ("1", true)])?.unwrap_or(true);
        let usual = |name: &str| TlsFile::Usual(home.join(".postgresql").join(name));
        let file = |word: &str, name: &str| {
            words.get(word).map_or_else(|| usual(name), |path| TlsFile::Named(PathBuf::from(path)))
        };
        let is_system = words.get("sslrootcert") == Some(tls::SYSTEM);
        let mode = words.one_of("sslmode", &tls::MODES)?;
        let mode = mode.unwrap_or(if is_system { TlsMode::VerifyFull } else { TlsMode::Prefer });
        if is_system && mode != TlsMode::VerifyFull {
            return Err(format!("sslrootcert={}: expected sslmode=verify-full", tls::SYSTEM));
        }
        if is_direct == Some(true) && mode < TlsMode::Require {
            return Err(
                "sslnegotiation=direct: expected sslmode=require, verify-ca or verify-full".to_string()
            );
        }
        let tls = TlsTerms {
            mode,
            host: host.to_string(),
            roots: file("sslrootcert", "root.crt"),
            certificate: file("sslcert", "postgresql.crt"),
            key: file("sslkey", "postgresql.key"),
            is_direct: is_direct.unwrap_or(false),
            sends_name,
        };
        let binding = words.one_of("channel_binding", &BINDINGS)?.unwrap_or(ChannelBinding::Prefer);
        Ok(Terms { port, timeout, binding, auth, tls })
    }
}

/// Parses `require_auth`: names, or excluded names with ! before each.
fn auth_of(list: &str) -> Option<AuthTerms> {
    let method = |word: &str| METHODS.iter().find(|(known, _)| *known == word).map(|(_, method)| *method);
    let words: Vec<&str> = list.split(',').map(str::trim).collect();
    let excluded: Vec<Option<Method>> =
        words.iter().filter_map(|word| word.strip_prefix('!').map(method)).collect();
    if excluded.is_empty() {
        let allowed: Option<Vec<Method>> = words.into_iter().map(method).collect();
        return Some(AuthTerms { allowed: Some(allowed?), is_named: true });
    }
    let excluded: Option<Vec<Method>> = excluded.into_iter().collect();
    let excluded = excluded.filter(|excluded| excluded.len() == words.len())?;
    let others = METHODS.iter().map(|(_, method)| *method).filter(|method| !excluded.contains(method));
    Some(AuthTerms { allowed: Some(others.collect()), is_named: false })
}

/// Returns a part of an address, in which other letters have their numbers.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

/// Server, database and user of a password.
struct Entry<'e> {
    host: &'e str,
    port: u16,
    database: &'e str,
    user: &'e str,
}

fn password(entry: &Entry<'_>, path: &Path) -> Result<Option<String>, PostgresError> {
    let Ok(found) = fs::metadata(path) else { return Ok(None) };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(PostgresError::Unfit(format!(
            "{path} has the mode {mode:04o} and may be read by others, expected 0600; `chmod 600 {path}`"
        )));
    }
    let wrong = |source| PostgresError::File { what: "cannot read", path: path.to_path_buf(), source };
    let bytes = read_regular(path, PASSWORDS_MOST).map_err(wrong)?;
    Ok(listed(&String::from_utf8_lossy(&bytes), entry))
}

/// Returns the password of the first line that fits: `host:port:database:user:password`.
fn listed(text: &str, entry: &Entry<'_>) -> Option<String> {
    let port = entry.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, own_port, database, user, password] = &fields[..] else { return None };
        let fits = |field: &String, value: &str| field == "*" || field == value;
        let is_socket = entry.host.starts_with('/') && host == "localhost";
        let fits = (is_socket || fits(host, entry.host))
            && fits(own_port, &port)
            && fits(database, entry.database)
            && fits(user, entry.user);
        fits.then(|| password.clone())
    })
}

/// Divides a line at colons; a backslash takes the meaning from the next letter.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields[last].extend(letters.next()),
            letter => fields[last].push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str, known: &[(&str, &str)]) -> Result<ServerAddress, String> {
        let variables = |name: &str| {
            let found = known.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        ServerAddress::parse(url, &variables).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_is_completed_from_the_environment() {
        let shown = |url: &str, known: &[(&str, &str)]| parsed(url, known).expect("an address").to_string();
        assert_eq!(shown("postgres://me@db.example/sales", &[]), "postgres://me@db.example:5432/sales");
        let known = [("PGHOST", "other"), ("PGPORT", "5433"), ("PGUSER", "she"), ("PGDATABASE", "d")];
        assert_eq!(shown("postgresql://", &known), "postgres://she@other:5433/d");
        assert_eq!(shown("postgres://me@h:6000", &known), "postgres://me@h:6000/d");
        assert_eq!(shown("postgres://me@h", &known), "postgres://me@h:5433/d");
        assert_eq!(shown("postgres://me@[::1]/d", &[]), "postgres://me@[::1]:5432/d");
        assert_eq!(shown("postgres:///d?host=/run/pg&user=u", &[]), "postgres://u@/d?host=/run/pg&port=5432");
        // What is shown is an address of the same server.
        for url in [
            "postgres://me@h:6000/d",
            "postgres://me@[::1]:6000/d",
            "postgres://me@h/d?sslmode=verify-full&sslrootcert=/a%20b",
            "postgres:///a%20b?host=/run/p%26g&user=u%40v",
        ] {
            assert_eq!(shown(&shown(url, &[]), &[]), shown(url, &[]));
        }
    }

    #[test]
    fn a_password_is_found_and_never_shown() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("passwords");
        fs::write(&path, "# mine\nh:*:d:me:of\\:file\n*:*:*:*:any\n").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        let file = ("PGPASSFILE", path.to_str().expect("text"));
        type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c str);
        let cases: [Case<'_>; 4] = [
            ("postgres://me:of-url@h/d", &[("PGPASSWORD", "of-variable"), file], "of-url"),
            ("postgres://me@h/d", &[("PGPASSWORD", "of-variable"), file], "of-variable"),
            ("postgres://me@h/d", &[file], "of:file"),
            ("postgres://me@other/d", &[file], "any"),
        ];
        for (url, known, expected) in cases {
            let address = parsed(url, known).expect("an address");
            assert_eq!(address.config.get_password(), Some(expected.as_bytes()), "{url}");
            assert!(!address.to_string().contains(expected), "{address}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        let refused = parsed("postgres://me@h/d", &[file]).expect_err("refused");
        assert!(refused.contains("0640") && refused.contains("chmod 600"), "{refused}");
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for url in [
            "mysql://me:geheim@h/d",
            "postgres://me:geheim@h/d?sslmode=geheim",
            "postgres://me:geheim@h/d?require_auth=geheim",
            "postgres://me:geheim@h/d?require_auth=md5,!password",
            "postgres://me:geheim@h/d?connect_timeout=0",
            "postgres://me:geheim@h/d?sslnegotiation=direct",
            "postgres://me:geheim@h/d?sslmode=require&sslrootcert=system",
            "postgres://me:geheim@h/d?service=geheim",
            "Postgres://me:geheim@h/d",
            "postgres:/me:geheim@h/d",
            "postgres://me:ge@heim@h/d",
            "postgres://me:geheim@h,i/d",
            "postgres://me:geheim@h:port/d",
            "postgres://me:geheim@h/d?unknown=geheim",
        ] {
            let refused = parsed(url, &[]).expect_err("refused");
            assert!(refused.starts_with("--target: ") && !refused.contains("geheim"), "{url}: {refused}");
        }
    }
}
