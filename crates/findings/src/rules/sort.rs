//! Sorts, memory, and the servers of a run of this program.

use super::{OWN, at_most, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{RunFacts, Signals, SortFacts};
use plumb_units::{Bytes, Nanos, RowCount, total_of};

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "S1",
        rank: Rank::Saving,
        signal: "time to get the memory of sort areas, of CPU time",
        threshold: "from 5% on",
        origin: OWN,
        caveat: "of guests that give free memory back to a host",
        advice: "memory that is touched for the first time costs this: less sort memory costs less of it",
        judge: first_touch,
    },
    FindingRule {
        id: "S2",
        rank: Rank::Saving,
        signal: "merges before the last",
        threshold: "any",
        origin: "Tuning Large Sorts, 1996",
        caveat: "",
        advice: "sort fewer rows: no sort area that could be asked for merges these at once",
        judge: intermediate_merges,
    },
    FindingRule {
        id: "S3",
        rank: Rank::Remark,
        signal: "runs of a sort",
        threshold: "none",
        origin: OWN,
        caveat: "",
        advice: "to measure a disk sort, take more rows or a smaller sort_area_size",
        judge: fitted_in_memory,
    },
    FindingRule {
        id: "S4",
        rank: Rank::Remark,
        signal: "kernel worker threads of io_uring",
        threshold: "more than at the start",
        origin: OWN,
        caveat: "",
        advice: "these requests could not be issued without blocking (a full queue, buffered I/O): compare io_method=threads",
        judge: ring_workers,
    },
    FindingRule {
        id: "S5",
        rank: Rank::Remark,
        signal: "rows of the busiest sort server, of its share",
        threshold: "from 1.3 times on",
        origin: "Tuning Large Sorts, 1996, explanation 5",
        caveat: "",
        advice: "the key ranges come from a sample of the input, which missed it this time",
        judge: skew,
    },
    FindingRule {
        id: "S6",
        rank: Rank::Remark,
        signal: "peak memory, of that declared",
        threshold: "more",
        origin: OWN,
        caveat: "",
        advice: "plan the machine by the peak, not by the settings",
        judge: memory_exceeded,
    },
];

fn run(signals: &Signals) -> Option<&RunFacts> {
    signals.run.as_ref()
}

fn sort(signals: &Signals) -> Option<&SortFacts> {
    run(signals)?.sort.as_ref()
}

fn first_touch(signals: &Signals) -> Option<Observed> {
    let sort = sort(signals)?;
    let share = sort.mapping_ns as f64 / signals.db_cpu_ns?.max(1) as f64;
    (share >= 0.05).then(|| {
        let (mapped, time) = (Bytes(sort.mapped_bytes), Nanos(sort.mapping_ns));
        let evidence = format!(
            "sort areas of {mapped} took {time}, {} of the CPU time; {}",
            percent(share),
            at_most(signals, sort.mapping_ns)
        );
        Observed::new("The system was slow to supply the memory of the sort", evidence).saves(sort.mapping_ns)
    })
}

fn intermediate_merges(signals: &Signals) -> Option<Observed> {
    let sort = sort(signals).filter(|sort| sort.intermediate_merges > 0)?;
    let merges = match sort.intermediate_merges {
        1 => "1 merge".to_string(),
        merges => format!("{} merges", RowCount(merges)),
    };
    let temp = ["direct path read temp", "direct path write temp"];
    let temp = total_of(temp.into_iter().filter_map(|event| Some(signals.wait(event)?.time_ns)));
    // Of the passes over the rows, all but one are saved.
    let saves = temp - temp / sort.merge_passes.max(1);
    let evidence = format!(
        "{merges} before the last, runs merged at most {} at once; rows were read back up to {} times; temp I/O took {}: {}",
        sort.merge_width,
        sort.merge_passes,
        Nanos(temp),
        at_most(signals, saves)
    );
    let seen = Observed::new("The sort needed intermediate merges", evidence).saves(saves);
    Some(match &sort.one_pass_area {
        Some(area) => seen
            .advise(format!(
                "sort_area_size={area} would merge them at once, as the plan of merges works it out"
            ))
            .proved_by(signals.study(&format!("sort_area_size={},{area}", sort.area))),
        None => seen,
    })
}

fn fitted_in_memory(signals: &Signals) -> Option<Observed> {
    let sort = sort(signals).filter(|sort| sort.runs == 0 && sort.rows > 0)?;
    let evidence = match sort.servers {
        1 => format!("{} rows in a sort area of {}", RowCount(sort.rows), sort.area),
        servers => format!("{} rows in {servers} sort areas of {}", RowCount(sort.rows), sort.area),
    };
    Some(Observed::new("The sort fitted in memory: nothing went to the temporary tablespace", evidence))
}

fn ring_workers(signals: &Signals) -> Option<Observed> {
    let [begin, most] = run(signals)?.ring_workers;
    (most > begin).then(|| {
        Observed::new(
            "Some io_uring requests fell back to kernel worker threads",
            format!("{begin} io-wq workers at the start, at most {most} seen"),
        )
        .proved_by(signals.study("io_method=io_uring,threads"))
    })
}

fn skew(signals: &Signals) -> Option<Observed> {
    let sort = sort(signals)?;
    let ratio = sort.most_rows as f64 * sort.servers as f64 / sort.rows.max(1) as f64;
    (sort.servers >= 2 && ratio >= 1.3).then(|| {
        let seen = Observed::new(
            "The sort servers were not equally busy",
            format!("the busiest sorted {ratio:.1} times its share of the rows"),
        );
        match sort.by_key {
            true => seen,
            false => seen.advise(
                "servers take the next piece of the file as they finish one: look for what held one of them up",
            ),
        }
    })
}

fn memory_exceeded(signals: &Signals) -> Option<Observed> {
    let [peak, budget] = run(signals)?.memory_bytes?;
    (peak > budget).then(|| {
        let seen = Observed::new(
            "More memory was used than was declared",
            format!("the peak resident set is {}, declared with overhead {}", Bytes(peak), Bytes(budget)),
        );
        match signals.uses.sort {
            true => seen.advise(
                "plan the machine by the peak, not by the settings; a smaller sort_area_size or parallel_degree lowers both",
            ),
            false => seen,
        }
    })
}
