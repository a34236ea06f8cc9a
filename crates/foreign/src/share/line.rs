//! The copy of a line of text.
//!
//! A line is split into runs between blanks and the marks of assignments and lists. A run of listed
//! words is the label of what follows it. A figure stays behind a label that has figures, in a list
//! of figures, with a unit, or before a listed word such as `tps`.

use super::CellKind;
use plumb_share::{Label, Tokens, is_figure, is_stamp};

/// Copies a line by the cells in it; the rest by [`rest`].
pub(super) fn cells(tokens: &mut Tokens, text: &str, cells: &[(CellKind, &str)]) -> String {
    let mut copy = String::with_capacity(text.len());
    let (mut at, mut label) = (0, "");
    for (found, kind, raw) in places(text, cells) {
        copy.push_str(&rest_behind(tokens, label, &text[at..found]));
        label = match kind {
            // A function that is no listed word has a figure behind it, too.
            CellKind::Of(Label::Words) => {
                if tokens.is_listed(raw) {
                    raw
                } else {
                    "value"
                }
            }
            _ => "",
        };
        // Statspack puts another name and value behind a figure.
        let is_first = raw.split_whitespace().next().is_some_and(is_figure) || raw.starts_with('(');
        let begins = is_first && !is_figure(raw);
        match kind {
            CellKind::Number => copy.push_str(&tokens.numbered(raw)),
            CellKind::Of(Label::Figures | Label::Times | Label::Unknown) if begins && !is_stamp(raw) => {
                copy.push_str(&rest(tokens, raw));
            }
            CellKind::Of(label) => copy.push_str(&tokens.value(label, raw)),
        }
        at = found + raw.len();
    }
    copy.push_str(&rest_behind(tokens, label, &text[at..]));
    copy
}

/// Returns the places of cells in a line, in the order of the line. A cell that the line does not
/// print is left out; one that is behind the place of the next cell is sought again in the rest.
fn places<'c>(text: &str, cells: &[(CellKind, &'c str)]) -> Vec<(usize, CellKind, &'c str)> {
    let mut places: Vec<(usize, CellKind, &str)> = Vec::new();
    let mut left = Vec::new();
    let mut at = 0;
    for (number, (kind, raw)) in cells.iter().enumerate() {
        let near = near(text, at);
        let next = cells.get(number + 1).and_then(|(_, next)| whole(near, at, next));
        match whole(near, at, raw) {
            Some(found) if next.is_none_or(|next| found <= next) => {
                places.push((found, *kind, raw));
                at = found + raw.len();
            }
            _ => left.push((*kind, *raw)),
        }
    }
    // Words that are found nowhere are copied as those of any text.
    let left = if text.len() > NEAR { Vec::new() } else { left };
    for (kind, raw) in left {
        let mut from = 0;
        while let Some(found) = whole(text, from, raw) {
            let end = found + raw.len();
            if places.iter().all(|(other, _, own)| end <= *other || other + own.len() <= found) {
                places.push((found, kind, raw));
                break;
            }
            from = end;
        }
    }
    places.sort_by_key(|(found, ..)| *found);
    places
}

/// Bytes of a line in which a cell is sought: tables on one line have thousands of cells.
const NEAR: usize = 64 << 10;

/// Returns a line up to a place behind a byte, so that the search for a cell that it lacks ends.
fn near(text: &str, at: usize) -> &str {
    let mut end = text.len().min(at + NEAR);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

/// Returns the place of a cell at or after a byte, where no letter of it is part of a longer word.
fn whole(text: &str, from: usize, raw: &str) -> Option<usize> {
    let is_part =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    // `0` is no cell within `0.0`.
    let goes_on = |rest: &str| {
        let mut letters = rest.chars();
        is_part(letters.next())
            || rest.starts_with(['.', ',']) && letters.next().is_some_and(|next| next.is_ascii_digit())
    };
    let begins = |before: &str| {
        let mut letters = before.chars().rev();
        let last = letters.next();
        is_part(last)
            || matches!(last, Some('.' | ','))
                && raw.starts_with(|first: char| first.is_ascii_digit())
                && letters.next().is_some_and(|next| next.is_ascii_digit())
    };
    text[from..].match_indices(raw).map(|(at, _)| from + at).find(|at| {
        let is_apart = !(begins(&text[..*at]) && is_part(raw.chars().next()));
        is_apart && !(goes_on(&text[at + raw.len()..]) && is_part(raw.chars().next_back()))
    })
}

/// Copies a line without a cell, such as a head. `None` if it has a word that is not listed before
/// the first assignment, because then it is no head, unless a row follows it.
pub(super) fn form(tokens: &mut Tokens, text: &str, is_above_row: bool) -> Option<String> {
    let end = text.find([':', '=']).unwrap_or(text.len());
    let head = &text[..end];
    let is_head = head.split_whitespace().all(|word| {
        let word = word.trim_matches(['(', ')', '[', ']', ',', ';', '|', '\'', '"', '>', '<']);
        tokens.is_listed(word) || is_figure(word) || is_versioned(tokens, word)
    });
    match (is_head, is_above_row) {
        (true, _) => Some(rest(tokens, text)),
        (false, true) => Some(tokens.hidden(text)),
        (false, false) => None,
    }
}

/// Copies a line without a word.
pub(super) fn ruler(text: &str) -> Option<String> {
    let has_word = text.contains(|letter: char| letter.is_alphanumeric() || !letter.is_ascii());
    (!has_word).then(|| text.to_string())
}

/// True for `fio-3.36`: a listed word with a version.
fn is_versioned(tokens: &Tokens, run: &str) -> bool {
    let is_part =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    run.split_once('-').is_some_and(|(word, version)| {
        tokens.is_listed(word)
            && (2..=3).contains(&version.split('.').count())
            && version.split('.').all(is_part)
    })
}

/// Copies a text by its own words.
pub(super) fn rest(tokens: &mut Tokens, text: &str) -> String {
    rest_behind(tokens, "", text)
}

/// Copies a text behind a label.
fn rest_behind(tokens: &mut Tokens, label: &str, text: &str) -> String {
    let label = if tokens.is_listed(label) { label.to_string() } else { String::new() };
    let mut walk =
        Walk { copy: String::with_capacity(text.len()), label, is_list: false, hides: Hides::Nothing };
    let mut left = text;
    while !left.is_empty() {
        let end = end_of_run(left);
        let (run, behind) = left.split_at(end);
        let marks = behind.find(|letter| !is_between(letter)).unwrap_or(behind.len());
        walk.run(tokens, run, &behind[marks..]);
        walk.marks(tokens, &behind[..marks], behind[marks..].starts_with(':'));
        left = &behind[marks..];
    }
    walk.copy
}

fn is_between(letter: char) -> bool {
    letter.is_whitespace() || letter.is_ascii_control() || "=,()[]|;'\"<>{}".contains(letter)
}

/// Returns the length of the run at the start of a text. A colon ends it before a blank.
fn end_of_run(text: &str) -> usize {
    // A comma between digits is a part of a number or of a list of numbers.
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let is_end = |at: usize, letter: char| {
        is_between(letter) && !(letter == ',' && at > 0 && is_digit(at - 1) && is_digit(at + 1))
    };
    let end = text.char_indices().find(|(at, letter)| is_end(*at, *letter)).map_or(text.len(), |(at, _)| at);
    let run = &text[..end];
    let bare = run.trim_end_matches(':');
    if bare.is_empty() { end } else { bare.len().max(usize::from(end > 0)) }
}

/// Words that are hidden whatever they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hides {
    Nothing,
    /// The next word alone: `user=alice`.
    One,
    /// All up to the next mark of a list or two blanks: `Host: db 17`.
    All,
}

