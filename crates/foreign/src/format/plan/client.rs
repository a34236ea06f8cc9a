//! Lines of a plan of PostgreSQL without what clients, mails and pages put around them.
//!
//! ```text
//! fence     ``` of Markdown                             left out
//! frame     | Sort  (cost=...) |   └──┘   -[ RECORD 1 ]-   bars, rules and the heading left out
//! quote     "Sort  (cost=...)"    'Sort  (cost=...)'    with doubled quotes inside
//! lead      NOTICE:  Sort  (cost=...)    > Sort    -- Sort    what all lines of a plan begin with
//! wrap      rows                                        a line that ends within a pair of brackets
//!           =900 loops=1)                               goes on in the next one
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
pub(super) fn opened<'a>(lines: &[Numbered<'a>]) -> Vec<Numbered<'a>> {
    let kept = lines.iter().filter(|(_, line)| !line.trim_start().starts_with("```"));
    kept.map(|(number, line)| (*number, decoded(line))).collect()
}

fn decoded<'a>(line: &Cow<'a, str>) -> Cow<'a, str> {
    const ENTITIES: [(&str, &str); 11] = [
        ("<td align=\"left\">", ""),
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
    if !line.contains(['&', '\u{a0}']) && !line.contains("</td>") && !line.contains("<br />") {
        return line.clone();
    }
    let line = line.replace('\u{a0}', " ");
    Cow::Owned(ENTITIES.iter().fold(line, |line, (entity, letter)| line.replace(entity, letter)))
}

/// Returns the lines of plans as PostgreSQL made them; those of other texts may change, too.
pub(super) fn plain<'a>(lines: &[Numbered<'a>]) -> Vec<Numbered<'a>> {
    let unframed: Vec<Numbered<'a>> =
        lines.iter().filter_map(|(number, line)| Some((*number, unframed(line)?))).collect();
    joined(without_leads(unquoted(&undoubled(unframed))))
}

/// Returns the lines of a value in CSV, whose quotes are doubled, as they were.
fn undoubled(lines: Vec<Numbered<'_>>) -> Vec<Numbered<'_>> {
    let begins = ["\"[", "\"{", "\"- Plan:", "\"<explain"];
    let is_doubled = |line: &str| begins.iter().any(|begin| line.trim_start().starts_with(begin));
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
fn unframed<'a>(line: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    let text = line.trim();
    let is_rule = |letter: char| "+-=─━═┌┐└┘├┤┬┴┼╔╗╚╝╠╣╟╢╪╞╡ ".contains(letter) || BARS.contains(&letter);
    let is_record = text.contains("[ RECORD ") || text.starts_with("* Record ");
    if text.len() > 3 && text.chars().all(is_rule) || is_record {
        return None;
    }
    let barred = line.trim_end().strip_suffix(BARS).filter(|rest| !rest.ends_with('|')).map(str::trim_end);
    let rest = barred.unwrap_or(line);
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
    Some(if content.len() == line.len() { line.clone() } else { Cow::Owned(content.to_string()) })
}

/// Returns the text between the quotes of a line, with the separator behind it.
fn inside(line: &str, quote: char) -> Option<&str> {
    let line = line.trim().trim_end_matches(['+', ',', ' ']);
    line.strip_prefix(quote)?.strip_suffix(quote)
}

/// Returns the lines without the quotes that pgAdmin puts around each line of a plan. Quotes of
/// lines without an operator stay, because predicates may begin and end with one.
pub(super) fn unquoted<'a>(lines: &[Numbered<'a>]) -> Vec<Numbered<'a>> {
    if !lines.iter().any(|(_, line)| line.trim_start().starts_with(['"', '\''])) {
        return lines.to_vec();
    }
    let mut plain = Vec::with_capacity(lines.len());
    let quote = |line: &str| ['"', '\''].into_iter().find(|quote| inside(line, *quote).is_some());
    for block in lines.chunk_by(|(_, one), (_, next)| quote(one) == quote(next)) {
        let of = quote(&block[0].1);
        let content = |line: &'_ str| of.and_then(|of| inside(line, of)).map(str::to_string);
        let is_quoted = block.iter().any(|(_, line)| {
            content(line).is_some_and(|line| has_figures(&line) || xplan::may_be_heading(&line))
        });
        plain.extend(block.iter().map(|(number, line)| match (of, content(line).filter(|_| is_quoted)) {
            (Some('"'), Some(line)) => {
                (*number, Cow::Owned(line.replace("\"\"", "\"").trim_end_matches("\\n").to_string()))
            }
            (_, Some(line)) => (*number, Cow::Owned(line)),
            _ => (*number, line.clone()),
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
        let rest = line.strip_prefix(lead.as_str()).or_else(|| line.strip_prefix(short));
        match rest.filter(|_| !short.is_empty()).map(str::to_string) {
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

/// True if the second line is the rest of the first.
fn goes_on(line: &str, next: &str, has_figures_of_all: bool) -> bool {
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
