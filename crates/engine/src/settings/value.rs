//! Typed values of settings, each made from a text that the domain of its setting admits.

use plumb_units::{BlockSize, Bytes, parse_count, parse_size};
use std::path::PathBuf;

/// Type of a setting's value.
pub(super) trait Value: Sized {
    fn of(text: &str) -> Option<Self>;
}

impl Value for Bytes {
    fn of(text: &str) -> Option<Bytes> {
        parse_size(text).ok().map(Bytes)
    }
}

impl Value for BlockSize {
    fn of(text: &str) -> Option<BlockSize> {
        parse_size(text).ok().and_then(BlockSize::new)
    }
}

impl Value for PathBuf {
    fn of(text: &str) -> Option<PathBuf> {
        Some(PathBuf::from(text))
    }
}

/// `None` is the value of `auto`.
impl<T: Value> Value for Option<T> {
    fn of(text: &str) -> Option<Option<T>> {
        if text == "auto" { Some(None) } else { T::of(text).map(Some) }
    }
}

/// Words of a setting that is a switch.
pub(super) const OFF_ON: &[&str] = &["off", "on"];
/// Words of a choice whose default is true.
pub(super) const TRUE_FALSE: &[&str] = &["true", "false"];
/// Words of a choice with a third value, `auto`.
pub(super) const AUTO_TRUE_FALSE: &[&str] = &["auto", "true", "false"];

impl Value for bool {
    fn of(text: &str) -> Option<bool> {
        match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        }
    }
}

macro_rules! counts {
    ($($type:ident)*) => {
        $(impl Value for $type {
            fn of(text: &str) -> Option<$type> {
                parse_count(text).ok().and_then(|count| count.try_into().ok())
            }
        })*
    };
}

counts!(u32 u64 usize);

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident $word:literal),* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name { $(#[doc = concat!("`", $word, "`.")] $variant),* }

            impl $name {
                /// Every word, in the order in which messages name them.
                pub const WORDS: &'static [&'static str] = &[$($word),*];
                /// The words with `auto` in front of them.
                pub const AUTO_OR_WORDS: &'static [&'static str] = &["auto", $($word),*];

                /// Returns the word, as it is written.
                pub const fn name(self) -> &'static str {
                    match self { $($name::$variant => $word),* }
                }
            }

            impl Value for $name {
                fn of(text: &str) -> Option<$name> {
                    match text { $($word => Some($name::$variant),)* _ => None }
                }
            }
        )*
    };
}

words! {
    /// Part of a block that is verified when a session reads it into the buffer cache.
    BlockChecksum { Typical "typical", Off "off" }
    /// I/O of files: overlapping requests, bypass of the page cache, both or neither.
    FilesystemioOptions { None "none", Asynch "asynch", Directio "directio", Setall "setall" }
    /// Method by which requests reach the kernel.
    IoMethod { Sync "sync", Threads "threads", IoUring "io_uring", Null "null" }
    /// Way in which a log write becomes durable: by a call after it, or by the write itself.
    SyncMethod { Fdatasync "fdatasync", Fsync "fsync", OpenDatasync "open_datasync", OpenSync "open_sync" }
    /// Access to the log files, past the page cache or through it.
    LogFileIo { Direct "direct", Buffered "buffered" }
    /// Process that runs before all others.
    HighPriority { Lgwr "lgwr", None "none" }
}

impl FilesystemioOptions {
    /// True if requests of a session overlap.
    pub const fn is_asynchronous(self) -> bool {
        matches!(self, FilesystemioOptions::Asynch | FilesystemioOptions::Setall)
    }

    /// True if the page cache is bypassed.
    pub const fn is_direct(self) -> bool {
        matches!(self, FilesystemioOptions::Directio | FilesystemioOptions::Setall)
    }
}
