//! Finds the names that a shared bundle must not reveal, and gives each one replacement.
//!
//! The first pass finds names in every text: hosts, users, directories, addresses, SQL. The second
//! replaces each of them as a whole word in any case, in all files. A name from a field of a report
//! is replaced inside longer words, too, because servers build names from names: `orclXDB`.
//!
//! Words of the program (settings, workloads, events), of reports (headings, units) and of every
//! Unix system (`/var`, `/dev`) stay, because they identify no one and a record is useless without
//! them. Longer names are replaced first, so that no part of a name remains.
//!
//! In text with columns a replacement takes the place of its name: blanks fill the rest.

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

#[derive(Debug)]
struct Name {
    /// The name as it was found first.
    original: String,
    replacement: String,
    is_field: bool,
}

/// Shortest name that is replaced inside longer words.
const INSIDE_LEAST: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLayout {
    /// Columns begin at the same letter in each line.
    Columns,
    Free,
}

/// The names that were found, each with its replacement.
#[derive(Debug)]
pub struct Names {
    /// By the name in lower case.
    names: BTreeMap<String, Name>,
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
/// Units and their abbreviations, which stand behind a slash as parts of paths do.
const UNITS: &str = "\
    txn txns exec execs call calls trans transaction transactions second seconds sec secs min mins \
    minute minutes hour hours msec usec bytes byte blocks reads read writes write wait waits query \
    queries commit commits row rows session sessions request requests op ops pct avg max total";
/// First words of SQL statements. Some are words of headings, too: `Call Time`.
const VERBS: &str = "(?i:(?:select|insert\\s+into|update\\s+\\S+(?:\\s+\\w+)?\\s+set|delete\\s+from|\
    merge\\s+into|create\\s+(?:table|index|view|user)|alter\\s+(?:table|session|system|user)|\
    drop\\s+(?:table|index|user)|explain\\s+(?:select|plan|analyze|verbose)|with\\s+\\w+\\s+as)\\s|\
    call\\s+[\\w$#.]+\\s*\\()";
/// Starts of blocks of PL/SQL, whose statements end with semicolons.
const BLOCKS: &str = "(?i:declare\\s|begin\\s+[\\w$#.]+\\s*(?:\\(|:=|;))";
const DOMAINS: &str =
    "com|net|org|local|localdomain|internal|intranet|lan|corp|edu|gov|cloud|de|uk|fr|ch|nl|jp|cn|br|ru|au";

impl Names {
    /// Returns an empty set of names that keeps the words of the program.
    #[must_use]
    pub fn new<'w>(kept: impl IntoIterator<Item = &'w str>) -> Names {
        let pattern = |text: &str| Regex::new(text).expect("a constant pattern compiles");
        let quoted = format!("\"\\s*({VERBS}[^\"]*)\"|'\\s*({VERBS}[^']*)'");
        // Lists of statements have the id of each in front of it.
        let start = "(?:^|[\\n>;])[ \\t]*(?:SQL> *|[0-9a-z]{13}[ \\t]+)?(?:/\\*[^*]*\\*/\\s*)?";
        let line = format!("{start}({VERBS}[^;]*)");
        let block = format!("{start}({BLOCKS}[\\s\\S]*?)(?:\\n[ \\t\\r]*\\n|$)");
        let host = format!("\\b([A-Za-z0-9][A-Za-z0-9-]*(?:\\.[A-Za-z0-9-]+)*\\.(?:{DOMAINS}))\\b");
        let mut names = Names {
            names: BTreeMap::new(),
            counts: BTreeMap::new(),
            kept: BTreeSet::new(),
            patterns: vec![
                (Secret::Sql, pattern(&quoted)),
                (Secret::Sql, pattern(&block)),
                (Secret::Sql, pattern(&line)),
                (Secret::Name, pattern("(?:^|\\n)[ \\t]*Module: ([^\\n]+)")),
                (Secret::Address, pattern("\\b([a-z][a-z0-9+.-]*://[^\\s\"'<>]+)")),
                (Secret::Address, pattern("\\b(\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3})\\b")),
                (Secret::Address, pattern("\\b((?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4})\\b")),
                (Secret::Host, pattern(&host)),
            ],
            path: pattern("(?:^|[\\s\"'=:,(\\[<>])(~?(?:/[^\\s/\"'\\\\:;,<>()\\[\\]{}|=*?]+)+)"),
            login: pattern("\\b([A-Za-z0-9._-]+)@([A-Za-z0-9][A-Za-z0-9.-]*)"),
        };
        names.keep(SYSTEM.split_whitespace().chain(UNITS.split_whitespace()).chain(kept));
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
        if self.is_new(secret, name.trim()) {
            let number = self.next(secret);
            self.insert(name.trim(), format!("{}-{number}", secret.prefix()), false);
        }
    }

