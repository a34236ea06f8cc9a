//! A sort server over files in memory, for tests of its parts.

use super::area::RecordSize;
use super::plan::SortPlan;
use super::run::{Run, RunWriter};
use super::word::WordKey;
use super::{RecordSink, SortServer};
use crate::instance::InitialSizes;
use crate::sort::format::Unpacked;
use crate::{Instance, Layout, Settings};
use plumb_events::{Cancel, Phase, Role};
use plumb_units::{Bytes, Lsn};

pub(crate) type Key = WordKey<u64>;

/// Runs `body` with a server that has 64K of memory in blocks of 2K.
pub(crate) fn with_server(body: impl FnOnce(&SortServer<'_>)) {
    let home = tempfile::tempdir().expect("a directory");
    let mut settings = Settings::default();
    let few = [("db_block_size", "2K"), ("io_method", "null"), ("sort_area_size", "64K")];
    for (name, value) in few.into_iter().chain([("sort_direct_writes", "true"), ("db_cache_size", "1M")]) {
        settings.set(name, value, "test").expect("a setting");
    }
    let sizes = InitialSizes { users: Bytes(Bytes::M), temp: Bytes(8 * Bytes::M), indx: Bytes(Bytes::M) };
    let layout = Layout::in_one(home.path().join("db"));
    let instance = Instance::create(&layout, settings, sizes, Cancel::default()).expect("an instance");
    let session = instance.recorder.session(Role::User);
    let operation = instance.operation();
    let record = RecordSize { bytes: 8, entry_bytes: 0 };
    let plan = SortPlan::new(&instance, record, 1_000).expect("a plan");
    body(&SortServer {
        instance: &instance,
        session: &session,
        operation: &operation,
        plan: &plan,
        lsn: Lsn(7),
        last_phase: Phase::MergeAndIndex,
    });
}

/// Writes runs of these words, each in order.
pub(crate) fn write_runs(server: &SortServer<'_>, runs: &[Vec<u64>]) -> Vec<Run> {
    let mut writer = RunWriter::<Unpacked>::new(server).expect("a writer");
    for run in runs {
        run.iter().try_for_each(|word| writer.record(&word.to_le_bytes())).expect("written");
        writer.end_run().expect("written");
    }
    writer.finish().expect("written").0
}