struct Walk {
    copy: String,
    /// The listed words before this place.
    label: String,
    /// True right behind a figure that stays.
    is_list: bool,
    /// Reach of a label of names.
    hides: Hides,
}

impl Walk {
    fn run(&mut self, tokens: &mut Tokens, run: &str, behind: &str) {
        if run.is_empty() || run.bytes().all(|byte| byte == b':') {
            self.copy.push_str(run);
            return self.assign(tokens, run);
        }
        let is_number = is_figure(run);
        if self.hides == Hides::All && behind.starts_with(':') && tokens.is_listed(run) {
            self.hides = Hides::Nothing;
            self.label.clear();
        }
        // The value of an option of a command is an argument.
        let is_option = run
            .strip_prefix('-')
            .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()));
        let stays = self.hides == Hides::Nothing
            && if is_number {
                self.is_figure_here(tokens, run, behind)
            } else {
                tokens.is_listed(run) || is_versioned(tokens, run)
            };
        match stays {
            true => self.copy.push_str(run),
            false => self.copy.push_str(&tokens.hidden(run)),
        }
        match is_option {
            true => self.hides = Hides::One,
            false if self.hides == Hides::One => self.hides = Hides::Nothing,
            false => {}
        }
        match (stays, is_number) {
            (true, false) => {
                self.label = format!("{} {run}", self.label).trim_start().to_string();
                self.is_list = false;
            }
            (true, true) => self.is_list = true,
            (false, _) => {
                self.label.clear();
                self.is_list = false;
            }
        }
    }

    fn is_figure_here(&self, tokens: &Tokens, run: &str, behind: &str) -> bool {
        let next = behind[..end_of_run(behind)].trim();
        let is_label =
            |words: &str| !words.is_empty() && tokens.is_listed(words) && tokens.label(words) != Label::Names;
        let has_unit = run.ends_with(|letter: char| letter.is_alphabetic() || letter == '%');
        let last = self.label.rsplit(' ').next().unwrap_or_default();
        has_unit
            || self.is_list
            || is_label(&self.label) && is_label(last)
            || self.label.is_empty() && is_label(next)
    }

    /// Reads the marks behind a run: an assignment after a label of names hides what follows.
    fn marks(&mut self, tokens: &Tokens, marks: &str, is_assigned: bool) {
        self.copy
            .extend(marks.chars().map(|mark| if mark.is_control() && mark != '\t' { ' ' } else { mark }));
        if marks.contains([',', ';', '|', '\t', '(', '{', '}']) && self.hides == Hides::All {
            self.hides = Hides::Nothing;
        }
        if marks.contains([',', ';', '|', '\t', '{', '}']) || marks.contains("  ") && !is_assigned {
            self.hides = Hides::Nothing;
            self.label.clear();
        }
        if marks.contains('=') {
            self.assign(tokens, "=");
        }
        self.is_list &= !marks.contains(['|', ';']) && !marks.contains("  ");
    }

    fn assign(&mut self, tokens: &Tokens, mark: &str) {
        if !mark.is_empty() && !self.label.is_empty() {
            let of_names = tokens.label(&self.label) == Label::Names;
            self.hides = match (of_names, mark) {
                (false, _) => Hides::Nothing,
                (true, "=") => Hides::One,
                (true, _) => Hides::All,
            };
        }
    }
}
