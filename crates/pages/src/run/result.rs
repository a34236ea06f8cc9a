//! Credibility of the run: checks, receipts, and findings.

use plumb_findings::reasons_of;
use plumb_record::{Finding, Held, Record};
use plumb_report::format::Seconds;
use plumb_report::table::{Cell, Table, Tone};
use plumb_report::{Section, cells, table};

/// Shows the checks of the result.
pub(super) fn verification(record: &Record) -> Section {
    let table = table!(check in &record.checks; {
        let (word, tone) = if check.passed { ("passed", Tone::Good) } else { ("FAILED", Tone::Bad) };
    } [
        wrapped(44) "Checked" => &check.name,
        text "Result" => Cell::from(word).with_tone(tone),
        numbers "Secs" => Seconds(check.elapsed_ns),
        wrapped(64) "Found" => &check.detail,
    ]);
    Section::front("verification", "Verification").table(table)
}

/// Shows if each setting took effect.
pub(super) fn receipts(record: &Record) -> Section {
    let table = table!(receipt in &record.receipts; {
        let (word, tone) = match receipt.held {
            Held::Held => ("held", Tone::Good),
            Held::Contradicted => ("CONTRADICTED", Tone::Bad),
            Held::NotChecked => ("not checked", Tone::Open),
        };
    } [
        text "Setting" => &receipt.setting,
        wrapped(16) "Asked" => &receipt.asked,
        text "Receipt" => Cell::from(word).with_tone(tone),
        wrapped(66) "Evidence" => &receipt.evidence,
    ]);
    Section::front("receipts", "Receipts")
        .note("evidence from outside the code that applied the setting")
        .table(table)
}

/// Returns the section of a record's findings; `None` without any.
pub fn findings(record: &Record) -> Option<Section> {
    if record.findings.is_empty() {
        return None;
    }
    let section = Section::front("findings", "Findings");
    let section = match record.findings.iter().any(|finding| finding.saves_ns.is_some()) {
        true => section.note(
            "ordered by the DB time that could be saved, after doubts about the figures; savings overlap, and what queues behind a wait goes with it",
        ),
        false => section,
    };
    let section = section.table(findings_table(&record.findings, [32, 44, 40]));
    let says_more = |finding: &Finding| {
        finding.saves_ns.is_some() || !finding.study.is_empty() || !finding.caveat.is_empty()
    };
    Some(match record.findings.iter().any(says_more) {
        true => section.table(proofs(&record.findings)),
        false => section,
    })
}

/// Lists the faster paths that the run did not take, with what would change it.
pub(super) fn paths_not_taken(record: &Record) -> Option<Section> {
    let mut table = Table::default().wrapped("Path", 30).wrapped("Not taken because", 36).wrapped("Seen", 40);
    table = table.wrapped("Would change it", 40);
    for (reason, seen) in reasons_of(record) {
        table.row(cells![reason.path, reason.reason, seen, reason.cure]);
    }
    let section = Section::detail("paths", "Faster Paths Not Taken")
        .note("reasons and no faults: a path that is not taken may be the treatment of an experiment");
    (!table.rows.is_empty()).then(|| section.table(table))
}

/// Lists the rule of each finding, what could be saved, and the study that would prove it.
fn proofs(findings: &[Finding]) -> Table {
    table!((index, finding) in findings.iter().enumerate().filter(|(_, finding)| !finding.rule.is_empty()); [
        numbers "#" => (index + 1).to_string(),
        text "Rule" => &finding.rule,
        numbers "Saves at\nmost (s)" => finding.saves_ns.map(Seconds),
        wrapped(50) "Proved by" => &finding.study,
        wrapped(44) "It may mislead" => &finding.caveat,
    ])
    .with_caption("What would prove them")
}

/// Builds a table of findings with evidence and advice, with these column widths.
pub(crate) fn findings_table(findings: &[Finding], widths: [usize; 3]) -> Table {
    table!((index, finding) in findings.iter().enumerate(); [
        numbers "#" => (index + 1).to_string(),
        wrapped(widths[0]) "Finding" => &finding.what,
        wrapped(widths[1]) "Evidence" => &finding.evidence,
        wrapped(widths[2]) "Advice" => &finding.advice,
    ])
}
