//! Reads the tables of Markdown: lines between bars below a head, and lists of `- name: value`.
//!
//! A backslash makes the letter behind it text. Lines that are neither belong to no table.

use crate::ruled::Ruled;
use crate::sheet::{COLUMNS_MOST, Printed};

/// Reads all tables of a text, each with the heading above it.
#[must_use]
pub fn tables(lines: &[(u32, &str)]) -> Vec<Ruled> {
    let mut found: Vec<Ruled> = Vec::new();
    let (mut heading, mut goes_on) = (Printed::default(), false);
    for (at, (line, text)) in lines.iter().enumerate() {
        let (line, text) = (*line, text.trim());
        let own = |raw: &str| Printed { raw: raw.to_string(), line };
        if text.starts_with('#') {
            heading = own(&plain(text.trim_start_matches('#').trim()));
            goes_on = false;
        } else if text.starts_with('|') {
            let is_head = lines.get(at + 1).is_some_and(|(_, below)| is_ruler(below.trim()));
            let (names, notes, rows) = (cells(text), Vec::new(), Vec::new());
            if is_head {
                found.push(Ruled { heading: heading.clone(), notes, names, rows });
            } else if let Some(table) = found.last_mut().filter(|_| goes_on && !is_ruler(text)) {
                table.rows.push((line, names.iter().map(|raw| own(raw)).collect()));
            }
            goes_on = true;
        } else if let Some((name, value)) = text.strip_prefix("- ").and_then(|item| item.split_once(": ")) {
            let row = (line, vec![own(&plain(name)), own(&plain(value))]);
            match found.last_mut().filter(|_| goes_on) {
                Some(facts) => facts.rows.push(row),
                None => {
                    let names = vec!["Name".to_string(), "Value".to_string()];
                    found.push(Ruled { heading: heading.clone(), notes: Vec::new(), names, rows: vec![row] });
                }
            }
            goes_on = true;
        } else {
            goes_on = false;
        }
    }
    found
}

/// True of the line between a head and its rows.
fn is_ruler(text: &str) -> bool {
    text.starts_with("|-") && text.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':'))
}

/// Returns the cells of a row, without the marks of Markdown.
fn cells(text: &str) -> Vec<String> {
    let (mut found, mut cell) = (Vec::new(), String::new());
    let mut letters = text.trim_matches('|').chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => cell.extend(letters.next()),
            '|' if found.len() + 1 < COLUMNS_MOST => found.push(std::mem::take(&mut cell)),
            letter => cell.push(letter),
        }
    }
    found.push(cell);
    found.iter().map(|cell| cell.trim().to_string()).collect()
}

/// Returns a text without the backslashes that escape its marks.
fn plain(text: &str) -> String {
    let mut letters = text.chars();
    let mut found = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        found.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_facts_are_read_with_their_headings() {
        let text = "# Title\n## Run\n\n| A | B \\| C |\n|---|---:|\n| x\\*y | 1 |\n|  | 2 |\n\n- Elapsed: 3 s\n- DB Time: 4 s\nprose\n| no table |\n";
        let lines: Vec<(u32, &str)> = (1..).zip(text.lines()).collect();
        let found = tables(&lines);
        let texts = |row: &[Printed]| row.iter().map(|cell| cell.raw.clone()).collect::<Vec<_>>();
        let shown = found.iter().map(|table| {
            let rows = table.rows.iter().map(|(_, row)| texts(row)).collect::<Vec<_>>();
            format!("{} {:?} {rows:?}", table.heading.raw, table.names)
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                r#"Run ["A", "B | C"] [["x*y", "1"], ["", "2"]]"#,
                r#"Run ["Name", "Value"] [["Elapsed", "3 s"], ["DB Time", "4 s"]]"#
            ]
        );
    }
}