    /// Adds a name from a field of a report. Its replacement is no longer than the name, so that it
    /// has room in a column, and it is replaced inside longer words.
    pub fn add_field(&mut self, secret: Secret, name: &str) {
        let name = name.trim();
        if !self.is_new(secret, name) {
            if let Some(known) = self.names.get_mut(&name.to_lowercase()) {
                known.is_field = true;
            }
            return;
        }
        let number = self.next(secret);
        let long = format!("{}-{number}", secret.prefix());
        let replacement = match long.len() <= name.len() {
            true => long,
            false => format!("{}{number}", &secret.prefix()[..1]),
        };
        self.insert(name, replacement, true);
    }

    fn is_new(&self, secret: Secret, name: &str) -> bool {
        let is_plain = name.chars().all(|letter| !letter.is_alphabetic());
        let is_plain = is_plain && !matches!(secret, Secret::Address | Secret::Word);
        let lower = name.to_lowercase();
        let is_kept = secret != Secret::Word && self.kept.contains(&lower);
        !(name.is_empty() || is_plain || is_kept || self.names.contains_key(&lower))
    }

    fn next(&mut self, secret: Secret) -> usize {
        let count = self.counts.entry(secret).or_insert(0);
        *count += 1;
        *count
    }

    fn insert(&mut self, name: &str, replacement: String, is_field: bool) {
        let of = Name { original: name.to_string(), replacement, is_field };
        self.names.insert(name.to_lowercase(), of);
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
        if !self.names.contains_key(&name.to_lowercase()) {
            let number = self.next(Secret::Name);
            self.insert(&name, format!("/name-{number}"), false);
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
        // A short word behind a single slash is a unit or an alternative: `/s`, `read/write`.
        let is_path = |path: &&String| path.matches('/').count() > 1 || path.len() > 1 + INSIDE_LEAST;
        paths.iter().filter(is_path).for_each(|path| self.add_path(path));
    }

    /// Adds a text as a statement if it begins as one. True if it does.
    pub fn find_statement(&mut self, text: &str) -> bool {
        let text = text.trim();
        let is_whole = |(secret, pattern): &(Secret, Regex)| {
            let found = pattern.captures(text).and_then(|groups| groups.iter().skip(1).flatten().next());
            *secret == Secret::Sql && found.is_some_and(|group| text[..group.start()].trim().is_empty())
        };
        let is_statement = self.patterns.iter().any(is_whole);
        if is_statement {
            self.add(Secret::Sql, text);
        }
        is_statement
    }

    /// Returns the text with every name replaced, and the number of replacements of each.
    #[must_use]
    pub fn replace(&self, text: &str) -> (String, BTreeMap<&str, usize>) {
        self.replace_in(text, TextLayout::Free)
    }

    /// As [`Names::replace`], for a text of this layout.
    #[must_use]
    pub fn replace_in(&self, text: &str, layout: TextLayout) -> (String, BTreeMap<&str, usize>) {
        let by_first = self.by_first();
        let mut counts = BTreeMap::new();
        let mut line = Line { text: String::with_capacity(text.len()), layout, excess: 0 };
        let (mut left, mut before) = (text, ' ');
        while let Some(first) = left.chars().next() {
            let candidates = by_first.get(&first.to_ascii_lowercase()).map_or(&[][..], Vec::as_slice);
            let at = |is_inside: bool| {
                candidates.iter().find_map(|name| {
                    let length = prefix_length(left, &name.original)?;
                    let behind = left[length..].chars().next().unwrap_or(' ');
                    let is_long = name.original.chars().count() >= INSIDE_LEAST;
                    let is_found =
                        is_apart(before, &name.original, behind) || is_inside && name.is_field && is_long;
                    is_found.then_some((*name, length))
                })
            };
            let kept = || kept_token(left, before, &self.kept);
            let taken = match at(false) {
                Some(found) => Ok(found),
                None => match kept() {
                    0 => at(true).ok_or(first.len_utf8()),
                    length => Err(length),
                },
            };
            let length = match taken {
                Ok((name, length)) => {
                    *counts.entry(name.original.as_str()).or_insert(0) += 1;
                    line.replace(&left[..length], &name.replacement);
                    length
                }
                Err(length) => {
                    line.copy(&left[..length], before);
                    length
                }
            };
            before = left[..length].chars().next_back().unwrap_or(' ');
            left = &left[length..];
        }
        (line.text, counts)
    }

    /// Returns the names by their first letter, the longest first.
    fn by_first(&self) -> BTreeMap<char, Vec<&Name>> {
        let mut by_first: BTreeMap<char, Vec<&Name>> = BTreeMap::new();
        for name in self.names.values() {
            let first = name.original.chars().next().unwrap_or_default();
            by_first.entry(first.to_ascii_lowercase()).or_default().push(name);
        }
        by_first
            .values_mut()
            .for_each(|names| names.sort_by_key(|name| std::cmp::Reverse(name.original.len())));
        by_first
    }

    /// Returns the originals, each with its replacement.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.values().map(|name| (name.original.as_str(), name.replacement.as_str()))
    }
}

