//! Rules that hold for the pages of every kind of document, for their tests.

use crate::tests::browser;
use plumb_report::{Document, summary, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks that text and summary keep within terminals of these widths.
pub(crate) fn keeps_within_a_terminal(document: &Document) {
    for width in [60, 80, 100] {
        let (report, few) = (text::render_in(document, width), summary::render_in(document, width));
        for line in report.lines().chain(few.lines()) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

/// Checks the lines of a text that no terminal wraps.
pub(crate) fn keeps_within_its_columns(document: &Document) {
    for line in text::render(document).lines() {
        assert!(line.chars().count() <= document.width, "too long: {line}");
        assert_eq!(line.trim_end(), line, "trailing blanks");
    }
}

/// Checks that a page makes no request, and that no name of the document became markup.
pub(crate) fn loads_nothing(page: &str) {
    for breach in ["<script>fail", "<b>", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(breach), "{breach}");
    }
}

/// Returns the fields of a value, nested ones included, that a page of documentation does not name.
pub(crate) fn undocumented(value: &Value, documented: &str) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    names(value, &mut fields);
    fields.retain(|name| !documented.contains(&format!("`{name}`")));
    fields
}

fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.insert(name.clone());
            names(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

/// Notes the pixels by which the page is wider than the window, the number of tables without a
/// scrolling box, and the number of names at the start of a row that are narrower than their words.
const MEASURE: &str = "<script>document.documentElement.dataset.wide = \
    document.documentElement.scrollWidth - document.documentElement.clientWidth + '/' + \
    [...document.querySelectorAll('main table')]\
    .filter(it => !it.closest('.scroll, .u-legend')).length + '/' + \
    [...document.querySelectorAll('table:not(.words):not(.facts) td:first-child')]\
    .filter(it => it.textContent.length > 12 && it.clientWidth < 80).length\
    </script></body>";

/// Checks that a page fits a telephone and a screen: only tables scroll, and names stay readable.
pub(crate) fn scrolls_only_tables(name: &str, page: &str) {
    let Some(browser) = browser::browser() else { return };
    let page = page.replace("</body>", MEASURE);
    for width in [500, 1200] {
        let dom = browser::dom_in(&browser, width, name, &page);
        let found = dom.split("data-wide=\"").nth(1).and_then(|rest| rest.split('"').next());
        let what = "pixels too wide / tables without a box / names narrower than their words";
        assert_eq!(found, Some("0/0/0"), "{name} at {width} px: {what}");
    }
}
