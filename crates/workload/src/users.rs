//! Users that read while an index is built: SLOB's selects on a part of one table that is sized by
//! the buffer cache.
//!
//! Direct sort writes exist because the blocks of a sort would age out those that users need. So
//! the users' blocks are a share of the cache (`hot-pct`), and all of them fit: whatever is read
//! again during the build had been displaced. The table may be larger than that share, so that the
//! share, and the cache, can vary without another load.

use crate::slob::{Conflict, SLOB, SlobSpec};
use crate::specification::{LARGE_SORT, Work, blocks_of};
use plumb_units::{Bytes, Nanos};

/// The users of a run, with lengths in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsersSpec {
    /// The table, as it is loaded and verified.
    pub table: SlobSpec,
    /// Operations, on the first keys of the table. Keys are stored in a drawn order, so
    /// these blocks lie scattered over it.
    pub reads: SlobSpec,
    /// Share of the buffer cache that their blocks have, in hundredths.
    pub hot_pct: u64,
    /// Time without the build, before it and after it.
    pub alone: Nanos,
}

impl UsersSpec {
    /// Returns the bytes of the users' table, with blocks of `block_bytes`; `None` without users.
    pub fn table_bytes(work: &Work, block_bytes: u64) -> Option<u64> {
        let scale = work.value("scale").filter(|_| work.value("with") == Some(1))?;
        Some(blocks_of(scale, block_bytes).saturating_mul(block_bytes))
    }

    /// Returns the users of a large sort, if it has any, with blocks of `block_bytes` and a cache
    /// of `cache_bytes`.
    ///
    /// # Errors
    /// When two parameters contradict each other, or one contradicts the cache.
    pub fn of(work: &Work, block_bytes: u64, cache_bytes: u64) -> Result<Option<UsersSpec>, Conflict> {
        assert_eq!(work.workload, &LARGE_SORT, "only a large sort has users");
        let value = |name: &str| work.value(name).unwrap_or(0);
        if value("with") == 0 {
            return Ok(None);
        }
        let sessions = value("sessions");
        let table = SlobSpec {
            scale: blocks_of(value("scale"), block_bytes),
            schemas: 1,
            load_degree: 1,
            seed: work.seed(),
            sessions,
            threads_per_schema: sessions,
            update_pct: 0,
            scan_pct: 0,
            work_unit: value("work-unit"),
            rate: value("rate"),
            // Their end is that of the run.
            run_time: Nanos(u64::MAX / 2),
            ..SlobSpec::of(&Work::of(&SLOB), block_bytes)?
        };
        table.require_consistent()?;
        let hot_pct = value("hot-pct");
        let hot = cache_bytes / block_bytes * hot_pct / 100;
        let share = format!("hot-pct={hot_pct} of db_cache_size={}", Bytes(cache_bytes).as_setting());
        let conflict = |second: String, why: String| Err(Conflict { first: share.clone(), second, why });
        if hot > table.scale {
            return conflict(
                format!("scale={} blocks", table.scale),
                format!("the users read {hot} blocks; give a larger scale, or a smaller share"),
            );
        }
        if hot < 2 * table.work_unit + 1 {
            return conflict(
                format!("work-unit={}", table.work_unit),
                format!(
                    "{hot} blocks are fewer than two work units; give a larger share or cache, or a smaller work unit"
                ),
            );
        }
        if value("alone") == 0 {
            return Err(Conflict {
                first: "alone=0".to_string(),
                second: "with=slob".to_string(),
                why: "the build is compared with the time in which users read alone; give a time, as 3s"
                    .to_string(),
            });
        }
        let reads = SlobSpec { scale: hot, ..table.clone() };
        Ok(Some(UsersSpec { table, reads, hot_pct, alone: Nanos(value("alone")) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(given: &[(&str, &str)], cache: u64) -> Result<Option<UsersSpec>, String> {
        let mut work = Work::of(&LARGE_SORT);
        given.iter().for_each(|(name, value)| work.set(name, value).expect("in range"));
        UsersSpec::of(&work, 8192, cache)
            .map_err(|Conflict { first, second, why }| format!("{first} with {second}: {why}"))
    }

    #[test]
    fn users_read_their_share_of_the_cache() {
        assert_eq!(users(&[], 20 * Bytes::M), Ok(None));
        let found = users(&[("with", "slob"), ("sessions", "3")], 20 * Bytes::M).expect("no conflict");
        let found = found.expect("users");
        assert_eq!((found.table.scale, found.reads.scale), (8192, 1280));
        assert_eq!((found.reads.sessions, found.reads.schemas, found.reads.update_pct), (3, 1, 0));
        assert_eq!((0..3).map(|session| found.reads.schema_of(session)).max(), Some(0), "one table");
    }

    #[test]
    fn what_users_cannot_do_is_refused_in_a_line() {
        let refused = |given: &[(&str, &str)], cache| {
            let given: Vec<_> = [("with", "slob")].iter().chain(given).copied().collect();
            users(&given, cache).expect_err("refused")
        };
        let found = [
            refused(&[("scale", "2M"), ("work-unit", "8")], 20 * Bytes::M),
            refused(&[], Bytes::M),
            refused(&[("alone", "0")], 20 * Bytes::M),
            refused(&[("scale", "256"), ("work-unit", "200")], 20 * Bytes::M),
        ];
        let expected = [
            "hot-pct=50 of db_cache_size=20M with scale=256 blocks: the users read 1280 blocks; \
             give a larger scale, or a smaller share",
            "hot-pct=50 of db_cache_size=1M with work-unit=64: 64 blocks are fewer than two work \
             units; give a larger share or cache, or a smaller work unit",
            "alone=0 with with=slob: the build is compared with the time in which users read \
             alone; give a time, as 3s",
            "scale=256 blocks with work-unit=200: a key has a work unit on both sides; give a \
             scale of 401 or more, or a smaller work unit",
        ];
        assert_eq!(found, expected);
    }
}