/// The copy of a text while it is written.
struct Line {
    text: String,
    layout: TextLayout,
    /// Letters of the copied line beyond those of the original.
    excess: isize,
}

impl Line {
    fn replace(&mut self, original: &str, replacement: &str) {
        self.text.push_str(replacement);
        let count = |text: &str| text.chars().count() as isize;
        self.excess += count(replacement) - count(original.rsplit('\n').next().unwrap_or(original));
    }

    /// Copies letters that are no name; `before` is the letter before them.
    fn copy(&mut self, letters: &str, before: char) {
        match letters {
            "\n" => self.excess = 0,
            " " if self.layout == TextLayout::Columns && self.excess < 0 => {
                self.text.extend(std::iter::repeat_n(' ', self.excess.unsigned_abs()));
                self.excess = 0;
            }
            // One blank stays between two words.
            " " if self.layout == TextLayout::Columns && self.excess > 0 && before == ' ' => {
                self.excess -= 1;
                return;
            }
            _ => {}
        }
        self.text.push_str(letters);
    }
}

/// Returns the length of the start of a text that is this name in any case.
fn prefix_length(text: &str, name: &str) -> Option<usize> {
    let start = text.get(..name.len())?;
    let is_same = |(one, two): (char, char)| one.to_lowercase().eq(two.to_lowercase());
    let is_name = start.eq_ignore_ascii_case(name)
        || start.chars().count() == name.chars().count() && start.chars().zip(name.chars()).all(is_same);
    is_name.then_some(name.len())
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
    if before.is_alphanumeric() {
        return 0;
    }
    let token = text.split(|letter| !is_letter(letter)).next().unwrap_or_default();
    let word = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let is_kept = |word: &&str| kept.contains(&word.to_lowercase());
    [token, word].into_iter().find(is_kept).map_or(0, str::len)
}

/// Returns the text up to the first empty line, where a statement ends at the latest. A trace has a
/// line of its own for the end.
fn until_blank_line(text: &str) -> String {
    let is_end = |line: &str| line.trim().is_empty() || line.starts_with("END OF STMT");
    let own = text.split_inclusive('\n').enumerate().take_while(|(at, line)| *at == 0 || !is_end(line));
    let length: usize = own.map(|(_, line)| line.len()).sum();
    text[..length].trim_end().to_string()
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
    fn a_name_of_a_field_goes_in_any_case_and_inside_words_but_no_word_of_reports() {
        let mut names = Names::new(["Wait Class", "Concurrency"]);
        names.add_field(Secret::Name, "ORCL");
        names.add_field(Secret::Name, "curr");
        names.add_field(Secret::Name, "ab");
        let (text, _) = names.replace("orclXDB spfileOrcl.ora Concurrency current lab ab 12 /txn");
        assert_eq!(text, "n1XDB spfilen1.ora Concurrency n2ent lab n3 12 /txn");
        names.find("reads/s /txn bytes/s and calls /s");
        assert_eq!(names.iter().count(), 3, "{:?}", names.iter().collect::<Vec<_>>());
    }

    #[test]
    fn columns_stay_where_they_are() {
        let mut names = Names::new([]);
        names.add_field(Secret::Name, "LONGDATABASE");
        names.add_field(Secret::Name, "DBT");
        names.add(Secret::Word, "abc");
        let text = "LONGDATABASE    12\nDBT             12\nLONGDATABASE 12\nabc             12\n";
        let (copy, _) = names.replace_in(text, TextLayout::Columns);
        let columns =
            |text: &str| text.lines().map(|line| line.find("12").expect("a figure")).collect::<Vec<_>>();
        assert_eq!(columns(&copy), columns(text), "{copy}");
    }

    #[test]
    fn a_statement_of_many_lines_goes_whole() {
        let text = "SQL> select a,\n  b\nfrom clients\nwhere c = 1;\n\nElapsed: 1 s\n";
        assert_eq!(shared(&[text])[0], "SQL> sql-1;\n\nElapsed: 1 s\n");
        let lines = "select a\r\nfrom clients\r\n\r\nElapsed: 1 s\r\n";
        assert_eq!(shared(&[lines])[0], "sql-1\r\n\r\nElapsed: 1 s\r\n");
    }
}
