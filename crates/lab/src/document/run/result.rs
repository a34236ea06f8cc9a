//! Whether to believe the run: checks, receipts, and what the figures mean.

use crate::record::Record;
use crate::record::{Finding, Held};
use plumb_report::Section;
use plumb_report::format::Seconds;
use plumb_report::table::{Cell, Table, Tone};

/// What was verified about the result.
pub(super) fn verification(context: &Record) -> Section {
    let mut table =
        Table::default().wrapped("Checked", 44).text(["Result"]).numbers(["Secs"]).wrapped("Found", 64);
    for check in &context.checks {
        let (word, tone) = if check.passed { ("passed", Tone::Good) } else { ("FAILED", Tone::Bad) };
        table.row(vec![
            Cell::from(&check.name),
            Cell::from(word).with_tone(tone),
            Cell::of(Seconds(check.elapsed_ns)),
            Cell::from(&check.detail),
        ]);
    }
    Section::front("verification", "Verification").table(table)
}

/// Whether each setting took effect.
pub(super) fn receipts(context: &Record) -> Section {
    let mut table =
        Table::default().text(["Setting"]).wrapped("Asked", 16).text(["Receipt"]).wrapped("Evidence", 66);
    for receipt in &context.receipts {
        let (word, tone) = match receipt.held {
            Held::Held => ("held", Tone::Good),
            Held::Contradicted => ("CONTRADICTED", Tone::Bad),
            Held::NotChecked => ("not checked", Tone::Open),
        };
        table.row(vec![
            Cell::from(&receipt.setting),
            Cell::from(&receipt.asked),
            Cell::from(word).with_tone(tone),
            Cell::from(&receipt.evidence),
        ]);
    }
    Section::front("receipts", "Receipts")
        .note("evidence from outside the code that applied the setting")
        .table(table)
}

/// What the figures mean.
pub(super) fn findings(context: &Record) -> Option<Section> {
    if context.findings.is_empty() {
        return None;
    }
    Some(Section::front("findings", "Findings").table(findings_table(&context.findings, [38, 44, 42])))
}

/// Findings with their evidence and advice, these columns so wide.
pub(crate) fn findings_table(findings: &[Finding], widths: [usize; 3]) -> Table {
    let mut table = Table::default()
        .numbers(["#"])
        .wrapped("Finding", widths[0])
        .wrapped("Evidence", widths[1])
        .wrapped("Advice", widths[2]);
    for (index, finding) in findings.iter().enumerate() {
        table.row(vec![
            Cell::from((index + 1).to_string()),
            Cell::from(&finding.what),
            Cell::from(&finding.evidence),
            Cell::from(&finding.advice),
        ]);
    }
    table
}
