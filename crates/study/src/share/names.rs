//! Finds the names that a shared bundle must not reveal, and gives each one replacement.
//!
//! The first pass finds names in every text: hosts, users, directories, addresses, SQL. The second
//! replaces each of them as a whole word, in all files. Words of the program (settings, workloads,
//! events) and of every Unix system (`/var`, `/dev`) stay, because they identify no one and a
//! record is useless without them. Longer names are replaced first, so that no part of a name
//! remains.

use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a name, which is the prefix of its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secret {
    /// The name of a machine.
    Host,
    /// The name of a user account.
    User,
    /// A directory or a file.
    Name,
    /// A network address or a URL.
    Address,
    Sql,
    /// A word given by the user.
    Word,
}

impl Secret {
    const fn prefix(self) -> &'static str {
        match self {
            Secret::Host => "host",
            Secret::User => "user",
            Secret::Name => "name",
            Secret::Address => "address",
            Secret::Sql => "sql",
            Secret::Word => "word",
        }
    }
}

/// The names that were found, each with its replacement.
#[derive(Debug)]
pub struct Names {
    names: BTreeMap<String, String>,
    counts: BTreeMap<Secret, usize>,
    kept: BTreeSet<String>,
    patterns: Vec<(Secret, Regex)>,
    path: Regex,
    login: Regex,
}

/// Parts of paths on every system.
const SYSTEM: &str = "\
    bin boot dev disk etc fd fdinfo group home io lib lib64 lost+found media mnt opt proc root run \
    sbin self shm srv stat status sys tmp usr users var www cache local log mapper block class \
    cgroup null zero plumb plumb.db plumb-reports record.json report.txt report.html study.toml";
/// First words of SQL statements.
const VERBS: &str = "(?i:select|insert\\s+into|update|delete\\s+from|merge\\s+into|\
    create\\s+(?:table|index|view|user)|alter\\s+(?:table|session|system|user)|\
    drop\\s+(?:table|index|user)|explain|call)\\s";
const DOMAINS: &str =
    "com|net|org|local|localdomain|internal|intranet|lan|corp|edu|gov|cloud|de|uk|fr|ch|nl|jp|cn|br|ru|au";

