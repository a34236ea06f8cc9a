//! Lines of a plan of PostgreSQL without what clients, mails and pages put around them.
//!
//! ```text
//! fence     ``` of Markdown                             left out
//! frame     | Sort  (cost=...) |   └──┘   -[ RECORD 1 ]-   bars, rules and the heading left out
//! quote     "Sort  (cost=...)"    'Sort  (cost=...)'    with doubled quotes inside
//! lead      NOTICE:  Sort  (cost=...)    > Sort    -- Sort    what all lines of a plan begin with
//! wrap      rows            rows.                       a line that ends within a pair of brackets
//!           =900 loops=1)   .=900 loops=1)              goes on in the next one
//! ```
//!
//! Each step only removes what the lines of a plan begin or end with. The indentation stays.

use super::text::{has_figures, is_open, is_property, is_titled};
use super::xplan;
use std::borrow::Cow;

/// Most lines into which a client breaks one.
const PIECES_MOST: usize = 32;
/// Most bytes of a line in which an operator is searched.
const LEAD_MOST: usize = 4000;
/// Most lines of a text that a terminal may have broken.
const LINES_MOST: usize = 50_000;
/// Letters at both sides of a framed line.
const BARS: [char; 4] = ['|', '│', '║', '¦'];

/// A line with its number.
pub(super) type Numbered<'a> = (u32, Cow<'a, str>);

/// Returns the lines without fences, and with letters for the entities of HTML.
pub(super) fn opened(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    // The elements of a table are no lines of the plan in it.
    let left_out = ["```", "<table", "</table", "<tr", "</tr", "<th", "</th"];
    let is_left_out = |line: &str| {
        let line = line.trim_start();
        line.starts_with(['`', '<']) && left_out.iter().any(|begin| line.starts_with(begin))
    };
    let kept = lines.into_iter().filter(|(_, line)| !is_left_out(line));
    kept.map(|(number, line)| (number, unmarked(decoded(line)))).collect()
}

