//! The words of an address, with libpq's meaning: from the URL, otherwise from the environment.
//!
//! Each word of libpq is a row of [`WORDS`]. One that plumb does not follow is refused by its name,
//! unless its value asks for what plumb does anyway.
//!
//! No error has a value: a password that was mistyped may be part of any.

use std::collections::BTreeMap;

/// Values of variables, those of the environment or of a test.
pub type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

pub const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Meaning of a word for plumb.
enum Use {
    Followed,
    /// Refused with other values, because plumb does this.
    Only(&'static [&'static str]),
    /// Without a meaning for plumb's sessions.
    Ignored,
}

use Use::{Followed, Ignored, Only};

/// Words of a URL with the variable of each; empty for none.
const WORDS: [(&str, &str, Use); 47] = [
    ("user", "PGUSER", Followed),
    ("password", "PGPASSWORD", Followed),
    ("passfile", "PGPASSFILE", Followed),
    ("dbname", "PGDATABASE", Followed),
    ("host", "PGHOST", Followed),
    ("hostaddr", "PGHOSTADDR", Followed),
    ("port", "PGPORT", Followed),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Followed),
    ("options", "PGOPTIONS", Followed),
    ("sslmode", "PGSSLMODE", Followed),
    ("sslrootcert", "PGSSLROOTCERT", Followed),
    ("sslcert", "PGSSLCERT", Followed),
    ("sslkey", "PGSSLKEY", Followed),
    ("sslnegotiation", "PGSSLNEGOTIATION", Followed),
    ("sslsni", "PGSSLSNI", Followed),
    ("require_auth", "PGREQUIREAUTH", Followed),
    ("channel_binding", "PGCHANNELBINDING", Followed),
    // plumb's sessions have names of their own.
    ("application_name", "PGAPPNAME", Ignored),
    ("fallback_application_name", "", Ignored),
    ("client_encoding", "PGCLIENTENCODING", Only(&["UTF8", "utf8", "UTF-8", "utf-8", "auto"])),
    ("service", "PGSERVICE", Only(&[])),
    ("servicefile", "PGSERVICEFILE", Ignored),
    ("passwordcommand", "", Only(&[])),
    ("requirepeer", "PGREQUIREPEER", Only(&[])),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Only(&["any"])),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Only(&["disable"])),
    ("gssencmode", "PGGSSENCMODE", Only(&["disable", "prefer"])),
    ("krbsrvname", "PGKRBSRVNAME", Ignored),
    ("gsslib", "PGGSSLIB", Ignored),
    ("gssdelegation", "PGGSSDELEGATION", Only(&["0"])),
    ("replication", "", Only(&["0", "off", "false", "no"])),
    ("sslcompression", "PGSSLCOMPRESSION", Only(&["0"])),
    ("sslcertmode", "PGSSLCERTMODE", Only(&["allow"])),
    ("sslpassword", "", Only(&[])),
    ("sslcrl", "PGSSLCRL", Only(&[])),
    ("sslcrldir", "PGSSLCRLDIR", Only(&[])),
    ("sslkeylogfile", "", Only(&[])),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Only(&["TLSv1", "TLSv1.1", "TLSv1.2"])),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Only(&["TLSv1.3"])),
    ("min_protocol_version", "PGMINPROTOCOLVERSION", Only(&["3.0"])),
    ("max_protocol_version", "PGMAXPROTOCOLVERSION", Only(&["3.0", "3.2", "latest"])),
    // A server that is silent is probed by a second session.
    ("keepalives", "", Only(&["0"])),
    ("keepalives_idle", "", Only(&[])),
    ("keepalives_interval", "", Only(&[])),
    ("keepalives_count", "", Only(&[])),
    ("tcp_user_timeout", "", Only(&["0"])),
    ("ssl", "", Only(&["true"])),
];
/// Variables that libpq sends as settings of a session.
const SETTINGS: [(&str, &str); 3] = [("PGTZ", "TimeZone"), ("PGDATESTYLE", "DateStyle"), ("PGGEQO", "geqo")];

/// Words of an address with a value.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Values with the name by which the user knows them.
    values: BTreeMap<&'static str, (String, &'static str)>,
}

