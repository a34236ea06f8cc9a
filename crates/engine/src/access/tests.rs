//! Instances that get less than they ask for.

use super::memory::judge;
use super::refusal_of;
use crate::index::build::{IndexSpec, create_index};
use crate::instance::InitialSizes;
use crate::settings::Settings;
use crate::table::load::load;
use crate::{EngineError, Instance, Layout};
use plumb_events::Cancel;
use plumb_host::device::{AlignmentSource, DirectIoSupport};
use plumb_host::limits::MemoryBounds;
use plumb_units::{BlockSize, Bytes};
use plumb_workload::{SalesSpec, SalesTable};
use std::sync::mpsc;
use std::time::Duration;

fn settings(set: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    set.iter().for_each(|(name, value)| settings.set(name, value, "--set").expect("a setting"));
    settings
}

fn instance(set: &[(&str, &str)]) -> Result<Instance, EngineError> {
    let home = tempfile::tempdir().expect("a directory").path().join("db");
    let sizes = InitialSizes { users: Bytes(Bytes::M), temp: Bytes(8 * Bytes::M), indx: Bytes(Bytes::M) };
    let settings = settings(&[&[("io_method", "null")], set].concat());
    Instance::create(&Layout::in_one(home), settings, sizes, Cancel::default())
}

/// Runs the body and fails if it takes a minute.
fn bounded<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(body()));
    wait.recv_timeout(Duration::from_secs(60)).expect("it ends, and does not hang")
}

fn build(instance: &Instance, name: &str) -> Result<(), EngineError> {
    let columns = vec![("STORE_ID".to_string(), false)];
    let spec = IndexSpec { name: name.to_string(), table: "T".to_string(), columns };
    create_index(instance, &spec).map(|_| ())
}

#[test]
fn an_explicit_degree_is_refused_with_the_number_needed() {
    let error = instance(&[("parallel_degree", "64"), ("debug_thread_limit", "50")]).expect_err("refused");
    let said = error.to_string();
    assert!(
        said.starts_with("cannot start the 131 threads that parallel_degree=64 takes, but only 50: "),
        "{said}"
    );
    assert!(said.contains("RLIMIT_NPROC") && said.ends_with(", or lower parallel_degree"), "{said}");
}

#[test]
fn a_default_degree_falls_to_what_could_be_started() {
    let instance = instance(&[("debug_thread_limit", "4")]).expect("an instance");
    assert_eq!(instance.parallel_degree(), 1);
    if instance.settings.degree() > 1 {
        let reason = instance.access.servers.reason.clone().expect("a reason");
        assert!(reason.starts_with("1 instead of "), "{reason}");
    }
    load(&instance, "T", &SalesTable::new(SalesSpec { rows: 1000, seed: 1 })).expect("a table");
    build(&instance, "I").expect("an index");
}

#[test]
fn a_server_that_cannot_start_ends_its_operation() {
    bounded(|| {
        let instance =
            instance(&[("parallel_degree", "4"), ("debug_thread_limit", "20")]).expect("an instance");
        // The table is so large that no server ends before the last is started; its thread would
        // be free for that one.
        let source = || SalesTable::new(SalesSpec { rows: 500_000, seed: 1 });
        load(&instance, "T", &source()).expect("a table");
        for free in 0..8 {
            let others: Vec<_> =
                (free..20).map(|_| instance.access.servers.threads.thread().expect("free")).collect();
            let error = build(&instance, "I").expect_err("too few threads").to_string();
            assert!(error.starts_with("cannot start PX s"), "{free}: {error}");
            if free < 4 {
                let error = load(&instance, "U", &source()).expect_err("too few threads").to_string();
                assert!(error.starts_with("cannot start PX load server p00"), "{free}: {error}");
            }
            drop(others);
        }
        build(&instance, "I").expect("nothing is left of the others");
    });
}

#[test]
fn a_database_writer_that_cannot_start_is_an_error() {
    bounded(|| {
        let more = [("sort_direct_writes", "false"), ("sort_area_size", "64K"), ("parallel_degree", "1")];
        let instance = instance(&[&more[..], &[("debug_thread_limit", "4")]].concat()).expect("an instance");
        load(&instance, "T", &SalesTable::new(SalesSpec { rows: 50_000, seed: 1 })).expect("a table");
        let others: Vec<_> =
            (1..4).map(|_| instance.access.servers.threads.thread().expect("free")).collect();
        let error = build(&instance, "I").expect_err("no thread for it").to_string();
        assert!(error.starts_with("cannot start database writer DBW0: "), "{error}");
        drop(others);
    });
}

const MACHINE: MemoryBounds =
    MemoryBounds { total: Bytes(16 << 30), source: "MemTotal", available: Bytes(8 << 30) };

#[test]
fn memory_beyond_the_machine_is_refused_with_its_parts() {
    let judged = |set: &[(&str, &str)]| {
        judge(&settings(&[&[("parallel_degree", "2")], set].concat()), BlockSize::ALL[2], &MACHINE)
    };
    assert_eq!(judged(&[]).expect("little"), None);
    assert_eq!(
        judged(&[("sort_area_size", "1T")]).expect_err("too much").to_string(),
        "the settings ask for 2.00 TB of memory (sort areas 2 x 1.00 TB = 2.00 TB + scan buffers 2 x 8.00 MB = 16.0 MB + \
         table queue 4.00 MB + buffer cache 20.0 MB), and there are 16.0 GB (MemTotal): lower sort_area_size=1t (--set), \
         parallel_degree=2 (--set)"
    );
    let warned = judged(&[("db_cache_size", "10G")]).expect("it could be").expect("a warning");
    assert!(warned.ends_with(" of 16.0 GB were available at the start"), "{warned}");
    let small = MemoryBounds { total: Bytes(1), ..MACHINE };
    let default = judge(&Settings::default(), BlockSize::ALL[2], &small).expect("nobody asked for it");
    assert!(default.is_some());
}

#[test]
fn blocks_below_the_alignment_of_a_device_are_not_direct() {
    let support = |memory, offset| DirectIoSupport::Yes {
        memory_align: Bytes(memory),
        offset_align: Bytes(offset),
        source: AlignmentSource::Statx,
    };
    let [small, .., large] = BlockSize::ALL;
    assert_eq!(refusal_of(&support(512, 512), small), None);
    assert_eq!(refusal_of(&support(4, 4096), large), None);
    let why = refusal_of(&support(512, 4096), small).expect("refused");
    assert_eq!(why, "it moves whole pieces of 4096 bytes, and a block is 2K, which is no multiple");
}
