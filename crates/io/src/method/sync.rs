//! The plain method: the session makes the system call and waits in it.

use super::{Attempt, Pending};
use plumb_events::now;

/// Makes one attempt on the calling thread.
pub(super) fn attempt(mut pending: Pending) -> Attempt {
    pending.begins(now());
    let result = pending.transfer_once();
    pending.expects_a_look();
    Attempt { pending, result, end: now() }
}
