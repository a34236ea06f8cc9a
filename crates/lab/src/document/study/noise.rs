//! What the machine could have resolved, and whether the order of runs mattered.

use crate::analysis::result::{Analysis, NoiseFloor, OrderShift, OrderTest};
use plumb_report::Section;
use plumb_report::format::{Change, Count, Ends, Figure, Probability, Share};
use plumb_report::table::{Cell, Column, Facts, Table, Tone};

/// From this p on a test of order speaks.
const SPEAKS_P: f64 = 0.01;

/// The noise floor.
pub(super) fn floor(study: &Analysis) -> Section {
    let section = Section::front("floor", "Noise Floor");
    let Some(floor) = &study.floor else {
        return section.note("not measured: it takes two blocks in which both runs of the reference count");
    };
    section
        .note("the reference arm ran twice in every block: whatever these pairs differ by is noise")
        .facts(noise(floor))
}

fn noise(floor: &NoiseFloor) -> Facts {
    let mut facts = Facts::default();
    // The SD of a logarithm, as the change that one deviation upwards is.
    let spread = |deviation: f64| Share(deviation.exp() - 1.0).figure();
    facts.add(
        "Smallest effect",
        format!("{} is found by these blocks with 80% power", Share(floor.smallest_effect).figure()),
    );
    facts.add(
        "Spread of pairs",
        format!(
            "{} (robust {}) over {} pairs",
            spread(floor.deviation),
            spread(floor.robust_deviation),
            Count(floor.blocks).figure()
        ),
    );
    let aa = floor.aa.map(|effect| {
        let ends = Ends { low: effect.low, high: effect.high }.figure();
        let p = floor.aa_p.map(|p| format!(", p = {}", Probability(p).figure())).unwrap_or_default();
        format!("{} {ends}{p}: an effect known to be none", Change(effect.ratio).figure())
    });
    facts.add("Second run to first", aa.unwrap_or_default());
    let (within, between) = (floor.within, floor.between);
    if within + between > 0.0 {
        let saved = Share(between / (within + between)).figure();
        facts.add(
            "Variance",
            format!("{saved} of it lies between blocks and is removed by comparing within them"),
        );
    }
    facts
}

/// Tests of the order of execution, and changes within arms.
pub(super) fn order(study: &Analysis) -> Section {
    let section = Section::front("order", "Order of Execution");
    let mut section = match &study.order {
        None => section.note("not tested: too few blocks"),
        Some(order) => section
            .note("p of \"this does not matter\", against orders drawn anew; 0.01 and less speaks; random order balances position and drift, not carry-over")
            .table(tests(order))
            .table(shifts(order)),
    };
    if study.changes.is_empty() {
        return match study.changes_need_blocks {
            needed if study.design.blocks_used < needed => section.note(format!(
                "changes of level within an arm: not tested, they take {needed} blocks to show"
            )),
            _ => section.note("no arm changes its level during the study"),
        };
    }
    let mut table = Table::new(vec![
        Column::wrapped("Arm", 40),
        Column::text("Found in"),
        Column::number("From block"),
        Column::number("Change"),
        Column::number("p"),
    ])
    .with_caption("Changes of level");
    for change in &study.changes {
        table.row(vec![
            Cell::from(&change.arm),
            Cell::from(&change.series),
            Cell::of(Count(change.block)),
            Cell::of(Change(change.ratio)).with_tone(Tone::Bad),
            Cell::of(Probability(change.p)),
        ]);
    }
    section = section.table(table);
    section
}

fn tests(order: &OrderTest) -> Table {
    let mut table = Table::new(vec![
        Column::text("Does it matter ..."),
        Column::number("p"),
        Column::number("Size"),
        Column::text(""),
    ]);
    let rows = [
        ("at which position of its block a run stands", order.position_p, Change(spread(&order.positions))),
        ("which run came before (carry-over)", order.carry_over_p, Change(spread(&order.predecessors))),
        ("how late in the study a block ran (drift, a block)", order.drift_p, Change(order.drift_per_block)),
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

/// The largest ratio between two groups.
fn spread(groups: &[OrderShift]) -> f64 {
    let ratios = || groups.iter().map(|group| group.ratio);
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    if groups.is_empty() || least <= 0.0 { 1.0 } else { most / least }
}

/// The groups' shifts, positions beside predecessors.
fn shifts(order: &OrderTest) -> Table {
    let mut table = Table::new(vec![
        Column::text("Position"),
        Column::number("Shift"),
        Column::wrapped("After", 48),
        Column::number("Shift"),
    ])
    .with_caption("Runs against what their arm and block let expect");
    let cells = |group: Option<&OrderShift>| match group {
        Some(group) => [Cell::from(&group.name), Cell::from(Change(group.ratio).coarse())],
        None => [Cell::default(), Cell::default()],
    };
    for index in 0..order.positions.len().max(order.predecessors.len()) {
        let mut row = cells(order.positions.get(index)).to_vec();
        row.extend(cells(order.predecessors.get(index)));
        table.row(row);
    }
    table
}
