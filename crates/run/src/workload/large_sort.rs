//! The large sort: the sales table, an index on it by a parallel disk sort, and the verification of
//! the index.

use super::{Execution, Place, sizing};
use crate::evidence::{self, Done, Measured};
use crate::place::Room;
use plumb_engine::check::{self, CheckLine};
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load;
use plumb_engine::{EngineError, Instance, Settings, drop as dropping};
use plumb_host::device::DeviceDescription;
use plumb_study::Stage;
use plumb_workload::specification::LARGE_SORT;
use plumb_workload::{SalesSpec, SalesTable, Work, Workload};

/// Name of the index that the workload builds.
const INDEX: &str = "SALES_STORE_PROD";
const KEY: [&str; 2] = ["STORE_ID", "PROD_ID"];

pub(super) struct LargeSort;

impl Execution for LargeSort {
    fn workload(&self) -> &'static Workload {
        &LARGE_SORT
    }

    fn apply_defaults(&self, _: &Work, _: &mut Settings) -> Result<(), EngineError> {
        Ok(())
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        Room { tablespaces: sizing::of_sales(work.rows(), settings), beside: InitialSizes::NONE }
    }

    fn source(&self) -> Purpose {
        Purpose::Users
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let spec = SalesSpec { rows: place.work.rows(), seed: place.work.seed() };
        place.observer.stage(&Stage::Load { recorder: &place.instance.recorder, rows: spec.rows });
        load::load(place.instance, LARGE_SORT.data, &SalesTable::new(spec)).map(|_| ())
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        place.observer.stage(&Stage::Build { recorder: &place.instance.recorder, rows: place.work.rows() });
        let columns = KEY.map(|name| (name.to_string(), false)).to_vec();
        let spec = IndexSpec { name: INDEX.to_string(), table: LARGE_SORT.data.to_string(), columns };
        build(place.instance, &spec, place.devices)
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        let instance = place.instance;
        place
            .observer
            .stage(&Stage::Verify { recorder: &instance.recorder, blocks: blocks_in_use(instance) });
        check::check_table(instance, LARGE_SORT.data)
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let exists = place.instance.catalog().indexes.iter().any(|index| index.name == INDEX);
        if exists { dropping::drop_named(place.instance, INDEX).map(|_| ()) } else { Ok(()) }
    }
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
#[must_use]
pub fn blocks_in_use(instance: &Instance) -> u64 {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().flat_map(|table| &table.extents);
    let indexes = catalog.indexes.iter().flat_map(|index| index.leaves.iter().chain(&index.branches));
    tables.chain(indexes).map(|extent| u64::from(extent.used)).sum()
}