impl Names {
    /// Returns an empty set of names that keeps the words of the program.
    #[must_use]
    pub fn new<'w>(kept: impl IntoIterator<Item = &'w str>) -> Names {
        let pattern = |text: &str| Regex::new(text).expect("a constant pattern compiles");
        let quoted = format!("\"\\s*({VERBS}[^\"]*)\"|'\\s*({VERBS}[^']*)'");
        let line = format!("(?:^|[\\n>;])[ \\t]*(?:SQL> *)?({VERBS}[^;<]*)");
        let host = format!("\\b([A-Za-z0-9][A-Za-z0-9-]*(?:\\.[A-Za-z0-9-]+)*\\.(?:{DOMAINS}))\\b");
        let mut names = Names {
            names: BTreeMap::new(),
            counts: BTreeMap::new(),
            kept: BTreeSet::new(),
            patterns: vec![
                (Secret::Sql, pattern(&quoted)),
                (Secret::Sql, pattern(&line)),
                (Secret::Address, pattern("\\b([a-z][a-z0-9+.-]*://[^\\s\"'<>]+)")),
                (Secret::Address, pattern("\\b(\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3})\\b")),
                (Secret::Address, pattern("\\b((?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4})\\b")),
                (Secret::Host, pattern(&host)),
            ],
            path: pattern("(?:^|[\\s\"'=:,(\\[<>])(~?(?:/[^\\s/\"'\\\\:;,<>()\\[\\]{}|=*?]+)+)"),
            login: pattern("\\b([A-Za-z0-9._-]+)@([A-Za-z0-9][A-Za-z0-9.-]*)"),
        };
        names.keep(SYSTEM.split_whitespace().chain(kept));
        names
    }

    /// Excludes words and their parts from replacement.
    pub fn keep<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) {
        for word in words {
            self.kept.insert(word.to_lowercase());
            self.kept.extend(word.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase));
        }
    }

    /// Adds a name, unless it is an excluded word.
    pub fn add(&mut self, secret: Secret, name: &str) {
        let name = name.trim();
        let is_plain = name.chars().all(|letter| !letter.is_alphabetic());
        let is_plain = is_plain && !matches!(secret, Secret::Address | Secret::Word);
        if name.is_empty() || is_plain || self.names.contains_key(name) {
            return;
        }
        if secret != Secret::Word && self.kept.contains(&name.to_lowercase()) {
            return;
        }
        let count = self.counts.entry(secret).or_insert(0);
        *count += 1;
        self.names.insert(name.to_string(), format!("{}-{count}", secret.prefix()));
    }

    /// Adds every part of a path; the part after `home` is a user.
    pub fn add_path(&mut self, path: &str) {
        // `<none>` and `<journal jbd2/vda-8>` stand for files without a path.
        if path.starts_with('<') && path.ends_with('>') {
            return;
        }
        let mut before = "";
        for part in path.split('/') {
            let secret = if matches!(before, "home" | "Users") { Secret::User } else { Secret::Name };
            before = part;
            let part = part.trim_start_matches('~');
            // A part of one or two letters occurs in other words, so it is replaced only in paths.
            match part.chars().count() {
                0 => {}
                1 | 2 if self.kept.contains(&part.to_lowercase()) || matches!(part, "." | "..") => {}
                1 | 2 if part.chars().all(|letter| letter.is_ascii_digit()) => {}
                1 | 2 => self.add_short(part),
                _ => self.add(secret, part),
            }
        }
    }

    fn add_short(&mut self, part: &str) {
        let name = format!("/{part}");
        if !self.names.contains_key(&name) {
            let count = self.counts.entry(Secret::Name).or_insert(0);
            *count += 1;
            self.names.insert(name, format!("/name-{count}"));
        }
    }

    /// Adds all parts of a text that have the form of a name.
    pub fn find(&mut self, text: &str) {
        let mut found: Vec<(Secret, String)> = Vec::new();
        for (secret, pattern) in &self.patterns {
            for groups in pattern.captures_iter(text) {
                let group = groups.iter().skip(1).flatten().next();
                found.extend(group.map(|group| (*secret, until_blank_line(group.as_str()))));
            }
        }
        for groups in self.login.captures_iter(text) {
            found.push((Secret::User, groups[1].to_string()));
            found.push((Secret::Host, groups[2].trim_end_matches('.').to_string()));
        }
        for (secret, name) in found {
            if !(secret == Secret::Address && is_release(&name)) {
                self.add(secret, &name);
            }
        }
        let paths: Vec<String> = self.path.captures_iter(text).map(|groups| groups[1].to_string()).collect();
        paths.iter().for_each(|path| self.add_path(path));
    }

    /// Returns the text with every name replaced, and the number of replacements of each.
    #[must_use]
    pub fn replace(&self, text: &str) -> (String, BTreeMap<&str, usize>) {
        let mut by_first: BTreeMap<char, Vec<(&str, &str)>> = BTreeMap::new();
        for (name, replacement) in &self.names {
            let first = name.chars().next().unwrap_or_default();
            by_first.entry(first).or_default().push((name, replacement));
        }
        by_first.values_mut().for_each(|names| names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len())));
        let mut counts = BTreeMap::new();
        let mut replaced = String::with_capacity(text.len());
        let (mut left, mut before) = (text, ' ');
        while let Some(first) = left.chars().next() {
            let name = by_first.get(&first).into_iter().flatten().find(|(name, _)| {
                let behind = left.strip_prefix(name).map(|behind| behind.chars().next().unwrap_or(' '));
                behind.is_some_and(|behind| is_apart(before, name, behind))
            });
            let taken = match name {
                Some((name, replacement)) => {
                    *counts.entry(*name).or_insert(0) += 1;
                    replaced.push_str(replacement);
                    name.len()
                }
                None => {
                    let token = kept_token(left, before, &self.kept);
                    let length = token.max(first.len_utf8());
                    replaced.push_str(&left[..length]);
                    length
                }
            };
            before = left[..taken].chars().next_back().unwrap_or(' ');
            left = &left[taken..];
        }
        (replaced, counts)
    }

    /// Returns the originals, each with its replacement.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(name, replacement)| (name.as_str(), replacement.as_str()))
    }
}

