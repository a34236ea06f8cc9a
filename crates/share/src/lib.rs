//! Copies texts without names: a word that is not of plumb's lists becomes a token.
//!
//! ```text
//! label ──[kind]──> figures, times, words of the lists, names
//! text  ──[kind]──> figure or listed word: stays; every other word: a token as wide as it
//! ```
//! A text is judged by its label: the heading of its column, the key of its field, the words before
//! its colon. A figure stays where the label is known to have figures, a listed word where it is
//! known to have such words. So `4711` stays under `Waits` and goes under `DB Id`, and `service`
//! stays as a wait event and goes as a table.
//!
//! A word always has the same token within a copy, so that names that were equal stay equal.
//!
//! Rejected: searching texts for what has the form of a name. Each kind of name that the search
//! does not know is told, and a short host has no form.
//!
//! Limits: punctuation stays, and so does the number of letters of a word. A listed word tells
//! nothing but itself.

mod figure;

use std::collections::{BTreeSet, HashMap, HashSet};

pub use figure::{is_figure, is_stamp};

/// Words of Oracle's and PostgreSQL's reports, of tools, and of this program's own sentences.
const WORDS: &str = include_str!("words.txt");

/// Titles of columns with words of the lists, in lower case, without blanks and underlines.
const OF_WORDS: &str = " event eventname waitevent waitclass 1stevent 2ndevent 1stwaitclass \
    2ndwaitclass statisticname statistic parametername functionname function filetypename filetype \
    function/filename latchname enqueuetype(requestreason) namespace cache component pool poolname \
    category class mutextype location name nam platform role edition rac cluster cdb operation \
    nodetype jointype strategy rw ioengine querymode direction backendtype object context \
    waiteventtype eventtype type wait call line getmode mutex buffer advisory suggestion snapshotset \
    1stevent statusoption status t d optype ";
/// Words of titles of columns with names, even where their texts are numbers.
const OF_NAMES: &str = " id ids num number nums host hosts user users usr# uid pid tid lid sid \
    serial hash address port phone instance inst owner schema database databases tablespace file \
    filename module service query container pdb alias relation command action program machine \
    terminal hv ad name names dbname datid listener dest domain jobname hostname nodename sqlid \
    obj# file# block# i# # dbid cursor comm path device devices disk title url object subobject \
    identifier session_id datname relname rolname username groupid queryid userid oid relid node ";
/// Titles of columns with figures in spite of such a word.
const FIGURES: &str = " snapid beginsnapid endsnapid dbtime %dbtime dbcpu buffergets diskreads \
    cpus numcpus waits/txn numcpucores numjobs index# numbuffers dbblocksize stdblocksize \
    databaseblocksize diskusage planrows planwidth planningtime usercalls sqlexecutetime \
    planningtime(ms) useriotime userio sqlexecuteelapsedtime usercommits userrollbacks peruser \
    iocount snap snaps ";
/// Words of titles of columns with times of day.
const OF_TIMES: &str = " time times begin end startup date snaptime timestamp started strtime stamp ";
/// Words of titles of columns with versions.
const OF_VERSIONS: &str =
    " release version kernel platform sysname plumb_version pgprofile_version fioversion osrelease ";

/// Ends of headings such as `Waits /txn`.
const UNITS_PER: [&str; 6] = ["/txn", "/sec", "/Miss", "/tx", "/exec", "/trans"];

/// Kind of the texts under a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Figures,
    Times,
    Versions,
    Words,
    Names,
    /// Figures and listed words, as the values of a parameter.
    Values,
    /// Figures with a unit stay: the unit says that they are figures.
    Unknown,
}

impl Label {
    /// True if numbers under it are names, too.
    #[must_use]
    pub fn is_of_names(self) -> bool {
        self == Label::Names
    }
}

