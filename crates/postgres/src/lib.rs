//! PostgreSQL as a target of studies: servers of plumb's own, with receipts from outside.
//!
//! ```text
//! installation, account      which server, run by which user
//! cluster                    a data directory; a server started in it, and its end
//! golden                     the loaded directory that each writing run has a copy of
//! copy                       the rows of a workload, as COPY BINARY
//! process, watch             a server at work: /proc of its processes, samples of wait events
//! evidence, receipts         what was observed; what it shows of each setting
//! session, workload          statements; the work of a run, with its verification
//! run, assemble              one run in a process of its own, and its record
//! vocabulary, target         the words of a study, and the servers of one
//! foresight                  levels and evidence that this machine has, before a run
//! words, address             a running server of others by its URL
//! client, wire, tls          a session with bounds; heads of messages; encryption
//! explain, visit             plans of a query on a running server, a study on it
//! ```
//!
//! A study's settings become options of `postgres` or statements of the working session. Each run
//! starts the server, so that settings which need a start are confounded with nothing else.
//!
//! The server's word about a setting is the last resort: `pg_settings` shows values that are capped
//! or divided without a trace. Evidence comes from the kernel first.
//!
//! Rejected: an asynchronous client. One session works, another samples, and neither does anything
//! while it waits.
//!
//! Limits: own servers on Unix sockets of this machine only. Versions 14 and later.

mod foresight;
pub mod target;
pub mod vocabulary;

pub mod assemble;
pub mod run;

pub mod address;
pub mod explain;

pub mod session;
pub mod workload;

pub mod client;
mod tls;
mod wire;
mod words;

pub mod evidence;
pub mod receipts;

pub mod process;
pub mod watch;

pub mod copy;

pub mod visit;

pub mod account;
pub mod cluster;
mod ending;
pub mod golden;
pub mod installation;
pub mod leftover;

mod error;

#[cfg(test)]
mod recorded;

pub use ending::ServerLeftover;
pub use error::PostgresError;
pub use target::PostgresTarget;
pub use vocabulary::Postgres;
