//! PostgreSQL's own counts and times of its log next to those of a trace, and a checkpoint.
//!
//! ```text
//! pg_stat_wal      wal_write, wal_sync      calls of pwrite and fdatasync on files of pg_wal
//!                  ..._time / count         mean time of these calls
//! pg_stat_bgwriter buffers_checkpoint       8 KiB writes of the checkpointer
//! ```
//!
//! The server's name in the titles of its processes (`cluster_name`) selects them. The log file is
//! new and long enough, because the server fills a new one with zeros without counting that.

use super::{calls, mean_us, traced};
use plumb_events::Cancel;
use plumb_postgres::PostgresError;
use plumb_postgres::cluster::{Cluster, Creation};
use plumb_postgres::installation::Installation;
use plumb_postgres::session::ServerSession;
use plumb_record::{Snoop, SnoopCalls};
use plumb_snoop::SnoopTarget;
use std::path::Path;
use std::time::Duration;

/// Time in which all processes of the server publish their statistics.
const PUBLISHED: Duration = Duration::from_millis(2500);

/// Later versions count in other views.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=16;
const NO_SERVER: &str = "PostgreSQL: skipped: versions 14 to 16 count the writes of their log in pg_stat_wal";

fn server() -> Option<Installation> {
    Installation::all().into_iter().find(|installation| VERSIONS.contains(&installation.major))
}

/// One kind of calls by both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    what: &'static str,
    server: u64,
    /// Milliseconds of all calls; none if the server does not time them.
    server_ms: Option<f64>,
    traced: u64,
    traced_ns: u64,
}

pub(super) fn run(room: &Path, transactions: u64) -> anyhow::Result<()> {
    let Some(installation) = server() else {
        println!("{NO_SERVER}");
        return Ok(());
    };
    println!("{}, {transactions} commits of one row and a checkpoint\n", installation.describe());
    let (pairs, lost) = measure(room, &installation, transactions)?;
    println!("| calls | counted by the server | found | mean by the server | mean found | difference |");
    println!("|---|---|---|---|---|---|");
    for pair in pairs {
        let found = mean_us(pair.traced_ns, pair.traced);
        let of_server = pair.server_ms.map(|time| time * 1e3 / pair.server.max(1) as f64);
        let mean = of_server.map_or(String::new(), |mean| format!("{mean:.1} us"));
        let difference =
            of_server.map_or(String::new(), |mean| format!("{:+.1}%", (found / mean - 1.0) * 100.0));
        let Pair { what, server, traced, .. } = pair;
        println!("| {what} | {server} | {traced} | {mean} | {found:.1} us | {difference} |");
    }
    println!("| events lost | | {lost} | | | |");
    Ok(())
}

fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Returns the calls by both sides, and the number of events lost.
fn measure(room: &Path, installation: &Installation, transactions: u64) -> anyhow::Result<(Vec<Pair>, u64)> {
    let creation = Creation { checksums: None, segment_megabytes: None };
    let cluster = Cluster::create(room, "snoop", installation, &creation)?;
    let name = format!("plumb-snoop-{}", std::process::id());
    let settings = pairs(&[
        ("cluster_name", &name),
        ("track_wal_io_timing", "on"),
        ("autovacuum", "off"),
        ("wal_sync_method", "fdatasync"),
        // So that no other process than the session and the checkpointer writes blocks.
        ("bgwriter_lru_maxpages", "0"),
    ]);
    let borrowed = cluster.borrowed();
    let server = borrowed.start(&settings, &Cancel::default())?;
    let mut session = ServerSession::connect(&server, "plumb snoop")?;
    session
        .run("a table is made", "create table t (id bigint, v text); select pg_switch_wal(); checkpoint")?;
    let checkpointer: i32 = session.value(
        "the checkpointer is found",
        "select pid from pg_stat_activity where backend_type = 'checkpointer'",
    )?;
    let target = SnoopTarget::Name(name);
    let (snoop, counts) = traced(target, move || Ok(work(&mut session, transactions)?))?;
    let counts = counts?;
    server.stop()?;
    let data = cluster.data().display().to_string();
    Ok((compared(&snoop, &counts, &data, checkpointer as u32), snoop.lost()))
}

