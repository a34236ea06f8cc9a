//! The sort: work areas, runs, merges and the reasons for them.

use plumb_events::SortServerSummary;
use plumb_record::{Record, Sort, SortBuild};
use plumb_report::format::{Count, Figure, Percent, Seconds, Size};
use plumb_report::table::{Cell, Facts, RowKind, Table};
use plumb_report::{Section, cells, table};
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
    let sum = |of: fn(&SortBuild) -> u64| total_of(sorters.iter().map(of));
    let mut table = table!(sorter in sorters; [
        text "Index" => &sorter.index,
        numbers "Elapsed\n(s)" => Seconds(sorter.elapsed_ns),
        numbers "Servers" => Count(sorter.servers),
        numbers "Memory\ngot" => Size(sorter.area_bytes),
        numbers "Rows" => Count(sorter.rows),
        numbers "Runs" => Count(sorter.runs),
        numbers "All runs\nwritten" => Size(sorter.run_bytes),
        numbers "Merge\npasses" => Count(sorter.merge_passes),
        numbers "Merge\nwidth" => Count(sorter.merge_width),
        numbers "Intermediate\nmerges" => Count(sorter.intermediate_merges),
    ])
    .with_caption("Builds at the same time");
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
    table!([
        numbers "Optimal" => Count(sort.optimal),
        numbers "One-pass" => Count(sort.one_pass),
        numbers "Multi-pass" => Count(sort.multi_pass),
        numbers "Rows" => Count(sort.rows),
        numbers "Runs" => Count(sort.runs),
        numbers "First runs" => Size(sort.run_bytes),
        numbers "Merge\npasses" => Count(sort.merge_passes),
        numbers "Merge\nwidth" => Count(sort.merge_width),
        numbers "Intermediate\nmerges" => Count(sort.intermediate_merges),
    ])
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
    let rows = total_of(servers.iter().map(|server| server.row_count));
    table!(server in servers; {
        let share = Percent::of(server.row_count, rows);
    } [
        text "Server" => &server.name,
        numbers "Sort area" => Size(server.area.0),
        numbers "Rows" => Count(server.row_count),
        numbers "% of\nrows" => Cell::from(share.figure()).with_share(share.share()),
        numbers "Runs" => Count(server.run_count),
        numbers "All runs\nwritten" => Size(server.run_bytes),
        numbers "Merge\npasses" => Count(server.merge_passes),
        numbers "Merge\nwidth" => Count(server.merge_width),
    ])
    .with_caption("Sort servers")
}
