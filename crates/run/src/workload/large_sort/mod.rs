//! The large sort: the sales table, an index on it by a parallel disk sort, and the verification of
//! the index.
//!
//! Several indexes can be built at the same time, each on a table of its own ([`sorters`]). Users
//! can read through the buffer cache meanwhile ([`users`]). The measured period is that of the
//! builds in any case, so that its time compares with that of a build alone.

mod sorters;
mod users;

use super::slob::{judge, load as slob_load};
use super::{Execution, Place, sizing};
use crate::evidence::{self, Done, Measured};
use crate::place::Room;
use plumb_engine::check::{self, CheckLine};
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::instance::InitialSizes;
use plumb_engine::table::load;
use plumb_engine::{EngineError, Instance, Setting, Settings, drop as dropping};
use plumb_host::device::DeviceDescription;
use plumb_study::Stage;
use plumb_units::Bytes;
use plumb_workload::slob::Conflict;
use plumb_workload::specification::LARGE_SORT;
use plumb_workload::users::UsersSpec;
use plumb_workload::{SalesSpec, SalesTable, Work, Workload};

const KEY: [&str; 2] = ["STORE_ID", "PROD_ID"];

pub(super) struct LargeSort;

impl Execution for LargeSort {
    fn workload(&self) -> &'static Workload {
        &LARGE_SORT
    }

    /// Shares out the memory of all builds, and shrinks the default cache to one whose share of
    /// users' blocks their table has.
    fn apply_defaults(&self, work: &Work, settings: &mut Settings) -> Result<(), EngineError> {
        sorters::share_out(work, settings)?;
        if let Some(most) = users_cache_max(work, settings)
            && !settings.is_explicit(Setting::DbCacheSize)
            && most < settings.number(Setting::DbCacheSize)
        {
            settings.set(Setting::DbCacheSize.row().name, &Bytes(most).as_setting(), LARGE_SORT.name)?;
        }
        users(work, settings).map(|_| ())
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let sales = sizing::of_sales(work.rows(), settings);
        let count = sorters::count(work);
        let all = |of: fn(&InitialSizes) -> Bytes| Bytes(of(&sales).0.saturating_mul(count));
        let mut tablespaces =
            InitialSizes { users: all(|it| it.users), temp: all(|it| it.temp), indx: all(|it| it.indx) };
        let mut beside = InitialSizes::NONE;
        if let Ok(Some(users)) = users(work, settings) {
            let of_users = sizing::of_slob(&users.table, settings);
            tablespaces.users = Bytes(tablespaces.users.0.saturating_add(of_users.users.0));
            tablespaces.indx = Bytes(tablespaces.indx.0.saturating_add(of_users.indx.0));
            let log = settings.number(Setting::LogFileSize);
            beside.users = Bytes(log.saturating_mul(settings.number(Setting::LogFileGroups)));
        }
        Room { tablespaces, beside }
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let (instance, work) = (place.instance, place.work);
        for number in 0..sorters::count(work) {
            let spec = SalesSpec { rows: work.rows(), seed: work.seed().wrapping_add(number) };
            place.observer.stage(&Stage::Load { recorder: &instance.recorder, rows: spec.rows });
            load::load(instance, &sorters::table(number), &SalesTable::new(spec))?;
        }
        let Some(users) = users(work, &instance.settings)? else { return Ok(()) };
        place.observer.stage(&Stage::Import { recorder: &instance.recorder, rows: users.table.scale });
        let transactions = place.transactions()?;
        place.watched(transactions, || slob_load::load(transactions, &users.table))
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, work) = (place.instance, place.work);
        let count = sorters::count(work);
        let measured = || {
            let rows = work.rows().saturating_mul(count);
            place.observer.stage(&Stage::Build { recorder: &instance.recorder, rows });
            match count {
                1 => build(instance, &spec(0), place.devices),
                _ => sorters::build(place, count),
            }
        };
        match users(work, &instance.settings)? {
            Some(users) => users::during(place, users, measured),
            None => measured(),
        }
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        let (instance, work) = (place.instance, place.work);
        place
            .observer
            .stage(&Stage::Verify { recorder: &instance.recorder, blocks: blocks_in_use(instance) });
        let (mut lines, count) = (Vec::new(), sorters::count(work));
        let of = |table: &str, line: CheckLine| CheckLine { name: format!("{table}: {}", line.name), ..line };
        for number in 0..count {
            let table = sorters::table(number);
            let checked = check::check_table(instance, &table)?.into_iter();
            lines.extend(checked.map(|line| if count > 1 { of(&table, line) } else { line }));
        }
        if let Some(users) = users(work, &instance.settings)? {
            let judged = judge::judge(place.transactions()?, &users.table)?;
            lines.extend(judged.into_iter().map(|line| of("users", line)));
        }
        Ok(lines)
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        for number in 0..sorters::count(place.work) {
            let name = sorters::index(number);
            let exists = place.instance.catalog().indexes.iter().any(|index| index.name == name);
            if exists {
                dropping::drop_named(place.instance, &name)?;
            }
        }
        Ok(())
    }
}

/// Returns the index that a build makes, by its number among the builds.
fn spec(number: u64) -> IndexSpec {
    let columns = KEY.map(|name| (name.to_string(), false)).to_vec();
    IndexSpec { name: sorters::index(number), table: sorters::table(number), columns }
}

/// Returns the users that read during the build; `None` if there are none.
fn users(work: &Work, settings: &Settings) -> Result<Option<UsersSpec>, EngineError> {
    let (block, cache) = (settings.number(Setting::DbBlockSize), settings.number(Setting::DbCacheSize));
    UsersSpec::of(work, block, cache).map_err(|Conflict { first, second, why }| EngineError::Contradiction {
        first,
        second,
        why,
    })
}

/// Returns the largest cache whose share of users' blocks is not more than their table has; `None`
/// without users.
fn users_cache_max(work: &Work, settings: &Settings) -> Option<u64> {
    let bytes = UsersSpec::table_bytes(work, settings.number(Setting::DbBlockSize))?;
    let most = bytes.saturating_mul(100) / work.value("hot-pct")?;
    Some((most / Bytes::M * Bytes::M).max(Bytes::M))
}

/// Builds an index between two readings.
pub fn build(
    instance: &Instance,
    spec: &IndexSpec,
    devices: &[DeviceDescription],
) -> Result<Measured, EngineError> {
    evidence::around(instance, devices, || {
        let built = create_index(instance, spec)?;
        Ok((Done { index: Some(built.index.name), sort: Some(built.sort), ..Done::default() }, Vec::new()))
    })
}

/// Blocks of all tables and indexes, which a check reads; it reads the table
/// once more for its keys.
pub fn blocks_in_use(instance: &Instance) -> u64 {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().flat_map(|table| &table.extents);
    let indexes = catalog.indexes.iter().flat_map(|index| index.leaves.iter().chain(&index.branches));
    tables.chain(indexes).map(|extent| u64::from(extent.used)).sum()
}
