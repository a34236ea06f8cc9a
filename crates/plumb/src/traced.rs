//! Sizes of the requests of a server of plumb's own, by the tracer of `plumb snoop`.
//!
//! A study traces one unmeasured execution of each arm, from its session on: processes that the
//! server makes meanwhile are traced from their first instruction. Those that run already, such as
//! the checkpointer, are not. Without the rights, the record has the reason.

use plumb_postgres::target::RequestTracing;
use plumb_record::RequestSizes;
use plumb_snoop::{Capture, Live, Show, SnoopError, SnoopTarget};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

pub struct Tracer;

impl RequestTracing for Tracer {
    fn during(&self, pid: u32, below: &Path, work: &mut dyn FnMut()) -> RequestSizes {
        let missing = |error: &SnoopError| RequestSizes {
            missing: Some(format!("not traced: {error}")),
            ..RequestSizes::default()
        };
        let mut capture = match Capture::start(SnoopTarget::Pid(pid)) {
            Ok(capture) => capture,
            Err(error) => {
                work();
                return missing(&error);
            }
        };
        let below = below.canonicalize().unwrap_or_else(|_| below.to_path_buf());
        let mut live = Live::new(Show::Nothing, capture.begin()).below(&below);
        let is_done = AtomicBool::new(false);
        let traced = thread::scope(|scope| {
            let steps = scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    capture.step(&mut live)?;
                }
                capture.finish(&mut live)
            });
            let end = SetAtEnd(&is_done);
            work();
            drop(end);
            steps.join()
        });
        match traced {
            Ok(Err(error)) => missing(&error),
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(Ok(())) => {
                let sums = capture.sums(&live);
                let bytes = |effect: &str| {
                    let calls = sums.calls.iter().filter(|row| row.effect == effect);
                    calls.map(|row| row.bytes).sum()
                };
                let (read_bytes, written_bytes, lost) = (bytes("read"), bytes("write"), sums.lost());
                RequestSizes { missing: None, read_bytes, written_bytes, sizes: sums.call_sizes, lost }
            }
        }
    }
}

/// Ends the trace, also if the work panics.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
