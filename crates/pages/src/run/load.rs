//! Memory, load and the host's CPU: the first page of an AWR report.

use plumb_record::{HostCpu, LoadRow, Record};
use plumb_report::format::{Average, Count, Figure, PerSecond, Percent, Seconds, Size, Total, grouped};
use plumb_report::table::{Cell, RowKind, Table, Tone};
use plumb_report::{Section, cells};
use plumb_units::total_of;

/// Compares declared memory with used memory.
pub(super) fn cache_sizes(record: &Record) -> Section {
    let memory = &record.memory;
    let mut table = Table::default().text(["Area"]).numbers(["Size"]);
    for area in &memory.areas {
        table.row(cells![&area.name, Size(area.bytes)]);
    }
    if !memory.areas.is_empty() {
        let declared = Cell::of(Size(memory.declared_bytes()));
        table.push(RowKind::Total, cells!["Declared", declared]);
    }
    if let Some(overhead) = memory.overhead_bytes {
        table.row(cells!["Stated overhead", Size(overhead)]);
    }
    if let Some(peak) = memory.peak_rss_bytes {
        let budget = memory.budget_bytes();
        let tone = if peak > budget { Tone::Bad } else { Tone::Good };
        table.row(cells!["Peak resident set", Cell::of(Size(peak)).with_tone(tone)]);
        let section = Section::front("memory", "Cache Sizes");
        return section.note(peak_against_budget(peak, budget)).table(table);
    }
    Section::front("memory", "Cache Sizes").table(table)
}

fn peak_against_budget(peak: u64, budget: u64) -> String {
    let share = Percent::of(peak, budget).figure();
    let verdict = if peak > budget { "MORE than was stated" } else { "within what was stated" };
    if share.is_empty() {
        return "no memory was declared".to_string();
    }
    format!("the peak resident set is {share}% of declared memory and overhead: {verdict}")
}

/// Shows totals and figures per second.
pub(super) fn load_profile(record: &Record) -> Section {
    let transactions = record.transactions();
    let mut table = Table::default().text(["Load"]).numbers(["Total", "Per Second"]);
    if transactions.is_some() {
        table = table.numbers(["Per Transaction"]);
    }
    for row in &record.load_profile {
        let per_second = PerSecond { total: row.total, elapsed_ns: record.header.elapsed_ns };
        let total =
            if row.is_count { Cell::of(Count(row.total.round() as u64)) } else { Cell::of(Total(row.total)) };
        let mut cells = cells![&row.name, total, Total(per_second.rate())];
        cells.extend(transactions.map(|count| each(row, count)));
        table.row(cells);
    }
    Section::front("load-profile", "Load Profile").table(table)
}

/// Shows the amount of a transaction. Times are fractions of a second, so their unit follows from
/// their size.
fn each(row: &LoadRow, transactions: u64) -> Cell {
    let is_time = row.name.ends_with("(s)") && row.total > 0.0;
    match is_time {
        true => Cell::of(Average { total_ns: (row.total * 1e9) as u64, count: transactions }),
        false => Cell::of(Total(row.total / transactions as f64)),
    }
}

/// Shows CPU time of the whole host.
pub(super) fn host_cpu(record: &Record) -> Option<Section> {
    let cpu = record.host_cpu.as_ref()?;
    let parts = parts(cpu);
    let total = total_of(parts.iter().map(|(_, ns)| *ns));
    let mut table = Table::default().text(["State"]).numbers(["Time (s)", "% of CPU"]);
    for (name, ns) in parts {
        let share = Percent::of(ns, total);
        let part = Cell::of(share).with_share(share.share());
        table.row(cells![name, Seconds(ns), part]);
    }
    let cpus = record.header.host.cpus.map_or("unknown".to_string(), |cpus| cpus.to_string());
    let load = |load: Option<f64>| load.map_or("unknown".to_string(), |load| grouped(load, 2));
    Some(
        Section::front("host-cpu", format!("Host CPU (CPUs: {cpus})"))
            .note(format!(
                "load average at the start {}, at the end {}",
                load(cpu.load_begin),
                load(cpu.load_end)
            ))
            .table(table),
    )
}

fn parts(cpu: &HostCpu) -> [(&'static str, u64); 5] {
    [
        ("User", cpu.user_ns),
        ("System", cpu.system_ns),
        ("I/O wait", cpu.iowait_ns),
        ("Steal", cpu.steal_ns),
        ("Idle", cpu.idle_ns),
    ]
}
