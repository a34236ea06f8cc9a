//! The system calls that a trace keeps: one row each.
//!
//! A row says where the arguments are: descriptor, bytes and offset by their index. Vectors have
//! their lengths in the program's memory, which no tracepoint copies; their bytes are the result.

/// Effect of a system call on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
    /// Waits until a file, or part of it, is durable.
    Sync,
    /// Submits requests whose ends are reported elsewhere.
    Submit,
    /// Moves the position of a descriptor.
    Seek,
    Open,
    /// Returns a second descriptor of the file of its first argument.
    Duplicate,
    /// Ends a descriptor; its record is that of the entry.
    Close,
    Rename,
}

/// Row of a system call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub kernel_name: &'static str,
    pub name: &'static str,
    pub effect: Effect,
    /// Index of the argument with the bytes asked for.
    pub bytes: Option<usize>,
    /// Index of the argument with the offset.
    pub offset: Option<usize>,
}

const fn row(kernel_name: &'static str, effect: Effect, bytes: Option<usize>, offset: Option<usize>) -> Call {
    Call { kernel_name, name: kernel_name, effect, bytes, offset }
}

const fn named(name: &'static str, call: Call) -> Call {
    Call { name, ..call }
}

/// Every system call that is traced.
pub static CALLS: [Call; 30] = [
    row("read", Effect::Read, Some(2), None),
    named("pread", row("pread64", Effect::Read, Some(2), Some(3))),
    row("readv", Effect::Read, None, None),
    row("preadv", Effect::Read, None, Some(3)),
    row("preadv2", Effect::Read, None, Some(3)),
    row("write", Effect::Write, Some(2), None),
    named("pwrite", row("pwrite64", Effect::Write, Some(2), Some(3))),
    row("writev", Effect::Write, None, None),
    row("pwritev", Effect::Write, None, Some(3)),
    row("pwritev2", Effect::Write, None, Some(3)),
    row("fsync", Effect::Sync, None, None),
    row("fdatasync", Effect::Sync, None, None),
    row("sync_file_range", Effect::Sync, Some(2), Some(1)),
    row("msync", Effect::Sync, None, None),
    row("syncfs", Effect::Sync, None, None),
    row("io_uring_enter", Effect::Submit, None, None),
    row("io_submit", Effect::Submit, None, None),
    row("lseek", Effect::Seek, None, None),
    row("open", Effect::Open, None, None),
    row("openat", Effect::Open, None, None),
    row("openat2", Effect::Open, None, None),
    row("creat", Effect::Open, None, None),
    row("dup", Effect::Duplicate, None, None),
    row("dup2", Effect::Duplicate, None, None),
    row("dup3", Effect::Duplicate, None, None),
    row("fcntl", Effect::Duplicate, None, None),
    row("close", Effect::Close, None, None),
    row("rename", Effect::Rename, None, None),
    row("renameat", Effect::Rename, None, None),
    row("renameat2", Effect::Rename, None, None),
];

impl Call {
    /// True if the first argument is the descriptor of a file.
    pub fn has_file(&self) -> bool {
        matches!(self.effect, Effect::Read | Effect::Write | Effect::Sync | Effect::Seek)
            && self.name != "msync"
    }

    /// True if the call moves bytes or waits for them, so that it has a line in a report.
    pub fn is_shown(&self) -> bool {
        matches!(self.effect, Effect::Read | Effect::Write | Effect::Sync)
    }
}

/// Operations of io_uring by number, as reports name them; others move no file's bytes.
const RING_OPERATIONS: [(u8, &str, Effect); 8] = [
    (1, "uring readv", Effect::Read),
    (2, "uring writev", Effect::Write),
    (3, "uring fsync", Effect::Sync),
    (4, "uring read", Effect::Read),
    (5, "uring write", Effect::Write),
    (8, "uring sync_file_range", Effect::Sync),
    (22, "uring read", Effect::Read),
    (23, "uring write", Effect::Write),
];

/// Returns name and effect of an operation of io_uring; none if it moves no file's bytes.
pub fn ring_operation(number: u8) -> Option<(&'static str, Effect)> {
    RING_OPERATIONS.iter().find(|(known, ..)| *known == number).map(|(_, name, effect)| (*name, *effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_row_and_offsets_only_where_the_call_has_one() {
        for (at, call) in CALLS.iter().enumerate() {
            assert!(CALLS[..at].iter().all(|before| before.kernel_name != call.kernel_name), "{call:?}");
            let positioned = call.kernel_name.starts_with('p') || call.name == "sync_file_range";
            assert_eq!(call.offset.is_some(), positioned, "{call:?}");
        }
        assert_eq!(ring_operation(23), Some(("uring write", Effect::Write)));
        assert_eq!(ring_operation(0), None, "a no-op moves nothing");
    }
}
