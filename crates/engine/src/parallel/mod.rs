//! Parallel execution: sets of servers and the table queue between them.

pub mod servers;
pub mod table_queue;
