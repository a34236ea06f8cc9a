//! Kinds of report and of plan. A kind of report is a [`crate::Reader`]; no kind knows another.

pub mod awr;
pub mod fio;
pub mod pg_profile;
pub mod plan;
pub mod sections;
pub mod tool;
