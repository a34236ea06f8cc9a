//! A real server, from its start to its end. Without an installed server these tests are skipped
//! with a line, unless `PLUMB_REQUIRE_POSTGRES` is set.

mod noops;
mod reloads;
mod runs;
mod server;
mod shadows;
mod strangers;
mod studies;
mod targets;
mod tls;
mod visits;
