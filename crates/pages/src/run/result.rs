//! Credibility of the run: checks, receipts, and findings.

use plumb_record::{Finding, Held, Record};
use plumb_report::format::Seconds;
use plumb_report::table::{Cell, Table, Tone};
use plumb_report::{Section, cells};

/// Shows the checks of the result.
pub(super) fn verification(record: &Record) -> Section {
    let mut table =
        Table::default().wrapped("Checked", 44).text(["Result"]).numbers(["Secs"]).wrapped("Found", 64);
    for check in &record.checks {
        let (word, tone) = if check.passed { ("passed", Tone::Good) } else { ("FAILED", Tone::Bad) };
        table.row(cells![
            &check.name,
            Cell::from(word).with_tone(tone),
            Seconds(check.elapsed_ns),
            &check.detail
        ]);
    }
    Section::front("verification", "Verification").table(table)
}

/// Shows if each setting took effect.
pub(super) fn receipts(record: &Record) -> Section {
    let mut table =
        Table::default().text(["Setting"]).wrapped("Asked", 16).text(["Receipt"]).wrapped("Evidence", 66);
    for receipt in &record.receipts {
        let (word, tone) = match receipt.held {
            Held::Held => ("held", Tone::Good),
            Held::Contradicted => ("CONTRADICTED", Tone::Bad),
            Held::NotChecked => ("not checked", Tone::Open),
        };
        table.row(cells![
            &receipt.setting,
            &receipt.asked,
            Cell::from(word).with_tone(tone),
            &receipt.evidence
        ]);
    }
    Section::front("receipts", "Receipts")
        .note("evidence from outside the code that applied the setting")
        .table(table)
}

pub(super) fn findings(record: &Record) -> Option<Section> {
    if record.findings.is_empty() {
        return None;
    }
    Some(Section::front("findings", "Findings").table(findings_table(&record.findings, [38, 44, 42])))
}

/// Builds a table of findings with evidence and advice, with these column widths.
pub(crate) fn findings_table(findings: &[Finding], widths: [usize; 3]) -> Table {
    let mut table = Table::default()
        .numbers(["#"])
        .wrapped("Finding", widths[0])
        .wrapped("Evidence", widths[1])
        .wrapped("Advice", widths[2]);
    for (index, finding) in findings.iter().enumerate() {
        table.row(cells![(index + 1).to_string(), &finding.what, &finding.evidence, &finding.advice]);
    }
    table
}