/// True if the letters around a name make it a whole word.
fn is_apart(before: char, name: &str, behind: char) -> bool {
    let is_word = char::is_alphanumeric;
    let (first, last) = (name.chars().next(), name.chars().next_back());
    !(is_word(before) && first.is_some_and(is_word) || is_word(behind) && last.is_some_and(is_word))
}

/// Returns the length of a word of the program at the start of a text, with hyphens; 0 for none.
fn kept_token(text: &str, before: char, kept: &BTreeSet<String>) -> usize {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    if is_letter(before) {
        return 0;
    }
    let token = text.split(|letter| !is_letter(letter)).next().unwrap_or_default();
    if kept.contains(&token.to_lowercase()) { token.len() } else { 0 }
}

/// Returns the text up to the first empty line, where a statement ends at the latest.
fn until_blank_line(text: &str) -> String {
    text.split("\n\n").next().unwrap_or_default().trim_end().to_string()
}

/// True if four numbers are an Oracle release, such as 11.2.0.4, rather than an address.
fn is_release(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    matches!(parts[..], ["11" | "12" | "18" | "19" | "21" | "23", _, "0", _])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(texts: &[&str]) -> Vec<String> {
        let mut names = Names::new(["large-sort", "sort_area_size", "direct path write"]);
        texts.iter().for_each(|text| names.find(text));
        texts.iter().map(|text| names.replace(text).0).collect()
    }

    #[test]
    fn names_are_replaced_alike_in_all_texts() {
        let texts = [
            "data at /home/alice/acme_prod/db and /var/lib/acme_prod",
            "alice@db1.acme.example.com reads from 192.168.7.4, not 11.2.0.4",
            "psql -c \"select secret from clients where id = 7\" # acme_prod",
            "run large-sort in /mnt/large-sort/direct",
        ];
        let replaced = shared(&texts);
        let all = replaced.join("\n");
        for name in ["alice", "acme", "192.168", "clients", "secret", "db1"] {
            assert!(!all.contains(name), "{name}: {all}");
        }
        assert!(all.contains("11.2.0.4"), "a release is no address: {all}");
        assert!(all.contains("run large-sort in /mnt/large-sort/direct"), "words of the program stay: {all}");
        assert!(all.contains("/home/user-1/") && all.contains("user-1@host-1"), "{all}");
        let of_directory = replaced[0].split("/var/lib/").nth(1).expect("a path");
        assert!(replaced[2].ends_with(of_directory), "one name, one replacement: {all}");
    }

    #[test]
    fn words_for_files_without_a_path_stay() {
        let mut names = Names::new([]);
        ["<none>", "<journal jbd2/vda-8>"].iter().for_each(|path| names.add_path(path));
        assert_eq!(names.iter().count(), 0);
    }

    #[test]
    fn a_name_within_a_word_stays_and_one_within_a_name_leaves_no_rest() {
        let mut names = Names::new([]);
        names.add(Secret::Word, "acme");
        names.add(Secret::Word, "acme-prod");
        let (text, counts) = names.replace("acmeist acme acme-prod acme-test");
        assert_eq!(text, "acmeist word-1 word-2 word-1-test");
        assert_eq!(counts["acme"], 2);
    }

    #[test]
    fn a_statement_of_many_lines_goes_whole() {
        let text = "SQL> select a,\n  b\nfrom clients\nwhere c = 1;\n\nElapsed: 1 s\n";
        assert_eq!(shared(&[text])[0], "SQL> sql-1;\n\nElapsed: 1 s\n");
    }
}
