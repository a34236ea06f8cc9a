//! The page of an audit: a line for each claim, then each claim with its reasons, the worst first.

use crate::tone_of_standing;
use plumb_audit::{Audit, ReasonKind};
use plumb_proof::verdict::Standing;
use plumb_report::format::Count;
use plumb_report::table::{Cell, Facts, Table};
use plumb_report::{Document, ReportAnswer, Section, State, Summary, cells, text};

/// Width of a column of sentences.
const SENTENCE: usize = 72;

/// Returns the page of some audits.
pub fn document(audits: &[Audit]) -> Document {
    let count = audits.len();
    let subject = match audits {
        [audit] => format!("Claim: {}", audit.name),
        _ => format!("{count} claims"),
    };
    let standing = worst(audits);
    let standings = audits.iter().map(|audit| audit.standing);
    let state = State { of: "Claims".to_string(), word: counts(standings), tone: tone_of_standing(standing) };
    Document {
        title: format!("PLUMB AUDIT  {subject}"),
        answer: ReportAnswer::default(),
        question: String::new(),
        running_head: subject,
        width: text::WIDTH,
        state,
        basis: String::new(),
        reasons: Vec::new(),
        headline: Vec::new(),
        sections: vec![overview(audits), reasons(audits)],
        summary: Summary::default(),
        footer: "A claim that is not stated in full is NOT PROVED, and not false. The audits are embedded in this \
                 file as JSON."
            .to_string(),
        data: serde_json::to_string(audits).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns the standing of the worst audit; `None` without audits.
pub fn worst(audits: &[Audit]) -> Option<Standing> {
    audits.iter().map(|audit| audit.standing).min()
}

/// Counts claims by standing: `2 IMPOSSIBLE, 1 NOT PROVED`.
fn counts(standings: impl Iterator<Item = Standing>) -> String {
    let mut found: Vec<(Standing, usize)> = Vec::new();
    for standing in standings {
        match found.iter_mut().find(|(known, _)| *known == standing) {
            Some((_, count)) => *count += 1,
            None => found.push((standing, 1)),
        }
    }
    found.sort();
    let shown = found.iter().map(|(standing, count)| format!("{count} {}", standing.word()));
    shown.collect::<Vec<_>>().join(", ")
}

fn overview(audits: &[Audit]) -> Section {
    let mut table = Table::new(Vec::new()).text(["Claim", "Verdict"]).numbers([
        "Contra-\ndictions",
        "Flaws",
        "Not\nstated",
        "Critic's\nslips",
    ]);
    for audit in audits {
        let count = |kind| Count(audit.of(kind).count() as u64);
        table.row(cells![
            &audit.name,
            Cell::from(&audit.verdict).with_tone(tone_of_standing(Some(audit.standing))),
            count(ReasonKind::Contradiction),
            count(ReasonKind::Flaw),
            count(ReasonKind::NotStated),
            count(ReasonKind::Slip),
        ]);
    }
    Section::front("claims", "Claims")
        .note("a contradiction is one in every reading of the units, by the roundings of the printed figures")
        .table(table)
}

fn reasons(audits: &[Audit]) -> Section {
    let section = Section::front("reasons", "Reasons")
        .note("a flaw, or what is not stated, proves nothing against a claim: it leaves the claim open")
        .note("a slip is one of a critic's figures, and leaves the claim as it was");
    audits.iter().fold(section, |section, audit| section.facts(facts(audit)).table(of_claim(audit)))
}

fn facts(audit: &Audit) -> Facts {
    let source = &audit.source;
    let mut facts = Facts { caption: Some(audit.name.clone()), rows: Vec::new() };
    let verdict = Cell::from(&audit.verdict).with_tone(tone_of_standing(Some(audit.standing)));
    facts.add("Verdict", verdict);
    facts.add("Claim", &audit.statement);
    facts.add("Source", format!("{}, {} ({})", source.title, source.author, source.date));
    facts.add("Place", &source.place);
    facts.add("Experiment", audit.experiment.clone().unwrap_or_default());
    facts
}

/// Returns a table of a claim's reasons, with one row for all facts that it does not state.
fn of_claim(audit: &Audit) -> Table {
    let mut table =
        Table::new(Vec::new()).text(["Speaks of", "Rule"]).wrapped("Reason", SENTENCE).text(["Origin"]);
    let stated = audit.reasons.iter().filter(|reason| reason.kind != ReasonKind::NotStated);
    let (before, after): (Vec<_>, Vec<_>) = stated.partition(|reason| reason.kind < ReasonKind::NotStated);
    let row =
        |reason: &plumb_audit::Reason| cells![reason.kind.word(), &reason.rule, &reason.text, &reason.origin];
    before.into_iter().for_each(|reason| table.row(row(reason)));
    let open: Vec<&str> = audit.of(ReasonKind::NotStated).map(|reason| reason.text.as_str()).collect();
    if !open.is_empty() {
        table.row(cells![ReasonKind::NotStated.word(), "checklist", open.join("; "), ""]);
    }
    after.into_iter().for_each(|reason| table.row(row(reason)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_audit::{Backing, audit, catalog};

    fn audits(names: &[&str]) -> Vec<Audit> {
        let of = |name: &&str| {
            let claim = catalog::find(name).expect("a claim").expect("it reads");
            audit(&claim, &Backing::None)
        };
        names.iter().map(of).collect()
    }

    #[test]
    fn the_page_has_a_line_a_claim_and_all_reasons() {
        let document = document(&audits(&["slow-reads", "block-size"]));
        let page = text::render(&document);
        let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn text_of_a_claim_is_escaped_in_the_page() {
        let mut audits = audits(&["slow-reads"]);
        audits[0].statement = "<script>alert(1)</script>".to_string();
        let page = plumb_report::html::render(&document(&audits));
        assert!(!page.contains("<script>alert"), "it is text");
    }
}
