//! The published claims that ship with the program.

use crate::claim::{ClaimError, PublishedClaim, parse};

/// Names and texts of the claim files.
pub const FILES: &[(&str, &str)] = &[
    ("array-link.toml", include_str!("../../../claims/array-link.toml")),
    ("asm-file-system.toml", include_str!("../../../claims/asm-file-system.toml")),
    ("block-size.toml", include_str!("../../../claims/block-size.toml")),
    ("cloud-sort.toml", include_str!("../../../claims/cloud-sort.toml")),
    ("commits-write-blocks.toml", include_str!("../../../claims/commits-write-blocks.toml")),
    ("ext4-xfs.toml", include_str!("../../../claims/ext4-xfs.toml")),
    ("innodb-index-threads.toml", include_str!("../../../claims/innodb-index-threads.toml")),
    ("log-direct-io.toml", include_str!("../../../claims/log-direct-io.toml")),
    ("log-rates.toml", include_str!("../../../claims/log-rates.toml")),
    ("plumb-commits.toml", include_str!("../../../claims/plumb-commits.toml")),
    ("plumb-index-build.toml", include_str!("../../../claims/plumb-index-build.toml")),
    ("plumb-slob.toml", include_str!("../../../claims/plumb-slob.toml")),
    ("producer-rows.toml", include_str!("../../../claims/producer-rows.toml")),
    ("producer-table.toml", include_str!("../../../claims/producer-table.toml")),
    ("reads-seven-times.toml", include_str!("../../../claims/reads-seven-times.toml")),
    ("slow-reads.toml", include_str!("../../../claims/slow-reads.toml")),
    ("sort-always.toml", include_str!("../../../claims/sort-always.toml")),
    ("sort-gains-composed.toml", include_str!("../../../claims/sort-gains-composed.toml")),
    ("sort-one-third.toml", include_str!("../../../claims/sort-one-third.toml")),
    ("sort-parallel-ten-times.toml", include_str!("../../../claims/sort-parallel-ten-times.toml")),
    ("sort-parallel-three-times.toml", include_str!("../../../claims/sort-parallel-three-times.toml")),
    ("sort-two-thirds.toml", include_str!("../../../claims/sort-two-thirds.toml")),
    ("sort-write-buffers.toml", include_str!("../../../claims/sort-write-buffers.toml")),
    ("ssd-alike.toml", include_str!("../../../claims/ssd-alike.toml")),
    ("temp-io-size.toml", include_str!("../../../claims/temp-io-size.toml")),
    ("temp-latency.toml", include_str!("../../../claims/temp-latency.toml")),
    ("tencent-sort.toml", include_str!("../../../claims/tencent-sort.toml")),
    ("terabyte-scan.toml", include_str!("../../../claims/terabyte-scan.toml")),
];

/// Returns the name of a claim from its file's name.
#[must_use]
pub fn name_of(file: &str) -> &str {
    file.strip_suffix(".toml").unwrap_or(file)
}

/// Returns the shipped claim of that name.
pub fn find(name: &str) -> Option<Result<PublishedClaim, ClaimError>> {
    let (file, text) = FILES.iter().find(|(file, _)| name_of(file) == name)?;
    Some(parse(file, name, text))
}

/// Parses all shipped claims, in the order of their names.
pub fn all() -> Result<Vec<PublishedClaim>, ClaimError> {
    FILES.iter().map(|(file, text)| parse(file, name_of(file), text)).collect()
}
