//! The studies that come with the program.

use super::{Study, StudyFileError, parse};
use crate::vocabulary::Kinds;

pub const FILES: &[(&str, &str)] = &[
    ("large-sort.toml", include_str!("../../../../studies/large-sort.toml")),
    ("large-sort-serial.toml", include_str!("../../../../studies/large-sort-serial.toml")),
    ("large-sort-parallel.toml", include_str!("../../../../studies/large-sort-parallel.toml")),
    ("parallel-degree.toml", include_str!("../../../../studies/parallel-degree.toml")),
    ("sort-write-buffers.toml", include_str!("../../../../studies/sort-write-buffers.toml")),
    ("sort-area.toml", include_str!("../../../../studies/sort-area.toml")),
    ("memory-sweep.toml", include_str!("../../../../studies/memory-sweep.toml")),
    ("sorters-beside-users.toml", include_str!("../../../../studies/sorters-beside-users.toml")),
    ("placement.toml", include_str!("../../../../studies/placement.toml")),
    ("redo-direct.toml", include_str!("../../../../studies/redo-direct.toml")),
    ("redo-sync-method.toml", include_str!("../../../../studies/redo-sync-method.toml")),
    ("log-file-size.toml", include_str!("../../../../studies/log-file-size.toml")),
    ("block-size.toml", include_str!("../../../../studies/block-size.toml")),
    ("logging.toml", include_str!("../../../../studies/logging.toml")),
    ("archiving.toml", include_str!("../../../../studies/archiving.toml")),
    ("producer.toml", include_str!("../../../../studies/producer.toml")),
    ("scan.toml", include_str!("../../../../studies/scan.toml")),
    ("extents.toml", include_str!("../../../../studies/extents.toml")),
    ("fio-engines.toml", include_str!("../../../../studies/fio-engines.toml")),
    ("fio-block-size.toml", include_str!("../../../../studies/fio-block-size.toml")),
    ("sqlite-journal.toml", include_str!("../../../../studies/sqlite-journal.toml")),
    ("file-copy.toml", include_str!("../../../../studies/file-copy.toml")),
    ("pgbench.toml", include_str!("../../../../studies/pgbench.toml")),
    ("ext4-xfs.toml", include_str!("../../../../studies/ext4-xfs.toml")),
    ("storage-slob.toml", include_str!("../../../../studies/storage-slob.toml")),
    ("storage-commits.toml", include_str!("../../../../studies/storage-commits.toml")),
    ("storage-sort.toml", include_str!("../../../../studies/storage-sort.toml")),
    ("temp-io-size.toml", include_str!("../../../../studies/temp-io-size.toml")),
    ("asynch-files.toml", include_str!("../../../../studies/asynch-files.toml")),
    ("shared-servers.toml", include_str!("../../../../studies/shared-servers.toml")),
    ("block-checksum.toml", include_str!("../../../../studies/block-checksum.toml")),
    ("trace-overhead.toml", include_str!("../../../../studies/trace-overhead.toml")),
    ("pg-sort-memory.toml", include_str!("../../../../studies/pg-sort-memory.toml")),
    ("pg-wal-sync-method.toml", include_str!("../../../../studies/pg-wal-sync-method.toml")),
    ("pg-commit-delay.toml", include_str!("../../../../studies/pg-commit-delay.toml")),
    ("pg-checkpoint-distance.toml", include_str!("../../../../studies/pg-checkpoint-distance.toml")),
    ("pg-checksums.toml", include_str!("../../../../studies/pg-checksums.toml")),
    ("pg-wal-compression.toml", include_str!("../../../../studies/pg-wal-compression.toml")),
    ("pg-direct-io.toml", include_str!("../../../../studies/pg-direct-io.toml")),
    ("pg-io-method.toml", include_str!("../../../../studies/pg-io-method.toml")),
    (
        "pg-effective-io-concurrency.toml",
        include_str!("../../../../studies/pg-effective-io-concurrency.toml"),
    ),
    ("pg-sampler.toml", include_str!("../../../../studies/pg-sampler.toml")),
    ("pg-first-rows.toml", include_str!("../../../../studies/pg-first-rows.toml")),
    ("pg-rollup.toml", include_str!("../../../../studies/pg-rollup.toml")),
];

/// Studies that answer one question together.
#[derive(Debug)]
pub struct Suite {
    pub name: &'static str,
    pub title: &'static str,
    /// Names of the studies, in the order of their runs.
    pub studies: &'static [&'static str],
}

pub const SUITES: &[Suite] = &[Suite {
    name: "storage",
    title: "Is the second place as good as the first for a database?",
    studies: &["storage-slob", "storage-commits", "storage-sort"],
}];

pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| suite.name == name)
}

/// Returns file and text of the named study.
pub fn text(name: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name)).copied()
}

/// Parses all studies that ship.
pub fn all(kinds: &Kinds) -> Result<Vec<Study>, StudyFileError> {
    FILES.iter().map(|(file, text)| parse(file, text, kinds)).collect()
}

/// Returns the shipped study of that name.
pub fn find(name: &str, kinds: &Kinds) -> Result<Option<Study>, StudyFileError> {
    Ok(all(kinds)?.into_iter().find(|study| study.name == name))
}
