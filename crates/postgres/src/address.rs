//! The address of a running server that is not plumb's own, and a session of it.
//!
//! A URL may leave out what the environment or a default says, as libpq does: PGHOST, PGPORT,
//! PGUSER, PGDATABASE. A password is taken from the URL, PGPASSWORD or a password file (PGPASSFILE,
//! `~/.pgpass`), in this order. It is in no message and in no file: [`ServerAddress`] shows itself
//! without it.
//!
//! Limits: no TLS, so that `sslmode=require` is refused; one host.

use crate::PostgresError;
use crate::account;
use crate::session::{Says, Served};
use plumb_host::regular::read_regular;
use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const PORT: u16 = 5432;
/// Directory of the sockets of Debian's and Red Hat's servers.
const SOCKETS: &str = "/var/run/postgresql";
/// Longest time of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of a password file.
const PASSWORDS_MOST: u64 = 1 << 20;

/// Values of variables, those of the environment or of a test.
pub type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Returns a variable of the environment; none if it is empty.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A server's address with a password that is not shown.
#[derive(Clone)]
pub struct ServerAddress {
    config: Config,
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
    /// If the text is no address, asks for TLS or several hosts, or others may read the password
    /// file.
    pub fn parse(url: &str, variables: Variables<'_>) -> Result<ServerAddress, PostgresError> {
        let unfit = |why: String| Err(PostgresError::Unfit(why));
        if !SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            return unfit("--target: expected an address such as postgres://USER@HOST/DATABASE".to_string());
        }
        let config: Config = match url.parse() {
            Ok(config) => config,
            // The library's reason is an option's name and never its value.
            Err(error) => return unfit(format!("--target: {}", account_of(&error))),
        };
        let ssl = variables("PGSSLMODE");
        if config.get_ssl_mode() == SslMode::Require || ssl.is_some_and(|mode| is_strict(&mode)) {
            let why = "--target: sslmode=require is not possible, because plumb has no TLS; use a socket or a tunnel";
            return unfit(why.to_string());
        }
        if config.get_hosts().len() > 1 {
            return unfit("--target: expected one host".to_string());
        }
        complete(config, variables)
    }

    /// Returns the name of its database.
    #[must_use]
    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Returns the address of another database of the server.
    #[must_use]
    pub fn at(&self, database: &str) -> ServerAddress {
        let mut config = self.config.clone();
        config.dbname(database);
        ServerAddress { config, shown: self.shown.clone() }
    }

    /// Returns the error of a step, with the server's reason.
    #[must_use]
    pub fn failed(&self, during: &str, error: &postgres::Error) -> PostgresError {
        let (server, during) = (self.shown.clone(), during.to_string());
        let Some(theirs) = error.as_db_error() else {
            let said = account_of(error);
            let cure = if said.contains("password missing") { NO_PASSWORD } else { "" };
            return PostgresError::Visited { server, during, said, cure };
        };
        let detail = theirs.detail().map_or(String::new(), |detail| format!(" ({detail})"));
        let cure = match theirs.code().code() {
            "25006" => "; --write lets a query write, and it is rolled back",
            "28P01" | "28000" => NO_PASSWORD,
            "42601" if theirs.message().contains("multiple commands") => "; name a file with one statement",
            "42501" => "; connect as a user with the right to it",
            "53100" => "; make room on the server's disk",
            "57014" => "; the server's or your statement_timeout ended it",
            _ => "",
        };
        PostgresError::Visited {
            server,
            during,
            said: one_line(&format!("{}{detail}", theirs.message())),
            cure,
        }
    }
}

impl Served for ServerAddress {
    fn open(&self, name: &str, says: Says) -> Result<Client, PostgresError> {
        let mut config = self.config.clone();
        config.application_name(name).notice_callback(move |notice| says(notice.message().to_string()));
        config.connect(NoTls).map_err(|error| self.failed("a session connects", &error))
    }

    fn failed(&self, during: &str, error: &postgres::Error) -> PostgresError {
        ServerAddress::failed(self, during, error)
    }
}

fn is_strict(mode: &str) -> bool {
    matches!(mode, "require" | "verify-ca" | "verify-full")
}

/// Returns an error with its cause, in one line.
fn account_of(error: &postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let said = error.to_string();
    one_line(&if said.contains(&cause) { said } else { format!("{said}: {cause}") })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds what the address leaves out.
fn complete(mut config: Config, variables: Variables<'_>) -> Result<ServerAddress, PostgresError> {
    if config.get_hosts().is_empty() {
        let socket = Path::new(SOCKETS).is_dir().then(|| SOCKETS.to_string());
        let host = variables("PGHOST").or(socket).unwrap_or_else(|| "localhost".to_string());
        // The library takes a path for a directory of sockets.
        config.host(&host);
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = match config.get_ports().first() {
        Some(port) => *port,
        None => variables("PGPORT").and_then(|port| port.parse().ok()).unwrap_or(PORT),
    };
    if config.get_ports().is_empty() {
        config.port(port);
    }
    let user = match config.get_user().map(str::to_string).or_else(|| variables("PGUSER")) {
        Some(user) => user,
        None => account::own_name()?,
    };
    let database = config.get_dbname().map(str::to_string);
    let database = database.or_else(|| variables("PGDATABASE")).unwrap_or_else(|| user.clone());
    config.user(&user).dbname(&database);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_password().is_none() {
        let entry = Entry { host: &host, port, database: &database, user: &user };
        if let Some(password) = password(&entry, variables)? {
            config.password(password);
        }
    }
    let [user, database] = [user, database].map(|text| escaped(&text));
    let shown = match host.starts_with('/') {
        true => format!("postgres://{user}@/{database}?host={}&port={port}", escaped(&host)),
        false => format!("postgres://{user}@{host}:{port}/{database}"),
    };
    Ok(ServerAddress { config, shown })
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

fn password(entry: &Entry<'_>, variables: Variables<'_>) -> Result<Option<String>, PostgresError> {
    if let Some(password) = variables("PGPASSWORD") {
        return Ok(Some(password));
    }
    let home = || variables("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let Some(path) = variables("PGPASSFILE").map(PathBuf::from).or_else(home) else { return Ok(None) };
    let Ok(found) = fs::metadata(&path) else { return Ok(None) };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(PostgresError::Unfit(format!(
            "{path} has the mode {mode:04o} and may be read by others, expected 0600; `chmod 600 {path}`"
        )));
    }
    let wrong = |source| PostgresError::File { what: "cannot read", path: path.clone(), source };
    let bytes = read_regular(&path, PASSWORDS_MOST).map_err(wrong)?;
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
        assert_eq!(shown("postgres:///d?host=/run/pg&user=u", &[]), "postgres://u@/d?host=/run/pg&port=5432");
        // What is shown is an address of the same server.
        for url in ["postgres://me@h:6000/d", "postgres:///a%20b?host=/run/p%26g&user=u%40v"] {
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
            "postgres://me:geheim@h/d?sslmode=require",
            "postgres://me:geheim@h,i/d",
            "postgres://me:geheim@h:port/d",
            "postgres://me:geheim@h/d?unknown=geheim",
        ] {
            let refused = parsed(url, &[]).expect_err("refused");
            assert!(refused.starts_with("--target: ") && !refused.contains("geheim"), "{url}: {refused}");
        }
    }
}