impl Words {
    /// Parses a URL, and completes it from the environment.
    ///
    /// # Errors
    /// A reason without any value.
    pub fn of(url: &str, variables: Variables<'_>) -> Result<Words, String> {
        let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let rest = rest.ok_or("expected an address such as postgres://USER@HOST/DATABASE")?;
        let mut words = Words::default();
        words.read(rest)?;
        for (name, variable, _) in &WORDS {
            let value =
                variables(variable).filter(|_| !variable.is_empty() && !words.values.contains_key(name));
            if let Some(value) = value {
                words.values.insert(name, (value, variable));
            }
        }
        for (name, _, meaning) in &WORDS {
            let Some((value, shown)) = words.values.get(name) else { continue };
            if let Only(values) = meaning
                && !values.contains(&value.as_str())
            {
                return Err(match values {
                    [] => format!("{shown} is not supported; leave it out"),
                    _ => format!("{shown}: this value is not supported, expected {}", values.join(" or ")),
                });
            }
        }
        // libpq's own word for drivers of Java.
        if words.values.remove("ssl").is_some() {
            words.values.entry("sslmode").or_insert(("require".to_string(), "ssl"));
        }
        let settings = SETTINGS.iter().filter_map(|(variable, setting)| {
            Some(format!("-c {setting}={}", variables(variable)?.replace('\\', "\\\\").replace(' ', "\\ ")))
        });
        let options: Vec<String> = settings.chain(words.get("options").map(str::to_string)).collect();
        if !options.is_empty() {
            words.values.insert("options", (options.join(" "), "options"));
        }
        Ok(words)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|(value, _)| value.as_str())
    }

    /// Returns the value of a word that takes one of these.
    ///
    /// # Errors
    /// The values that there are.
    pub fn one_of<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some((value, shown)) = self.values.get(name) else { return Ok(None) };
        let found = known.iter().find(|(word, _)| word == value).map(|(_, meaning)| Some(*meaning));
        found.ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            format!("{shown}: expected one of {}", words.join(", "))
        })
    }

    /// Returns a number within a range.
    ///
    /// # Errors
    /// The range.
    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        let Some((value, shown)) = self.values.get(name) else { return Ok(None) };
        let number = value.trim().parse().ok().filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| format!("{shown}: expected a number of {least} to {most}"))
    }

    /// Returns those of some words that the URL has.
    pub fn of_url<'w>(&'w self, names: &'w [&'static str]) -> impl Iterator<Item = (&'static str, &'w str)> {
        names.iter().filter_map(|name| {
            let (value, shown) = self.values.get(name)?;
            (shown == name).then_some((*name, value.as_str()))
        })
    }

    /// Returns the name under which a user gave a word.
    pub fn shown(&self, name: &'static str) -> &'static str {
        self.values.get(name).map_or(name, |(_, shown)| shown)
    }

    /// Reads what follows the scheme.
    fn read(&mut self, rest: &str) -> Result<(), String> {
        let (before, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = before.split_once('/').unwrap_or((before, ""));
        let (user, host) = place.rsplit_once('@').unwrap_or(("", place));
        if user.contains('@') {
            return Err("the user or the password has an @; write it as %40".to_string());
        }
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let (host, port) = match host.strip_prefix('[') {
            Some(inner) => {
                let (host, rest) = inner.split_once(']').ok_or("an address in [ ] has no end")?;
                let port = rest.strip_prefix(':').or(rest.is_empty().then_some(""));
                (host, port.ok_or("expected a port behind the address in [ ]")?)
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        let parts =
            [("user", user), ("password", password), ("host", host), ("port", port), ("dbname", database)];
        for (name, value) in parts {
            self.set(name, value)?;
        }
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or("an option has no =, expected NAME=VALUE")?;
            let name = decoded(name)?;
            let known = WORDS.iter().find(|(known, ..)| *known == name);
            let Some((known, ..)) = known else {
                // A word may be a part of a password, too.
                let is_word =
                    name.len() < 30 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                let shown = if is_word { format!(" {name}") } else { String::new() };
                return Err(format!("there is no option{shown} of an address"));
            };
            self.set(known, value)?;
        }
        match self.get("host").is_some_and(|host| host.contains(',')) {
            true => Err("expected one host".to_string()),
            false => Ok(()),
        }
    }

    /// Sets a word; an empty value is none.
    fn set(&mut self, name: &'static str, value: &str) -> Result<(), String> {
        if !value.is_empty() {
            self.values.insert(name, (decoded(value)?, name));
        }
        Ok(())
    }
}

/// Replaces numbers of letters, such as %20.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|byte| *byte != 0);
        bytes.push(byte.ok_or("a % is not followed by two digits of a letter; write it as %25")?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_followed_or_refused_by_its_name_and_never_shown() {
        let none = |_: &str| None;
        for (name, variable, meaning) in &WORDS {
            let read = Words::of(&format!("postgres://h/d?{name}=geheim"), &none);
            let by_variable = Words::of("postgres://h/d", &|asked| {
                (asked == *variable && !variable.is_empty()).then(|| "geheim".to_string())
            });
            for (read, shown) in [(read, name), (by_variable, variable)] {
                match (meaning, read) {
                    (Only(_), Err(why)) => {
                        assert!(why.contains(shown) && !why.contains("geheim"), "{name}: {why}");
                    }
                    (Only(_), Ok(_)) => assert!(variable.is_empty(), "{name} is refused"),
                    (_, read) => drop(read.expect(name)),
                }
            }
        }
        let why = Words::of("postgres://h/d?geheim=1", &none).expect_err("unknown");
        assert!(why.contains("no option geheim"), "{why}");
        let why = Words::of("postgres://h/d?Ge%20heim=1", &none).expect_err("unknown");
        assert_eq!(why, "there is no option of an address");
    }

    #[test]
    fn a_url_is_divided_as_libpq_does() {
        let of = |url: &str| Words::of(url, &|_| None);
        let words = of("postgresql://a%40b:p%3Aq@[::1]:6000/d%2Fe?options=-c%20x%3D1&connect_timeout=3")
            .expect("words");
        let expected = [
            ("user", "a@b"),
            ("password", "p:q"),
            ("host", "::1"),
            ("port", "6000"),
            ("dbname", "d/e"),
            ("options", "-c x=1"),
            ("connect_timeout", "3"),
        ];
        for (name, value) in expected {
            assert_eq!(words.get(name), Some(value), "{name}");
        }
        assert_eq!(of("postgres://h?ssl=true").expect("words").get("sslmode"), Some("require"));
        for url in [
            "postgres://a@b@h/d",
            "postgres://[::1/d",
            "postgres://[::1]x/d",
            "postgres://h/%zz",
            "postgres://h/%00",
        ] {
            assert!(of(url).is_err(), "{url}");
        }
    }

    #[test]
    fn variables_complete_a_url_and_do_not_replace_its_words() {
        let known = [("PGUSER", "she"), ("PGPORT", "5433"), ("PGOPTIONS", "-c a=1"), ("PGTZ", "A B")];
        let variables = |name: &str| {
            let found = known.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        let words = Words::of("postgres://me@h/d", &variables).expect("words");
        assert_eq!((words.get("user"), words.get("port")), (Some("me"), Some("5433")));
        assert_eq!(words.get("options"), Some("-c TimeZone=A\\ B -c a=1"));
    }
}
