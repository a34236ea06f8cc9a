//! The commands, one a file, but for runs and calibrations.

pub mod ad_hoc;
mod bundles;
pub mod check;
pub mod clean;
pub mod compare;
pub mod drop;
pub mod export;
pub mod index;
pub mod list;
mod live;
pub mod load;
pub mod report;
pub mod sort;
pub mod study;
pub mod study_run;
pub mod verify;
