//! The commands, one a file, but for runs and calibrations.

pub mod ad_hoc;
pub mod backup;
pub mod check;
pub mod clean;
pub mod compare;
pub mod drop;
pub mod index;
pub mod list;
mod live;
pub mod load;
pub mod report;
pub mod study;
pub mod study_run;
pub mod trace;
pub mod verify;