/// The lists of words that stay, and the tokens of all others.
#[derive(Debug)]
pub struct Tokens {
    words: HashSet<&'static str>,
    /// Whole texts that stay where a name may be one of this program.
    names: BTreeSet<String>,
    tokens: HashMap<String, String>,
    taken: HashSet<String>,
    /// Numbers that are names, with the numbers that replace them.
    numbers: HashMap<String, usize>,
    next_number: usize,
    /// Next number of a token, by its width.
    next: HashMap<usize, usize>,
    /// Lines and fields that were not understood and are left out.
    pub dropped: u64,
}

impl Tokens {
    /// Returns an empty set of tokens; `names` are those of this program's settings and workloads.
    #[must_use]
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Tokens {
        Tokens {
            words: WORDS.split_whitespace().collect(),
            names: names.into_iter().map(str::to_string).collect(),
            tokens: HashMap::new(),
            taken: HashSet::new(),
            numbers: HashMap::new(),
            next_number: 0,
            next: HashMap::new(),
            dropped: 0,
        }
    }

    /// Removes a word from the lists, so that it gets a token everywhere.
    pub fn unlist(&mut self, word: &str) {
        let word = word.to_lowercase();
        self.words.retain(|listed| *listed != word);
        self.names.retain(|name| name.to_lowercase() != word);
    }

    /// Returns the number of words that have a token.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// True if no word has a token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the words with their tokens, sorted by the token.
    #[must_use]
    pub fn all(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<(&str, &str)> =
            self.tokens.iter().map(|(word, token)| (token.as_str(), word.as_str())).collect();
        all.sort_unstable();
        all
    }

    /// True if each part of the text between punctuation is a listed word. A number alone is none.
    #[must_use]
    pub fn is_listed(&self, text: &str) -> bool {
        let is_of_words = |chunk: &str| {
            let splits = |letter: char| letter.is_ascii_punctuation() && !matches!(letter, '@' | '\\' | '~');
            let parts = || chunk.split(splits).filter(|part| !part.is_empty());
            // A compound with a number is listed as a whole: `1-bk`, but not `db-1`.
            let whole = chunk.trim_matches(|letter: char| splits(letter)).to_lowercase();
            if chunk.starts_with(['/', '.'])
                && chunk.len() > 1
                && !chunk.starts_with("/proc/")
                && !chunk.starts_with("/sys/")
            {
                return whole.len() <= 3 && self.words.contains(whole.as_str()) || UNITS_PER.contains(&chunk);
            }
            if self.words.contains(whole.as_str()) {
                return true;
            }
            if !chunk.contains(|letter: char| letter.is_alphanumeric() || !letter.is_ascii()) {
                return true;
            }
            let has_letter = |part: &str| part.contains(|letter: char| letter.is_alphabetic());
            let is_plain = parts().count() == 1 || parts().any(has_letter);
            is_plain && parts().all(|part| self.words.contains(part.to_lowercase().as_str()))
        };
        text.split_whitespace().all(is_of_words)
    }

    /// Returns the kind of a label, which is a heading of a column or the key of a field.
    #[must_use]
    pub fn label(&self, label: &str) -> Label {
        let among = |list: &str, word: &str| list.contains(&format!(" {word} "));
        // A number of something is a count, a number alone a name.
        let label = label.to_lowercase().replace("number of", "count of");
        let plain: String =
            label.chars().filter(|letter| !matches!(letter, ' ' | '_' | ':' | '\n')).collect();
        let mut parts = label.split(|letter: char| {
            letter.is_whitespace() || matches!(letter, '_' | ':' | '(' | ')' | '/' | '.' | ',' | '[' | ']')
        });
        if among(OF_VERSIONS, &plain) {
            Label::Versions
        } else if plain.is_empty() || among(OF_WORDS, &plain) {
            Label::Words
        } else if among(FIGURES, &plain) {
            Label::Figures
        } else if label.trim_end_matches(':').rsplit(' ').next() == Some("db")
            || parts.clone().any(|part| !part.is_empty() && among(OF_NAMES, part))
            || plain.contains('#')
        {
            Label::Names
        } else if !(self.is_listed(&label) || is_figure(&label)) {
            Label::Unknown
        } else if parts.any(|part| among(OF_TIMES, part)) {
            Label::Times
        } else {
            Label::Figures
        }
    }