/// The server's own figures of its log and checkpoint.
#[derive(Debug, Clone, Copy)]
struct Counts {
    writes: i64,
    write_ms: f64,
    syncs: i64,
    sync_ms: f64,
    checkpoint_buffers: i64,
}

fn work(session: &mut ServerSession<'_>, transactions: u64) -> Result<Counts, PostgresError> {
    // Statistics of before are published first, then both start at 0.
    std::thread::sleep(PUBLISHED);
    session.flush_statistics()?;
    session
        .run("counts start at 0", "select pg_stat_reset_shared('wal'), pg_stat_reset_shared('bgwriter')")?;
    let insert = session.prepare("a row is written", "insert into t values ($1, repeat('x', 100))")?;
    for number in 0..transactions as i64 {
        session.execute("a row is written", &insert, &[&number])?;
    }
    session.run("a checkpoint is taken", "checkpoint")?;
    session.flush_statistics()?;
    std::thread::sleep(PUBLISHED);
    session.run("counts are read", "select pg_stat_clear_snapshot()")?;
    let rows = session.rows(
        "counts are read",
        "select wal_write, wal_write_time, wal_sync, wal_sync_time, \
         (select buffers_checkpoint from pg_stat_bgwriter) from pg_stat_wal",
        &[],
    )?;
    let row = &rows[0];
    Ok(Counts {
        writes: row.get(0),
        write_ms: row.get(1),
        syncs: row.get(2),
        sync_ms: row.get(3),
        checkpoint_buffers: row.get(4),
    })
}

fn compared(snoop: &Snoop, counts: &Counts, data: &str, checkpointer: u32) -> Vec<Pair> {
    let of_log = |row: &SnoopCalls| row.file.starts_with(&format!("{data}/pg_wal/"));
    let writes = calls(snoop, |row| of_log(row) && row.operation == "pwrite");
    let syncs = calls(snoop, |row| of_log(row) && row.operation == "fdatasync");
    let is_block = |row: &SnoopCalls| {
        let of_table = ["base", "global"].iter().any(|part| row.file.starts_with(&format!("{data}/{part}/")));
        row.pid == checkpointer && row.operation == "pwrite" && of_table
    };
    let blocks = calls(snoop, is_block);
    let pair = |what, server: i64, server_ms, found: SnoopCalls| Pair {
        what,
        server: server.unsigned_abs(),
        server_ms,
        traced: found.calls,
        traced_ns: found.time_ns,
    };
    vec![
        pair("writes of the log", counts.writes, Some(counts.write_ms), writes),
        pair("syncs of the log", counts.syncs, Some(counts.sync_ms), syncs),
        pair("blocks of the checkpoint", counts.checkpoint_buffers, None, blocks),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_snoop::SnoopError;

    /// True if this machine permits no trace, and need not.
    fn is_skipped(error: &anyhow::Error) -> bool {
        let refusal = error.downcast_ref::<SnoopError>().is_some_and(plumb_snoop::is_refusal);
        refusal && std::env::var_os("PLUMB_REQUIRE_TRACE").is_none()
    }

    #[test]
    fn writes_and_syncs_of_the_log_and_blocks_of_a_checkpoint_are_those_that_the_server_counts() {
        use std::os::unix::fs::PermissionsExt;
        let Some(installation) = server() else {
            assert!(std::env::var_os("PLUMB_REQUIRE_POSTGRES").is_none(), "{NO_SERVER}");
            return println!("{NO_SERVER}");
        };
        let place =
            tempfile::Builder::new().prefix("plumb-snoop-").tempdir_in("/var/tmp").expect("a directory");
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        let (pairs, lost) = match measure(place.path(), &installation, 200) {
            Ok(measured) => measured,
            Err(error) if is_skipped(&error) => return println!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(lost, 0);
        for Pair { what, server, traced, .. } in &pairs {
            assert_eq!(server, traced, "{what}: {pairs:?}");
        }
        assert!(pairs[0].server >= 200 && pairs[1].server >= 200 && pairs[2].server > 0, "{pairs:?}");
    }
}
