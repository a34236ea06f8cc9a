//! Files and the ways to reach them: the only crate that calls the kernel about files.
//!
//! A [`File`] is opened direct or buffered. A [`Channel`] carries [`Request`]s to it by one of
//! three methods behind one interface: plain system calls, a thread pool, or an io_uring of
//! its own. Buffers come from an aligned [`Arena`]. [`describe_device`] tests which of the
//! methods work under a path.
//!
//! Mechanism: a request owns its buffer from submission to completion. No other thread sees its
//! bytes meanwhile, so the interface is safe. A [`BufferPool`] counts the readers of buffers that
//! several threads share. Each thread has its own channel: the only lock on the way to the kernel
//! is that of the thread pool's queue.
//!
//! Why not an async runtime: the engine waits by event name, with one channel a server, and must
//! report the event it waited for. Architecture (many requests in flight, submitted in batches)
//! gains factors, ring flags per cents.
//!
//! Limits: Linux. Requests are at most 1 GiB. Polled rings are opened only on request, by name,
//! after [`describe_device`] has found that they work.

#![warn(missing_docs)]

/// True where costly assertions run: in debug builds, so in tests, and with the feature `strict`.
pub const STRICT: bool = cfg!(any(debug_assertions, feature = "strict"));

/// Asserts a condition that is too costly to check in every build: see [`STRICT`].
#[macro_export]
macro_rules! strict_assert {
    ($($claim:tt)*) => {
        if $crate::STRICT {
            assert!($($claim)*);
        }
    };
}

mod arena;
mod buffer_pool;
pub mod canary;
mod directory;
mod error;
mod file;
mod file_number;
pub mod marked;
mod method;
pub mod named_directory;
mod ring_probe;
mod ring_setup;
pub mod sim;

pub use arena::{Arena, HugeVec, IoBuffer, Plain, ask_huge_pages, prefetch};
pub use buffer_pool::{BufferPin, BufferPool};
pub use directory::{Directory, Entry, EntryKind, FRESH, Found};
pub use error::{IoError, cure};
pub use file::{
    DirectIo, Disk, Durability, File, FileCounters, Lock, Moves, OpenMode, RESERVE, SIZE_CLASSES, Space,
    class_bytes, random_id,
};
pub use file_number::path_of_number;
pub use method::{Channel, Completion, Failed, Method, MethodKind, Operation, Request, carry};
pub use ring_probe::describe_device;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
