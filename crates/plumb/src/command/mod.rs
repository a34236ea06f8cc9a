//! The commands, one a file, but for runs and calibrations.

pub mod ad_hoc;
pub mod audit;
pub mod backup;
pub mod bundles;
pub mod check;
pub mod clean;
pub mod compare;
pub mod diagnose;
pub mod drop;
pub mod export;
mod file_systems;
pub mod import;
pub mod index;
pub mod info;
pub mod list;
mod live;
pub mod load;
mod of_workload;
mod places;
pub mod report;
pub mod share;
pub mod sort;
pub mod study;
pub mod study_run;
mod suite;
pub mod trace;
pub mod verify;
