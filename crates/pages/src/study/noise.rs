//! Resolution of the study, and tests of the order of runs.

use plumb_proof::order::{Group, OrderReport};
use plumb_report::Section;
use plumb_report::format::{Change, Count, Ends, Figure, Probability, Share};
use plumb_report::table::{Cell, Facts, Table, Tone};
use plumb_study::analysis::result::{Analysis, NoiseFloor, StudyState};

/// Largest p that a test of order reports as significant.
const SPEAKS_P: f64 = 0.01;
/// Text for a study that may continue: each look at its figures would spend error.
const NOT_BEFORE_THE_END: &str = "not told before the study's end";

pub(super) fn floor(analysis: &Analysis) -> Section {
    let section = Section::front("floor", "Noise Floor");
    if analysis.state == StudyState::Interrupted {
        return section.note(NOT_BEFORE_THE_END);
    }
    let Some(floor) = &analysis.floor else {
        return section.note("not measured: it takes two blocks in which both runs of the reference count");
    };
    section
        .note("the reference arm ran twice in every block: whatever these pairs differ by is noise")
        .facts(noise(floor))
}

fn noise(found: &NoiseFloor) -> Facts {
    let floor = &found.floor;
    let mut facts = Facts::default();
    // The SD of a logarithm, as the change of one deviation upwards.
    let spread = |deviation: f64| Share(deviation.exp() - 1.0).figure();
    facts.add(
        "Spread of pairs",
        format!(
            "{} (robust {}) over {} pairs",
            spread(floor.deviation),
            spread(floor.robust_deviation),
            Count(floor.blocks as u64).figure()
        ),
    );
    let aa = found.aa.map(|effect| {
        let ends = Ends { low: effect.low, high: effect.high }.figure();
        let p = found.aa_p.map(|p| format!(", p = {}", Probability(p).figure())).unwrap_or_default();
        format!("{} {ends}{p}: an effect known to be none", Change(effect.ratio).figure())
    });
    facts.add("Second run to first", aa.unwrap_or_default());
    let (within, between) = (floor.within, floor.between);
    if within + between > 0.0 {
        let saved = match floor.removed {
            Some([low, high]) if low > 0.0 => {
                let ends = format!("[{:.0}, {:.0}]", 100.0 * low, 100.0 * high);
                let share = Share(between / (within + between)).figure();
                format!("comparing within blocks removes {share} {ends} of the variance (95% interval)")
            }
            _ => "unknown if comparing within blocks removes any of it".to_string(),
        };
        facts.add(
            "Variance",
            format!(
                "runs of a block spread by {}, blocks by {}: {saved}",
                spread(within.sqrt()),
                spread(between.sqrt())
            ),
        );
    }
    facts
}

/// Shows tests of the order of execution, and changes within arms.
pub(super) fn order(analysis: &Analysis) -> Section {
    let section = Section::front("order", "Order of Execution");
    if analysis.state == StudyState::Interrupted {
        return section.note(NOT_BEFORE_THE_END);
    }
    let mut section = match &analysis.order {
        None => section.note("not tested: too few blocks"),
        Some(order) => section
            .note("p of \"this does not matter\", against orders drawn anew; 0.01 and less speaks; random order balances position and drift, not carry-over")
            .table(tests(order))
            .table(shifts(analysis, order)),
    };
    let (used, needed) = (analysis.design.blocks_used, analysis.canary_needs_blocks);
    if !analysis.canary.is_empty() && used < needed {
        section = section.note(format!(
            "a step of the canary, after which it is another machine: not tested, it takes {needed} blocks to show"
        ));
    }
    if analysis.changes.is_empty() {
        return match analysis.changes_need_blocks {
            needed if analysis.design.blocks_used < needed => section.note(format!(
                "changes of level within an arm: not tested, they take {needed} blocks to show"
            )),
            _ => section.note("no arm changes its level during the study"),
        };
    }
    let mut table = Table::default()
        .wrapped("Arm", 40)
        .text(["Found in"])
        .numbers(["From block", "Change", "p"])
        .with_caption("Changes of level");
    for change in &analysis.changes {
        table.row(vec![
            Cell::from(&change.arm),
            Cell::from(&change.series),
            Cell::from(change.block.map_or("steadily".to_string(), |block| Count(block).figure())),
            Cell::of(Change(change.ratio)).with_tone(Tone::Bad),
            Cell::of(Probability(change.p)),
        ]);
    }
    section = section.table(table);
    section
}

fn tests(order: &OrderReport) -> Table {
    let mut table = Table::default().text(["Does it matter ..."]).numbers(["p", "Size"]).text([""]);
    let rows = [
        ("at which position of its block a run stands", order.position_p, Change(spread(&order.positions))),
        ("which run came before (carry-over)", order.carry_over_p, Change(spread(&order.predecessors))),
        (
            "how late in the study a block ran (drift, a block)",
            order.drift_p,
            Change(order.drift_per_block.exp()),
        ),
    ];
    for (name, p, size) in rows {
        let (word, tone) =
            if p <= SPEAKS_P { ("it does", Tone::Open) } else { ("no sign of it", Tone::Good) };
        table.row(vec![
            Cell::from(name),
            Cell::of(Probability(p)),
            Cell::of(size),
            Cell::from(word).with_tone(tone),
        ]);
    }
    table
}

/// Distance of the groups: the largest ratio over the smallest.
fn spread(groups: &[Group]) -> f64 {
    let ratios = || groups.iter().map(|group| group.shift.exp());
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    if groups.is_empty() || least <= 0.0 { 1.0 } else { most / least }
}

fn shifts(analysis: &Analysis, order: &OrderReport) -> Table {
    let mut table = Table::default()
        .text(["Position"])
        .numbers(["Shift"])
        .wrapped("After", 48)
        .numbers(["Shift"])
        .with_caption("Runs against what their arm and block let expect");
    let cells = |group: Option<&Group>, name: fn(&Analysis, usize) -> String| match group {
        Some(group) => {
            [Cell::from(name(analysis, group.index)), Cell::from(Change(group.shift.exp()).coarse())]
        }
        None => [Cell::default(), Cell::default()],
    };
    for index in 0..order.positions.len().max(order.predecessors.len()) {
        let mut row = cells(order.positions.get(index), |_, index| (index + 1).to_string()).to_vec();
        row.extend(cells(order.predecessors.get(index), Analysis::slot_name));
        table.row(row);
    }
    table
}
