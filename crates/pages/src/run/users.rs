//! Users that read while the work ran: what they did before, during and after it, and what each
//! side waited for during it.

use plumb_record::{Record, SessionsTime, Users, UsersPart, WaitEvent};
use plumb_report::format::{Average, Count, Decimal, Duration, Figure, Percent, Seconds, Size};
use plumb_report::table::{Cell, Facts, RowKind, Table};
use plumb_report::{Section, cells, table};
use plumb_units::Nanos;
use std::cmp::Reverse;

/// Name of CPU among the events.
const DB_CPU: &str = super::events::DB_CPU;
/// Fewest durations above a quantile for which it is shown.
const ABOVE_MIN: f64 = 5.0;

/// Shows the users; `None` for a run without any.
pub(super) fn users(record: &Record) -> Option<Section> {
    let users = record.users.as_ref()?;
    let section = Section::front("users", "Users during the Build")
        .note("during: while the index was built; before and after: users alone; Response Times has more quantiles")
        .note("blocks read: those that users found displaced; evicted: all blocks that lost their buffer to another one, but for")
        .note("those of sort runs and of scans, whether or not anyone asks for them again")
        .facts(facts(users))
        .table(parts(users))
        .table(pool(users));
    Some(match users.part("during") {
        Some(during) => section.table(waits(&during.time, &users.build)),
        None => section,
    })
}

fn facts(users: &Users) -> Facts {
    let mut facts = Facts::default();
    let arrive = match users.rate {
        0 => "each operation begins when the one before has ended".to_string(),
        rate => format!("{rate} operations arrive each second"),
    };
    facts.add("Sessions", format!("{}; {arrive}", users.sessions));
    let buffers = users.parts.first().map_or(0, |part| part.pool.buffers);
    let bytes = |blocks: u64| Size(blocks.saturating_mul(users.block_bytes)).figure();
    let share = Percent::of(users.hot_blocks, buffers).figure();
    facts.add(
        "Their blocks",
        format!(
            "{} ({}) of a table of {}: {share}% of the {} buffers",
            Count(users.hot_blocks).figure(),
            bytes(users.hot_blocks),
            bytes(users.table_blocks),
            Count(buffers).figure()
        ),
    );
    facts
}

/// Shows operations and hits of each part, and the part's rate of the one before the work.
fn parts(users: &Users) -> Table {
    let before = users.part("before").map_or(0.0, UsersPart::operations_per_s);
    table!(part in &users.parts; {
        let rate = part.operations_per_s();
        let share = Percent { part: rate, whole: before };
    } [
        text "Part" => &part.name,
        numbers "Elapsed\n(s)" => Seconds(part.elapsed_ns),
        numbers "Operations" => Count(part.latency.count()),
        numbers "Per\nsecond" => Decimal(rate),
        numbers "% of\nbefore" => Cell::of(share).with_share(share.share()),
        numbers "p50" => quantile(part, 0.5),
        numbers "p99" => quantile(part, 0.99),
        numbers "Max" => Duration(part.latency.max().0),
        numbers "Blocks\ngot" => Count(part.gets),
        numbers "Hit%" => Percent::of(part.hits, part.gets),
        numbers "Blocks\nread" => Count(part.reads),
        numbers "CPU\n(s)" => Seconds(part.time.cpu_ns),
    ])
    .with_caption("What the users did")
}

/// Returns a quantile of the response times, if enough of them are above it.
fn quantile(part: &UsersPart, share: f64) -> Option<Duration> {
    let above = part.latency.count() as f64 * (1.0 - share);
    let Nanos(ns) = part.latency.quantile(share);
    (above >= ABOVE_MIN).then_some(Duration(ns))
}

/// Shows the buffer cache in each part, for all sessions.
fn pool(users: &Users) -> Table {
    table!(UsersPart { name, pool, .. } in &users.parts; {
        let pool = pool.counts;
    } [
        text "Part" => name,
        numbers "Pool\nHit%" => Percent::of(pool.hits, pool.gets),
        numbers "Buffer\nGets" => Count(pool.gets),
        numbers "Physical\nReads" => Count(pool.reads),
        numbers "Physical\nWrites" => Count(pool.writes),
        numbers "Evicted" => Count(pool.evicted),
        numbers "Free Buff\nWait" => Count(pool.free_buffer_waits),
        numbers "Writ Comp\nWait" => Count(pool.write_complete_waits),
        numbers "Buffer Busy\nWaits" => Count(pool.buffer_busy_waits),
    ])
    .with_caption("Buffer Pool Statistics by part")
}

/// Shows CPU and waits of users and of the build apart, while both ran; the longest first.
fn waits(users: &SessionsTime, build: &SessionsTime) -> Table {
    let mut table = Table::default()
        .text(["Event"])
        .numbers([
            "Users:\nwaits",
            "Time\n(s)",
            "Avg\nwait",
            "% of\ntheirs",
            "Build:\nwaits",
            "Time\n(s)",
            "Avg\nwait",
            "% of\nits",
        ])
        .text(["Wait Class"])
        .with_caption("Waits of users and of the build, during the build");
    let sides = [users, build];
    let busy = sides.map(|side| side.events.iter().filter(|event| !event.is_idle()).collect::<Vec<_>>());
    let mut names: Vec<(&str, &str)> = Vec::new();
    for event in busy.iter().flatten() {
        if names.iter().all(|(name, _)| *name != event.event) {
            names.push((&event.event, &event.wait_class));
        }
    }
    let of = |side: usize, name: &str| busy[side].iter().find(|event| event.event == name).copied();
    let time = |name: &str| [0, 1].map(|side| of(side, name).map_or(0, |event| event.time_ns)).iter().sum();
    names.sort_by_key(|(name, _)| (Reverse::<u64>(time(name)), *name));
    let cells_of = |side: usize, event: Option<&WaitEvent>| match event {
        None => cells!["", "", "", ""],
        Some(event) => {
            let share = Percent::of(event.time_ns, sides[side].db_time_ns());
            cells![
                Count(event.waits),
                Seconds(event.time_ns),
                Average { total_ns: event.time_ns, count: event.waits },
                Cell::of(share).with_share(share.share())
            ]
        }
    };
    let cpu = |side: &SessionsTime| {
        let share = Percent::of(side.cpu_ns, side.db_time_ns());
        cells!["", Seconds(side.cpu_ns), "", Cell::of(share).with_share(share.share())]
    };
    let row = |first: &str, sides: [Vec<Cell>; 2], class: &str| {
        let [users, build] = sides;
        [vec![Cell::from(first)], users, build, vec![Cell::from(class)]].concat()
    };
    table.push(RowKind::Plain, row(DB_CPU, sides.map(cpu), ""));
    for (name, class) in names {
        table.push(RowKind::Plain, row(name, [0, 1].map(|side| cells_of(side, of(side, name))), class));
    }
    table
}
