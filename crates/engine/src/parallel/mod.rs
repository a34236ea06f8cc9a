//! Parallel execution: sets of servers and the table queue between them.
//!
//! Sets of [`servers`] carry out an operation: a load, a build, a check, a sort of a file. Servers
//! are threads that take pieces of the same work until none is left; a coordinator waits for them.
//! Two sets may be joined by a [`table_queue`].
//!
//! Why threads that live as long as their operation, and no pool: an operation lasts seconds to
//! hours, a thread starts in 50 us, and a server's session, buffers and ring end with it.
//!
//! Limits: every set has `parallel_degree` servers, or one; the coordinator does
//! no share of their work.

pub mod servers;
pub mod table_queue;