    /// Returns the text under a label as the copy has it.
    pub fn value(&mut self, label: Label, text: &str) -> String {
        let is_sum = matches!(text.trim_end_matches(':'), "Total" | "TOTAL" | "Sum" | "Avg");
        let stays = is_sum
            || match label {
                Label::Figures => is_figure(text) || self.is_missing(text),
                Label::Times => is_figure(text) || is_stamp(text) || self.is_missing(text),
                Label::Versions => return self.version(text),
                Label::Words => self.is_listed(text) || self.is_cut(text),
                Label::Values => is_figure(text) || self.is_missing(text) || self.is_listed(text),
                // A number stays one, because readers take it for a figure or for an instance.
                Label::Names if is_number(text) => return self.numbered(text),
                Label::Names => false,
                Label::Unknown => {
                    is_figure(text) && text.contains(|letter: char| letter.is_alphabetic() || letter == '%')
                }
            };
        if stays { text.to_string() } else { self.hidden(text) }
    }

    /// Returns a name of this program as it is, and every other one hidden.
    pub fn name(&mut self, text: &str) -> String {
        let stays = self.is_name(text) || is_figure(text);
        if stays { text.to_string() } else { self.hidden(text) }
    }

    /// True if a text is a name of this program.
    #[must_use]
    pub fn is_name(&self, text: &str) -> bool {
        self.names.contains(text.trim())
    }