/// Returns a line without the marks of a quoted mail or of a comment in SQL.
fn unmarked(line: Cow<'_, str>) -> Cow<'_, str> {
    match line.strip_prefix("> ").or(line.strip_prefix("-- ")).map(str::to_string) {
        Some(rest) => unmarked(Cow::Owned(rest)),
        None => line,
    }
}

fn decoded(line: Cow<'_, str>) -> Cow<'_, str> {
    const ENTITIES: [(&str, &str); 10] = [
        ("</td>", ""),
        ("<br />", ""),
        ("&nbsp;", " "),
        ("&#160;", " "),
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        // The last one, because it may begin another.
        ("&amp;", "&"),
    ];
    // Most lines of a log have none. A no-break space begins with the last of these bytes.
    const LENGTH_MOST: usize = 1 << 20;
    if line.len() > LENGTH_MOST || !line.bytes().any(|byte| matches!(byte, b'&' | b'<' | 0xC2)) {
        return line;
    }
    // The first line of a cell is indented as its element is.
    let cell = line.split_once("<td align=\"left\">").map_or(line.as_ref(), |(_, cell)| cell);
    let line = cell.replace('\u{a0}', " ");
    Cow::Owned(ENTITIES.iter().fold(line, |line, (entity, letter)| line.replace(entity, letter)))
}

/// Returns the lines of plans as PostgreSQL made them; those of other texts may change, too.
pub(super) fn plain(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    let unframed: Vec<Numbered<'_>> =
        lines.into_iter().filter_map(|(number, line)| Some((number, unframed(line)?))).collect();
    let lines = undoubled(unframed);
    // Its lines begin with quotes, and with nothing else.
    match lines.iter().any(|(_, line)| line.contains("\"Node Type\"")) {
        true => joined(lines),
        false => joined(without_leads(unquoted(lines))),
    }
}

/// Returns the lines of a value in CSV, whose quotes are doubled, as they were.
fn undoubled(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    let begins = ["[", "{", "- Plan:", "<explain"];
    let is_doubled = |line: &str| {
        let inside = line.trim_start().strip_prefix('"');
        inside.is_some_and(|inside| begins.iter().any(|begin| inside.starts_with(begin)))
    };
    if !lines.iter().any(|(_, line)| is_doubled(line)) {
        return lines;
    }
    let plain = |(number, line): Numbered<'_>| {
        let line = if is_doubled(&line) { line.replacen('"', "", 1) } else { line.into_owned() };
        let ends = |line: &&str| line.ends_with([']', '}', '>']) || line.matches('"').count() % 2 == 1;
        let line = line.strip_suffix('"').filter(ends).unwrap_or(&line).replace("\"\"", "\"");
        (number, Cow::Owned(line))
    };
    lines.into_iter().map(plain).collect()
}

/// Returns a line without the frame of psql and its like; `None` for a rule or a heading.
fn unframed(line: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let text = line.trim();
    if !may_be_framed(text) {
        return Some(line);
    }
    let is_rule = |letter: char| "+-=─━═┌┐└┘├┤┬┴┼╔╗╚╝╠╣╟╢╪╞╡ ".contains(letter) || BARS.contains(&letter);
    let is_record = text.contains("[ RECORD ") || text.starts_with("* Record ");
    if text.len() > 3 && text.chars().all(is_rule) || is_record {
        return None;
    }
    let barred = line.trim_end().strip_suffix(BARS).filter(|rest| !rest.ends_with('|')).map(str::trim_end);
    let rest = barred.unwrap_or(&line);
    // psql marks a line that goes on in the next one.
    let marked = rest.trim_end().strip_suffix(['+', '↵']).map(str::trim_end).filter(|it| !it.is_empty());
    let rest = marked.unwrap_or(rest);
    let inside = rest.trim_start().strip_prefix(BARS);
    let (content, is_framed) = (inside.unwrap_or(rest), inside.is_some());
    let content = if is_framed { content.strip_prefix(' ').unwrap_or(content) } else { content };
    let content = match content.trim_start().strip_prefix("QUERY PLAN") {
        Some(behind) if behind.trim().is_empty() => return None,
        Some(behind) => match behind.trim_start_matches(' ').strip_prefix(BARS) {
            Some(value) => value,
            // The value is in the column of its further lines.
            None => return Some(Cow::Owned(format!("{:10}{behind}", ""))),
        },
        // A further line of a value with the name `QUERY PLAN`.
        None => content
            .strip_prefix("           ")
            .and_then(|rest| rest.strip_prefix(BARS).or(rest.strip_prefix(':')))
            .unwrap_or(content),
    };
    let changed = (content.len() < line.len()).then(|| content.to_string());
    Some(changed.map_or(line, Cow::Owned))
}

/// True if a line may be of a frame, by its first and last letter. A log of 64 MiB has millions of
/// lines that are not.
fn may_be_framed(text: &str) -> bool {
    let is_of_frame =
        |byte: u8| !byte.is_ascii() || matches!(byte, b'|' | b'+' | b'-' | b'=' | b'*' | b'Q' | b':');
    let bytes = text.as_bytes();
    let may_begin = bytes.first().is_some_and(|first| is_of_frame(*first) && !text.starts_with("->"));
    may_begin || bytes.last().is_some_and(|last| is_of_frame(*last) && *last != b':')
}

/// Returns the text between the quotes of a line, with the separator behind it.
fn inside(line: &str) -> Option<(char, &str)> {
    let quote = line.trim_start().chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let line = line.trim().trim_end_matches(['+', ',', ' ']);
    Some((quote, line.strip_prefix(quote)?.strip_suffix(quote)?))
}

/// Returns the lines without the quotes that pgAdmin puts around each line of a plan. Quotes of
/// lines without an operator stay, because predicates may begin and end with one.
pub(super) fn unquoted(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    if !lines.iter().any(|(_, line)| line.trim_start().starts_with(['"', '\''])) {
        return lines;
    }
    let mut plain = Vec::with_capacity(lines.len());
    let quote = |line: &str| inside(line).map(|(quote, _)| quote);
    for block in lines.chunk_by(|(_, one), (_, next)| quote(one) == quote(next)) {
        let of = quote(&block[0].1);
        let is_of_plan = |(_, line): &Numbered<'_>| {
            inside(line).is_some_and(|(_, line)| has_figures(line) || xplan::may_be_heading(line))
        };
        if of.is_none() || !block.iter().any(is_of_plan) {
            plain.extend(block.iter().cloned());
            continue;
        }
        plain.extend(block.iter().filter_map(|(number, line)| {
            let (quote, content) = inside(line)?;
            let content = match quote {
                '"' => content.replace("\"\"", "\"").trim_end_matches("\\n").to_string(),
                _ => content.to_string(),
            };
            Some((*number, Cow::Owned(content)))
        }));
    }
    plain
}

