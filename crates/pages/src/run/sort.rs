//! The sort: work areas, runs, merges and the reasons for them.

use plumb_events::SortServerSummary;
use plumb_record::{Record, Sort, SortBuild};
use plumb_report::format::{Count, Figure, Percent, Seconds, Size};
use plumb_report::table::{Cell, Facts, RowKind, Table};
use plumb_report::{Section, cells};
use plumb_units::total_of;

/// Shows the sort; `None` if the workload has none.
pub(super) fn sort(record: &Record) -> Option<Section> {
    let sort = record.sort.as_ref()?;
    let section = Section::detail("sort", "SQL Work Area: Sort")
        .note("optimal: no spill; one-pass: spilled and merged once; multi-pass: merged again")
        .table(work_areas(sort))
        .facts(decisions(sort));
    let section = if sort.sorters.is_empty() { section } else { section.table(sorters(&sort.sorters)) };
    Some(if sort.servers.is_empty() { section } else { section.table(servers(&sort.servers)) })
}

/// Shows builds at the same time: what each got, and what it did.
fn sorters(sorters: &[SortBuild]) -> Table {
    let mut table = Table::default()
        .text(["Index"])
        .numbers([
            "Elapsed\n(s)",
            "Servers",
            "Memory\ngot",
            "Rows",
            "Runs",
            "All runs\nwritten",
            "Merge\npasses",
            "Merge\nwidth",
            "Intermediate\nmerges",
        ])
        .with_caption("Builds at the same time");
    let sum = |of: fn(&SortBuild) -> u64| total_of(sorters.iter().map(of));
    for sorter in sorters {
        table.row(cells![
            &sorter.index,
            Seconds(sorter.elapsed_ns),
            Count(sorter.servers),
            Size(sorter.area_bytes),
            Count(sorter.rows),
            Count(sorter.runs),
            Size(sorter.run_bytes),
            Count(sorter.merge_passes),
            Count(sorter.merge_width),
            Count(sorter.intermediate_merges)
        ]);
    }
    let all = cells![
        "all",
        "",
        Count(sum(|sorter| sorter.servers)),
        Size(sum(|sorter| sorter.area_bytes)),
        Count(sum(|sorter| sorter.rows)),
        Count(sum(|sorter| sorter.runs)),
        Size(sum(|sorter| sorter.run_bytes)),
        "",
        "",
        Count(sum(|sorter| sorter.intermediate_merges))
    ];
    table.push(RowKind::Total, all);
    table
}

fn work_areas(sort: &Sort) -> Table {
    let mut table = Table::default().numbers([
        "Optimal",
        "One-pass",
        "Multi-pass",
        "Rows",
        "Runs",
        "First runs",
        "Merge\npasses",
        "Merge\nwidth",
        "Intermediate\nmerges",
    ]);
    table.row(cells![
        Count(sort.optimal),
        Count(sort.one_pass),
        Count(sort.multi_pass),
        Count(sort.rows),
        Count(sort.runs),
        Size(sort.run_bytes),
        Count(sort.merge_passes),
        Count(sort.merge_width),
        Count(sort.intermediate_merges)
    ]);
    table
}

fn decisions(sort: &Sort) -> Facts {
    let mut facts = Facts::default();
    // 0 stands for a ratio that no merge depended on; its source says so.
    let read_fac = match sort.sort_read_fac {
        0 => sort.sort_read_fac_source.clone(),
        ratio => format!("{ratio}, {}", sort.sort_read_fac_source),
    };
    facts.add("sort_read_fac", read_fac);
    let resolved = format!(
        "{} asked, {} used: {}",
        sort.sort_direct_writes, sort.direct_writes_used, sort.direct_writes_reason
    );
    facts.add("sort_direct_writes", resolved);
    facts
}

fn servers(servers: &[SortServerSummary]) -> Table {
    let mut table = Table::default()
        .text(["Server"])
        .numbers([
            "Sort area",
            "Rows",
            "% of\nrows",
            "Runs",
            "All runs\nwritten",
            "Merge\npasses",
            "Merge\nwidth",
        ])
        .with_caption("Sort servers");
    let rows = total_of(servers.iter().map(|server| server.row_count));
    for server in servers {
        let share = Percent::of(server.row_count, rows);
        table.row(cells![
            &server.name,
            Size(server.area.0),
            Count(server.row_count),
            Cell::from(share.figure()).with_share(share.share()),
            Count(server.run_count),
            Size(server.run_bytes),
            Count(server.merge_passes),
            Count(server.merge_width)
        ]);
    }
    table
}
