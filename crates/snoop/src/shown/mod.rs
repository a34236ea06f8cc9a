//! Lines on the terminal, tables, and the record.

pub mod live;
pub mod record;
pub mod text;