/// Returns the lines without what stands before the first operator of their plan.
fn without_leads<'a>(lines: Vec<Numbered<'a>>) -> Vec<Numbered<'a>> {
    let mut lead = String::new();
    let strip = |(number, line): Numbered<'a>| {
        if let Some(found) = lead_of(&line) {
            lead = found;
        }
        let short = lead.trim_end();
        if short.is_empty() {
            return (number, line);
        }
        let rest = line.strip_prefix(lead.as_str()).or_else(|| line.strip_prefix(short));
        match rest.map(str::to_string) {
            Some(rest) => (number, Cow::Owned(rest)),
            None => (number, line),
        }
    };
    lines.into_iter().map(strip).collect()
}

/// Returns what stands before an operator that begins a plan; `None` for other lines.
fn lead_of(line: &str) -> Option<String> {
    if line.len() > LEAD_MOST || !has_figures(line) || line.contains("->") || is_titled(title(line)) {
        return None;
    }
    let begins = line.char_indices().filter(|(at, letter)| {
        letter.is_ascii_uppercase() && !line[..*at].ends_with(|before: char| before.is_alphanumeric())
    });
    let mut found = begins.filter(|(at, _)| is_titled(title(&line[*at..])));
    // A word without a mark behind it is part of the operator's name.
    let lead = found.next().map(|(at, _)| line[..at].to_string());
    lead.filter(|lead| !lead.trim_end().ends_with(char::is_alphanumeric))
}

fn title(line: &str) -> &str {
    let end =
        [" (cost=", " (actual ", " (never ", "  (c", "  (a"].iter().filter_map(|mark| line.find(mark)).min();
    line[..end.unwrap_or(line.len())].trim()
}

/// Returns the lines with those in one that a terminal broke.
fn joined(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    // A log of some hundred thousand lines has no terminal around it.
    if lines.len() > LINES_MOST {
        return lines;
    }
    let has_figures = lines.iter().any(|(_, line)| line.contains("->") && has_figures(line));
    let mut whole: Vec<Numbered<'_>> = Vec::with_capacity(lines.len());
    let mut pieces = 1;
    for (number, line) in lines {
        let goes_on =
            |(_, last): &&mut Numbered<'_>| pieces < PIECES_MOST && goes_on(last, &line, has_figures);
        match whole.last_mut().filter(goes_on) {
            Some((_, last)) if is_wrapped(last, &line) => {
                last.to_mut().pop();
                last.to_mut().push_str(&line[1..]);
                pieces += 1;
            }
            Some((_, last)) => {
                // Blanks at the end of a line are lost where the text was copied.
                let is_word = ["rows=", "loops=", "width=", "time=", "(actual", "on ", "using "];
                let lacks_blank = is_word.iter().any(|word| line.starts_with(word)) && !last.ends_with(' ');
                last.to_mut().push_str(if lacks_blank { " " } else { "" });
                last.to_mut().push_str(&line);
                pieces += 1;
            }
            None => {
                whole.push((number, line));
                pieces = 1;
            }
        }
    }
    whole
}

/// True for two lines of psql with `\pset format wrapped`.
fn is_wrapped(line: &str, next: &str) -> bool {
    line.ends_with('.') && next.starts_with('.')
}

/// True if the second line is the rest of the first.
fn goes_on(line: &str, next: &str, has_figures_of_all: bool) -> bool {
    if is_wrapped(line, next) {
        return true;
    }
    let (text, rest) = (line.trim_start(), next.trim_start());
    let column = |line: &str| line.len() - line.trim_start().len();
    if rest.is_empty() || rest.starts_with("->") || column(next) > 1 {
        return false;
    }
    let is_operator = text.starts_with("->") || is_titled(title(text));
    let is_complete = has_figures(text) && !is_open(text);
    if is_operator && !is_complete {
        let is_new = is_property(rest) || is_titled(title(rest)) || rest.ends_with(" rows)");
        return (is_open(text) || has_figures_of_all) && !is_new;
    }
    is_property(text) && is_open(text) && column(line) > 1 && !is_property(rest) && !is_titled(title(rest))
}
