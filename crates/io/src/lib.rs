//! Files and the ways to reach them: the only crate that calls the kernel about files.
//!
//! What it does: a [`File`] is opened direct or buffered; a [`Channel`] carries
//! [`Request`]s to it by one of three methods (plain system calls, a thread
//! pool, an io_uring of its own) behind one interface; buffers come from an
//! aligned [`Arena`]. [`describe_device`] tries which of the methods work under a path.
//!
//! How: a request owns its buffer from submission to completion, so nobody else
//! sees its bytes meanwhile and the interface is safe; of buffers that many look
//! at a [`BufferPool`] keeps count. Each thread has
//! its own channel: no lock is shared on the way to the kernel but the thread
//! pool's queue.
//!
//! Why not an async runtime: the engine waits by event name, one channel a
//! server, and needs to say what it waited for. Architecture (many requests in
//! flight, submitted in batches) gives the factors, ring flags the per cents.
//!
//! Limits: Linux. Requests are at most 1 GiB. Polled rings are for who asks for them
//! by name, after [`describe_device`] has found that they work.

#![warn(missing_docs)]

/// Whether costly assertions run: in debug builds, so in tests, and with the feature `strict`.
pub const STRICT: bool = cfg!(any(debug_assertions, feature = "strict"));

/// Asserts what is too costly to look at in every build: see [`STRICT`].
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
mod directory;
mod error;
mod file;
mod file_number;
mod method;
mod ring_probe;
mod ring_setup;
pub mod sim;

pub use arena::{Arena, HugeVec, IoBuffer, Plain, ask_huge_pages, prefetch};
pub use buffer_pool::{BufferPin, BufferPool};
pub use directory::{Directory, Entry, EntryKind, Found};
pub use error::{IoError, cure};
pub use file::{DirectIo, Disk, Durability, File, FileCounters, Lock, OpenMode, RESERVE, Space, random_id};
pub use file_number::path_of_number;
pub use method::{Channel, Completion, Failed, Method, MethodKind, Operation, Request, carry};
pub use ring_probe::describe_device;

#[cfg(test)]
mod tests;
