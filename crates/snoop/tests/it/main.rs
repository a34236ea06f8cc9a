//! Traces of real programs, where the kernel permits them.
//!
//! Without the rights each test prints a line and passes, unless `PLUMB_REQUIRE_TRACE` is set.