    /// Returns the text with a token for each word; punctuation and blanks stay.
    pub fn hidden(&mut self, text: &str) -> String {
        let mut copy = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(is_mark).unwrap_or(rest.len());
            if end > 0 {
                copy.push_str(&self.token(&rest[..end]));
            }
            let mark = rest[end..].chars().next();
            copy.extend(
                mark.map(|mark| if mark.is_control() && mark != '\n' && mark != '\t' { ' ' } else { mark }),
            );
            rest = &rest[end + mark.map_or(0, char::len_utf8)..];
        }
        copy
    }

    /// Returns a sentence of this program: listed words and figures stay where they stand alone.
    pub fn sentence(&mut self, text: &str) -> String {
        let mut copy = String::with_capacity(text.len());
        let mut quote = None;
        for piece in text.split_inclusive(char::is_whitespace) {
            let core = piece.trim_end();
            let opened = quote.or_else(|| core.chars().next().filter(|first| matches!(first, '\'' | '"')));
            let closes = opened.is_some_and(|mark| {
                let inner = core.trim_end_matches(['.', ',', ';', ':', ')']);
                inner.ends_with(mark) && (quote.is_some() || inner.len() > 1)
            });
            let word = core.trim_matches(['(', ')', '[', ']', '.', ',', ';', ':', '`', '?', '!']);
            let stays = opened.is_none() && self.stands_alone(word);
            quote = opened.filter(|_| !closes);
            match stays {
                true => copy.push_str(piece),
                false => copy.push_str(&self.hidden(piece)),
            }
        }
        copy
    }

    /// True if a word of a sentence is a figure, a listed word, a name of this program, an option,
    /// a file of the kernel, or a setting with its value. A path or an address is none.
    #[must_use]
    pub fn stands_alone(&self, word: &str) -> bool {
        let is_path = word.contains(['@', '\\', '~', '.', ':']) || word.matches('/').count() > 1;
        let is_kernel = word.starts_with("/proc/") || word.starts_with("/sys/");
        let is_plain = !is_path && !word.starts_with('/') && self.is_listed(word);
        let is_setting = word.split_once('=').is_some_and(|(name, value)| {
            self.names.contains(name) && (is_figure(value) || self.names.contains(value))
        });
        is_figure(word)
            || is_plain
            || is_setting
            || self.names.contains(word)
            || is_kernel && self.is_listed(word)
    }

    /// True if a text stands for a figure that is missing.
    fn is_missing(&self, text: &str) -> bool {
        let text = text.trim().to_lowercase();
        !text.contains(char::is_alphanumeric)
            || matches!(
                text.as_str(),
                "n/a" | "null" | "nan" | "inf" | "-nan" | "true" | "false" | "yes" | "no"
            )
    }

    /// True if the words of a text are listed and the last one begins a listed word, because the
    /// column has no room for its end.
    fn is_cut(&self, text: &str) -> bool {
        const CUT_LEAST: usize = 12;
        let is_mark = |letter: char| !letter.is_alphanumeric();
        let text = text.trim_end();
        let start =
            text.rfind(is_mark).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let last = text[start..].to_lowercase();
        let begins = || self.words.iter().any(|word| word.starts_with(&last));
        text.chars().count() >= CUT_LEAST && start > 0 && self.is_listed(&text[..start]) && begins()
    }

    /// Returns a version or a platform: numbers of at most three digits and listed words stay.
    fn version(&mut self, text: &str) -> String {
        if text.contains([':', '@', '/', '=', '\\']) {
            return self.hidden(text);
        }
        // Four parts of a release look like an address; its third one is 0.
        const RELEASES: [&str; 7] = ["9", "11", "12", "18", "19", "21", "23"];
        let is_address = |chunk: &str| {
            let parts: Vec<&str> = chunk.split('.').collect();
            parts.len() == 4 && !(RELEASES.contains(&parts[0]) && parts[2] == "0")
        };
        let mut copy = String::new();
        for piece in text.split_inclusive(|letter: char| !letter.is_alphanumeric() && letter != '.') {
            let end = piece.trim_end_matches(|letter: char| !letter.is_alphanumeric());
            let is_number = |part: &str| part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
            // A sign of another alphabet may be a part of a name.
            let stays = !is_address(end)
                && piece[end.len()..].is_ascii()
                && end
                    .split('.')
                    .all(|part| is_number(part) || self.words.contains(part.to_lowercase().as_str()));
            match stays {
                true => copy.push_str(piece),
                false => copy.push_str(&self.hidden(piece)),
            }
        }
        copy
    }

    /// Returns the text with a number for each number, for columns that readers take for figures.
    pub fn numbered(&mut self, text: &str) -> String {
        if !is_number(text) {
            return self.hidden(text);
        }
        let width = text.len();
        if let Some(number) = self.numbers.get(text) {
            return format!("{number:0width$}");
        }
        // No number stays what it was.
        self.next_number += usize::from(format!("{:0width$}", self.next_number) == text);
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(text.to_string(), number);
        format!("{number:0width$}")
    }

    fn token(&mut self, word: &str) -> String {
        if let Some(token) = self.tokens.get(word) {
            return token.clone();
        }
        let width = word.chars().count();
        let token = loop {
            let next = self.next.entry(width).or_default();
            let token = spelled(*next, width);
            *next += 1;
            if !self.words.contains(token.as_str()) && self.taken.insert(token.clone()) {
                break token;
            }
        };
        self.tokens.insert(word.to_string(), token.clone());
        token
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for letters that separate words and stay: blanks and the punctuation of lists, predicates,
/// paths and figures. All others are parts of words, so that no alphabet is told.
fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || letter.is_ascii_control() || "()[]{}<>=,;|'\"/:.*+-".contains(letter)
}

/// Returns the token of this number: a letter that no figure begins with, and digits of base 36.
/// Zeros fill its width; too large a number needs more room.
fn spelled(number: usize, width: usize) -> String {
    const ONE: &[u8] = b"qxzjvywufoln";
    if width == 1 && number < ONE.len() {
        return char::from(ONE[number]).to_string();
    }
    let mut digits = Vec::new();
    let mut rest = number;
    while rest > 0 || digits.len() < width.saturating_sub(1) {
        digits.push(char::from_digit((rest % 36) as u32, 36).unwrap_or('0'));
        rest /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("x{digits}")
}

#[cfg(test)]
mod tests;
