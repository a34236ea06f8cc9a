//! Tables and facts as HTML tables, each in a scrolling container. On a narrow page the rows of a
//! table of words become cards: cells are stacked, each after its column's title.

use super::drawing;
use super::escape::escape;
use super::with_breaks;
use crate::document::NO_DATA;
use crate::table::{Alignment, Cell, Column, Facts, Row, RowKind, Table, Tone};

pub(super) fn table(table: &Table) -> String {
    let caption = caption(table.caption.as_deref());
    if table.rows.is_empty() {
        return caption + &no_data();
    }
    let header = table.columns.iter().map(|column| {
        let title = column.title.lines().map(escape).collect::<Vec<_>>().join("<br>");
        let title = title + &column.axis.as_ref().map(drawing::axis).unwrap_or_default();
        format!("<th scope=\"col\"{}>{title}</th>", class(&[alignment(column)]))
    });
    let mut html = format!(
        "{caption}<div class=\"scroll\"><table{}>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        if is_of_words(table) { " class=\"words\"" } else { "" },
        header.collect::<String>()
    );
    for row in &table.rows {
        html.push_str(&self::row(row, &table.columns, is_of_words(table)));
    }
    html + "</tbody>\n</table></div>\n"
}

pub(super) fn facts(facts: &Facts) -> String {
    let caption = caption(facts.caption.as_deref());
    if facts.rows.is_empty() {
        return caption + &no_data();
    }
    let mut html = format!("{caption}<div class=\"scroll\"><table class=\"facts\">\n<tbody>\n");
    for (name, value) in &facts.rows {
        html.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td{}>{}</td></tr>\n",
            escape(name),
            class(&[tone(value)]),
            escape(&value.text)
        ));
    }
    html + "</tbody>\n</table></div>\n"
}

/// Renders the text in place of a table without rows.
pub(super) fn no_data() -> String {
    format!("<p class=\"no-data\">{NO_DATA}</p>\n")
}

fn caption(caption: Option<&str>) -> String {
    caption.map_or_else(String::new, |text| format!("<h3>{}</h3>\n", escape(text)))
}

/// True if a table has sentences and no drawings, so that its cells can be stacked.
fn is_of_words(table: &Table) -> bool {
    let has_sentences = |column: &Column| matches!(column.alignment, Alignment::Wrapped(_));
    table.columns.iter().any(has_sentences) && table.columns.iter().all(|column| column.axis.is_none())
}

fn row(row: &Row, columns: &[Column], is_of_words: bool) -> String {
    let kind = match row.kind {
        RowKind::Plain => "",
        RowKind::Quiet => "quiet",
        RowKind::Total => "total",
    };
    let cells = row.cells.iter().zip(columns).map(|(cell, column)| {
        let bar = if cell.share.is_some() { "bar" } else { "" };
        let class = class(&[alignment(column), tone(cell), bar]);
        let content = match &column.axis {
            Some(axis) => drawing::drawing(cell.drawing, Some(axis)),
            // A path has no blank at which a narrow column could break it.
            None if matches!(column.alignment, Alignment::Wrapped(_)) => with_breaks(&indented(&cell.text)),
            None => indented(&cell.text),
        };
        let title = || column.title.lines().collect::<Vec<_>>().join(" ");
        let label = if is_of_words { format!(" data-label=\"{}\"", escape(&title())) } else { String::new() };
        format!("<td{class}{label}{}>{content}</td>", share(cell))
    });
    format!("<tr{}>{}</tr>\n", class(&[kind]), cells.collect::<String>())
}

/// Renders a text whose leading blanks are an indentation, which a browser would drop.
fn indented(text: &str) -> String {
    let content = text.trim_start_matches(' ');
    "&nbsp;".repeat(text.len() - content.len()) + &escape(content)
}

fn share(cell: &Cell) -> String {
    cell.share.map_or_else(String::new, |share| format!(" style=\"--share:{:.1}%\"", share * 100.0))
}

fn alignment(column: &Column) -> &'static str {
    match column.alignment {
        Alignment::Text => "",
        Alignment::Wrapped(_) => "wrapped",
        Alignment::Number => "number",
        Alignment::Drawn(_) => "drawn",
    }
}

fn tone(cell: &Cell) -> &'static str {
    match cell.tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Open => "open",
    }
}

fn class(names: &[&str]) -> String {
    let names = names.iter().copied().filter(|name| !name.is_empty()).collect::<Vec<_>>();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}
