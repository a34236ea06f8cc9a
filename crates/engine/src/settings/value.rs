//! Typed values of settings, each made from a text that the domain of its setting admits.

use plumb_units::{BlockSize, Bytes, parse_count, parse_size};
use std::path::PathBuf;

/// A type that a setting's value has.
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

/// `None` stands for `auto`.
impl<T: Value> Value for Option<T> {
    fn of(text: &str) -> Option<Option<T>> {
        if text == "auto" { Some(None) } else { T::of(text).map(Some) }
    }
}

/// The words of a switch.
pub(super) const OFF_ON: &[&str] = &["off", "on"];
/// The words of a choice, the first one first.
pub(super) const TRUE_FALSE: &[&str] = &["true", "false"];
/// The same, or neither.
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
                /// The same behind `auto`.
                pub const AUTO_OR_WORDS: &'static [&'static str] = &["auto", $($word),*];

                /// The word, as it is written.
                #[must_use]
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
    /// The parts of a block that are verified when a session reads it into the buffer cache.
    BlockChecksum { Typical "typical", Off "off" }
    /// The way of requests to the files, through the page cache or past it.
    FilesystemioOptions { None "none", Asynch "asynch", Directio "directio", Setall "setall" }
    /// The way of requests to the kernel.
    IoMethod { Sync "sync", Threads "threads", IoUring "io_uring", Null "null" }
    /// The way in which a log write becomes durable: by a call after it, or by the write itself.
    SyncMethod { Fdatasync "fdatasync", Fsync "fsync", OpenDatasync "open_datasync", OpenSync "open_sync" }
    /// The way to the log files, past the page cache or through it.
    LogFileIo { Direct "direct", Buffered "buffered" }
    /// The process that is put before all others.
    HighPriority { Lgwr "lgwr", None "none" }
}

impl FilesystemioOptions {
    /// True if requests of a session overlap.
    #[must_use]
    pub const fn is_asynchronous(self) -> bool {
        matches!(self, FilesystemioOptions::Asynch | FilesystemioOptions::Setall)
    }

    /// True if the page cache is bypassed.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, FilesystemioOptions::Directio | FilesystemioOptions::Setall)
    }
}
