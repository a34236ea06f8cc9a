//! Splits a page of HTML into the texts that a reader sees and the rest, which a copy keeps.
//!
//! Tags, comments and styles stay as they are, so that the copy has the structure of the page.
//! Quoted values of attributes are texts, because links repeat names, and so are those of scripts,
//! because some tools keep their tables in one.

use std::ops::Range;

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagePart<'p> {
    Kept(&'p str),
    Text(&'p str),
}

/// True if a text is a page of HTML, which has a tag near its start.
pub fn is_page(text: &str) -> bool {
    const HEAD_LETTERS: usize = 64 << 10;
    let head: String = text.chars().take(HEAD_LETTERS).collect::<String>().to_ascii_lowercase();
    ["<html", "<table", "<body", "<td"].iter().any(|tag| head.contains(tag))
}

/// Returns the parts of a page in their order; together they are the page.
pub fn pieces(page: &str) -> Vec<PagePart<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < page.len() {
        let tag = next_tag(page, at);
        if tag.start > at {
            pieces.push(PagePart::Text(&page[at..tag.start]));
        }
        attributes(&page[tag.clone()], &mut pieces);
        at = tag.end;
        let opened = page[tag].to_ascii_lowercase();
        for element in ["script", "style"] {
            if opened.strip_prefix('<').is_some_and(|opened| opened.starts_with(element)) {
                let close = format!("</{element}");
                let end = find_ignoring_case(&page[at..], &close).map_or(page.len(), |end| at + end);
                match element {
                    "script" => values(&page[at..end], &mut pieces),
                    _ => pieces.push(PagePart::Kept(&page[at..end])),
                }
                at = end;
            }
        }
    }
    pieces
}

/// Returns the next tag or comment; an empty range at the end if there is none.
fn next_tag(page: &str, from: usize) -> Range<usize> {
    let starts = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '/' | '!' | '?');
    let opened = page[from..].match_indices('<').map(|(at, _)| from + at);
    let Some(start) = opened.into_iter().find(|at| page[at + 1..].starts_with(starts)) else {
        return page.len()..page.len();
    };
    if page[start..].starts_with("<!--") {
        let end = page[start..].find("-->").map_or(page.len(), |end| start + end + "-->".len());
        return start..end;
    }
    // A quote opens only the value of an attribute: `title="a > b"`.
    let (mut quote, mut before) = (None, ' ');
    for (at, letter) in page[start..].char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'') && before == '=' => quote = Some(letter),
            None if letter == '>' => return start..start + at + 1,
            None => {}
        }
        if !letter.is_whitespace() {
            before = letter;
        }
    }
    start..page.len()
}

/// Adds the parts of a tag: the quoted values of its attributes, unless they name its looks.
fn attributes<'p>(tag: &'p str, pieces: &mut Vec<PagePart<'p>>) {
    let mut kept = 0;
    while let Some(found) = ["=\"", "='"].iter().filter_map(|quote| tag[kept..].find(quote)).min() {
        let open = kept + found + 2;
        let quote = &tag[open - 1..open];
        let Some(close) = tag[open..].find(quote).map(|length| open + length) else { break };
        let name = tag[..open - 2].rsplit(char::is_whitespace).next().unwrap_or_default();
        pieces.push(PagePart::Kept(&tag[kept..open]));
        pieces.push(match name.eq_ignore_ascii_case("class") || name.eq_ignore_ascii_case("style") {
            true => PagePart::Kept(&tag[open..close]),
            false => PagePart::Text(&tag[open..close]),
        });
        kept = close;
    }
    pieces.push(PagePart::Kept(&tag[kept..]));
}

fn find_ignoring_case(text: &str, sought: &str) -> Option<usize> {
    let is_here =
        |at: &usize| text.get(*at..at + sought.len()).is_some_and(|found| found.eq_ignore_ascii_case(sought));
    text.match_indices('<').map(|(at, _)| at).find(is_here)
}

/// Adds the parts of a script: the text of a quoted value, which no colon follows.
fn values<'p>(script: &'p str, pieces: &mut Vec<PagePart<'p>>) {
    let mut kept = 0;
    let mut letters = script.char_indices();
    while let Some((open, letter)) = letters.next() {
        if letter != '"' {
            continue;
        }
        let mut is_escaped = false;
        let close = letters.by_ref().find(|(_, letter)| {
            let closes = *letter == '"' && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            closes
        });
        let Some((close, _)) = close else { break };
        let before = script[..open].trim_end().chars().next_back();
        let behind = script[close + 1..].trim_start().chars().next();
        if matches!(before, Some(':' | ',' | '[')) && matches!(behind, Some(',' | ']' | '}')) {
            pieces.push(PagePart::Kept(&script[kept..=open]));
            pieces.push(PagePart::Text(&script[open + 1..close]));
            kept = close;
        }
    }
    pieces.push(PagePart::Kept(&script[kept..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<&str> {
        let all = pieces(page);
        let whole: String = all.iter().map(|(PagePart::Kept(part) | PagePart::Text(part))| *part).collect();
        assert_eq!(whole, page, "the parts are the page");
        let text = |piece| match piece {
            PagePart::Text(text) => Some(text),
            PagePart::Kept(_) => None,
        };
        all.into_iter().filter_map(text).filter(|text| !text.trim().is_empty()).collect()
    }

    #[test]
    fn only_the_texts_of_a_page_are_found() {
        assert_eq!(
            texts(
                "<HTML><!-- dbt <p> --><TITLE>dbt</TITLE><STYLE>td {}</STYLE><td title=\"a > dbt\">1 < 2<TD>x'y</TD>"
            ),
            ["dbt", "a > dbt", "1 < 2", "x'y"]
        );
        assert_eq!(texts("<a class='dbt' href='#dbt'>"), ["#dbt"]);
        assert_eq!(texts("<p title='dbt"), [] as [&str; 0]);
        assert_eq!(
            texts(
                "<script>const data={\"name\": \"a\\\"b\", \"list\": [\"c\", 1], \"k\": 2}; f(\"z\")</SCRIPT>d"
            ),
            ["a\\\"b", "c", "d"]
        );
        assert_eq!(texts("<script>\"open"), [] as [&str; 0]);
    }
}
