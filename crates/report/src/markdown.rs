//! A document as Markdown, for a comment in a code review or a page of a repository.
//!
//! It has the state, the headline figures and the sections of the first page. Later sections and
//! pictures are left out, because a reader of a comment follows a link to the whole report.

use crate::document::{Block, Document, Placement, Section};
use crate::table::{Alignment, Facts, Table};
use plumb_units::visible;

/// Renders the document, each line with a newline.
pub fn render(document: &Document) -> String {
    let Document { title, answer, question, state, basis, reasons, headline, footer, .. } = document;
    let mut text = format!("# {}\n\n", line(title));
    let said = answer.sentence();
    if !said.is_empty() {
        text.push_str(&format!("**{}**\n\n", line(&said)));
    }
    if !question.is_empty() {
        text.push_str(&format!("{}\n\n", line(question)));
    }
    text.push_str(&format!("**{}: {}** {}\n\n", line(&state.of), line(&state.word), line(basis)));
    for reason in reasons {
        text.push_str(&format!("- {}\n", line(reason)));
    }
    if !headline.is_empty() {
        text.push_str("| Figure | Value | |\n|---|---|---|\n");
        for figure in headline {
            text.push_str(&row([&figure.name, &figure.value, &figure.aside].map(String::as_str)));
        }
        text.push('\n');
    }
    let front = document.sections.iter().filter(|section| section.placement == Placement::Front);
    text.extend(front.map(of_section));
    text + &format!("{}\n", line(footer))
}

fn of_section(section: &Section) -> String {
    let blocks: String = section
        .blocks
        .iter()
        .map(|block| match block {
            Block::Table(table) => of_table(table),
            Block::Facts(facts) => of_facts(facts),
            _ => String::new(),
        })
        .collect();
    // A section of pictures alone has nothing to say here.
    if blocks.is_empty() { String::new() } else { format!("## {}\n\n{blocks}", line(&section.title)) }
}

/// Renders a table; drawn columns are left out, because their figures are in the others.
fn of_table(table: &Table) -> String {
    let drawn = |column: usize| matches!(table.columns[column].alignment, Alignment::Drawn(_));
    let kept: Vec<usize> = (0..table.columns.len()).filter(|column| !drawn(*column)).collect();
    let caption = table.caption.as_ref().map_or(String::new(), |caption| format!("{}\n\n", line(caption)));
    let titles: Vec<String> =
        kept.iter().map(|column| table.columns[*column].title.replace('\n', " ")).collect();
    let ruler = kept.iter().map(|column| match table.columns[*column].alignment {
        Alignment::Number => "---:|",
        _ => "---|",
    });
    let mut text =
        caption + &row(titles.iter().map(String::as_str)) + &format!("|{}\n", ruler.collect::<String>());
    for cells in &table.rows {
        text.push_str(&row(kept.iter().map(|column| cells.cells[*column].text.as_str())));
    }
    text + "\n"
}

fn of_facts(facts: &Facts) -> String {
    let shown = facts.rows.iter().map(|(name, cell)| format!("- {}: {}\n", line(name), line(&cell.text)));
    shown.collect::<String>() + "\n"
}

fn row<'c>(cells: impl IntoIterator<Item = &'c str>) -> String {
    let cells: String = cells.into_iter().map(|cell| format!(" {} |", line(cell))).collect();
    format!("|{cells}\n")
}

/// Escapes a text for a line and a cell of a table; control characters are replaced.
fn line(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let text = visible(&text);
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;

    #[test]
    fn marks_of_a_text_from_outside_stay_text() {
        assert_eq!(line("a|b <i> *x*\nnext"), "a\\|b \\<i\\> \\*x\\* next");
        let mut table = Table::default().text(["Name"]).numbers(["Reads\nper s"]);
        table.row(cells!["USERS|<b>", "7"]);
        assert_eq!(of_table(&table), "| Name | Reads per s |\n|---|---:|\n| USERS\\|\\<b\\> | 7 |\n\n");
    }
}
