//! Tests io_uring in this process, and names the cure where it does not work.
//!
//! The probe sets up a ring of four entries and sends a NOP and a read of the probe file through
//! it. Then it tries each set-up and each kind of registration separately, because one may be
//! missing where the others work. It does not check versions: a filter, a sysctl or a limit forbids
//! io_uring on kernels that have it, each with another error. The error and the state of the
//! process give reason and cure.
//!
//! Polling for completions is tried with a direct read of a written block, and only on a disk that
//! has queues for it. On other disks the kernel's answer differs from version to version, and some
//! kernels wait for the interrupt all the same.
//!
//! Every wait is bounded by [`WAIT_MAX`] where the kernel can bound it (5.11).

use crate::ring_setup::build;
use crate::{Arena, IoBuffer};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Parameters, opcode, squeue};
use plumb_events::now;
use plumb_host::device::{
    self, DeviceDescription, DeviceError, DirectIoSupport, IoUringSupport, Probed, RingPart, RingRefusal,
    RingSetup,
};
use plumb_host::kernel::{Host, status_field};
use plumb_units::Nanos;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Entries of the ring: NOP and read are submitted one after the other.
const ENTRIES: u32 = 4;
/// A read of one sector takes milliseconds on the slowest disk; a server
/// that is down never answers.
const WAIT_MAX: Timespec = Timespec::new().sec(5);
const WAIT_MAX_NS: u64 = 5_000_000_000;
/// Bytes that are read from the start of the probe file, at most.
const READ_BYTES: usize = 512;

const SECCOMP_CURE: &str = "run the container with a seccomp profile that allows io_uring_setup, \
     io_uring_enter and io_uring_register (Docker: --security-opt seccomp=PROFILE)";

/// Describes the storage under `path`, an existing directory or file, and tries io_uring there.
/// Creates and unlinks a probe file in the directory (or next to the file).
///
/// # Errors
/// When the path does not exist, or `/proc` does not list its mount. A probe that fails is no
/// error: the description reports it.
pub fn describe_device(path: &Path) -> Result<DeviceDescription, DeviceError> {
    device::describe(path, support)
}

/// Tries io_uring, on the probe file if there is one.
fn support(probed: &Probed<'_>) -> IoUringSupport {
    let state = ProcessState::of(probed.host);
    match attempt(probed.buffered) {
        Ok(features) => {
            let refusals = refusals(&state, probed.buffered, &PolledRead::of(probed));
            IoUringSupport::Yes { features, file_read: probed.buffered.is_some(), refusals }
        }
        Err(Refusal { step, error }) => {
            let (reason, cure) = explain(&error, &state);
            IoUringSupport::No { why: format!("{step} failed: {error}: {reason}"), cure }
        }
    }
}

/// Means to test polling for completions.
#[derive(Debug)]
enum PolledRead<'a> {
    /// The file opened for direct I/O, and a written block of it: its offset
    /// and its length, in bytes.
    Possible(&'a File, usize),
    /// The reason, and the cure.
    Impossible(String, String),
}

impl<'a> PolledRead<'a> {
    fn of(probed: &Probed<'a>) -> PolledRead<'a> {
        let say = |why: &str, cure: &str| PolledRead::Impossible(why.to_owned(), cure.to_owned());
        match (probed.block.map(|block| block.queue.io_poll), probed.direct_io, probed.direct) {
            (None, ..) => say("there is no block device to poll", "use a local disk"),
            (Some(None | Some(false)), ..) => say(
                "the disk has no queues that can be polled (queue/io_poll is 0)",
                "load its driver with some: nvme.poll_queues=N, virtio_blk.num_poll_queues=N",
            ),
            (_, DirectIoSupport::Yes { offset_align, .. }, Some(file)) => {
                PolledRead::Possible(file, offset_align.0 as usize)
            }
            _ => say("only direct I/O can be polled for", "use a file system with direct I/O"),
        }
    }
}

/// Returns the parts that fail although a plain ring works.
fn refusals(state: &ProcessState, probe: Option<&File>, polled: &PolledRead<'_>) -> Vec<RingRefusal> {
    let refusal = |part, (why, cure): (String, String)| RingRefusal { part, why, cure };
    let mut found = Vec::new();
    let registrations = [
        (RingPart::RegisteredBuffers, registers_a_page as fn(&IoUring) -> io::Result<()>),
        (RingPart::RegisteredFiles, registers_a_file),
    ];
    for (part, register) in registrations {
        if let Err(error) = build(RingSetup::Plain, ENTRIES).and_then(|ring| register(&ring)) {
            let (reason, cure) = explain(&error, state);
            found.push(refusal(part, (format!("registration failed: {error}: {reason}"), cure)));
        }
    }
    for setup in [RingSetup::Cooperative, RingSetup::Deferred, RingSetup::SubmissionPolling] {
        let tried = build(setup, ENTRIES).and_then(|mut ring| match probe {
            Some(file) => read(&mut ring, file),
            None => submit_one(&mut ring, &opcode::Nop::new().build()),
        });
        if let Err(error) = tried {
            found.push(refusal(RingPart::Setup(setup), explain_setup(setup, &error, state)));
        }
    }
    let setup = RingSetup::CompletionPolling;
    let tried = match polled {
        PolledRead::Impossible(why, cure) => Err((why.clone(), cure.clone())),
        PolledRead::Possible(file, bytes) => {
            poll_a_read(file, *bytes).map_err(|error| explain_setup(setup, &error, state))
        }
    };
    found.extend(tried.err().map(|said| refusal(RingPart::Setup(setup), said)));
    found
}

/// Returns reason and cure for a set-up that fails where a plain ring works.
fn explain_setup(setup: RingSetup, error: &io::Error, state: &ProcessState) -> (String, String) {
    let (reason, cure) = match Errno::from_io_error(error) {
        Some(Errno::INVAL) => {
            ("the kernel does not know it".to_owned(), format!("use a kernel of {} or later", setup.since()))
        }
        Some(Errno::OPNOTSUPP) => (
            "the file system or the disk cannot do it".to_owned(),
            "use another file system, or a disk with queues that can be polled".to_owned(),
        ),
        _ => explain(error, state),
    };
    (format!("a ring with {setup} failed: {error}: {reason}"), cure)
}

/// The failed step and its error.
struct Refusal {
    step: &'static str,
    error: io::Error,
}

/// Returns the kernel's features after one ring has worked.
fn attempt(probe: Option<&File>) -> Result<Vec<&'static str>, Refusal> {
    let at = |step| move |error| Refusal { step, error };
    let mut ring = IoUring::new(ENTRIES).map_err(at("io_uring_setup"))?;
    submit_one(&mut ring, &opcode::Nop::new().build()).map_err(at("a NOP through io_uring"))?;
    if let Some(file) = probe {
        read(&mut ring, file).map_err(at("a read through io_uring"))?;
    }
    Ok(feature_names(ring.params()))
}

/// Reads the start of the file. A file shorter than the buffer is no error.
fn read(ring: &mut IoUring, file: &File) -> io::Result<()> {
    let buffer = Box::leak(vec![0u8; READ_BYTES].into_boxed_slice());
    let address: *mut u8 = buffer.as_mut_ptr();
    let entry = opcode::Read::new(Fd(file.as_raw_fd()), address, READ_BYTES as u32).offset(0).build();
    // On failure the kernel may still write to the buffer, so this path leaks it, once.
    submit_one(ring, &entry)?;
    #[allow(unsafe_code)]
    // SAFETY: the pointer is that of the box leaked above, nothing else refers
    // to it, and its only request has completed.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(address, READ_BYTES)) });
    Ok(())
}

/// Submits one request and waits for its completion.
fn submit_one(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    #[allow(unsafe_code)]
    // SAFETY: a NOP refers to nothing; a read refers to memory that its caller
    // leaks unless the request has completed, and to a file that outlives the ring.
    let pushed = unsafe { ring.submission().push(entry) };
    pushed.map_err(|_full| io::Error::from(Errno::BUSY))?;
    if ring.params().is_feature_ext_arg() {
        let bounded = SubmitArgs::new().timespec(&WAIT_MAX);
        ring.submitter().submit_with_args(1, &bounded)?;
    } else {
        ring.submit_and_wait(1)?;
    }
    let completion = ring.completion().next().ok_or_else(|| io::Error::from(Errno::TIME))?;
    match u32::try_from(completion.result()) {
        Ok(_) => Ok(()),
        Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
    }
}

/// Reads a block past the page cache by asking the disk for its completion.
fn poll_a_read(file: &File, bytes: usize) -> io::Result<()> {
    let mut ring = build(RingSetup::CompletionPolling, ENTRIES)?;
    let (_arena, mut buffers) = Arena::buffers(bytes, 1).map_err(io::Error::other)?;
    let buffer: Option<IoBuffer> = buffers.pop();
    let address = buffer.as_ref().map_or(std::ptr::null_mut(), |buffer| buffer.as_ptr().cast_mut());
    let entry = opcode::Read::new(Fd(file.as_raw_fd()), address, bytes as u32).offset(bytes as u64).build();
    #[allow(unsafe_code)]
    // SAFETY: the buffer and the file outlive the request, or the buffer is leaked below.
    unsafe { ring.submission().push(&entry) }.map_err(|_full| io::Error::from(Errno::BUSY))?;
    let end = now() + Nanos(WAIT_MAX_NS);
    loop {
        // Submits, then checks once; a polled ring never sleeps in the kernel.
        let entered = ring.submit();
        if let Some(completion) = ring.completion().next() {
            let result = completion.result();
            return if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
        }
        if let Some(error) = entered.err().or_else(|| (now() > end).then(|| Errno::TIME.into())) {
            // The kernel may still write to the buffer, so it leaks, once.
            std::mem::forget(buffer);
            return Err(error);
        }
    }
}

fn registers_a_page(ring: &IoUring) -> io::Result<()> {
    let mut page = vec![0u8; rustix::param::page_size()];
    let buffer = libc::iovec { iov_base: page.as_mut_ptr().cast(), iov_len: page.len() };
    #[allow(unsafe_code)]
    // SAFETY: the buffer lives until it is unregistered below, and no request
    // in between uses it.
    unsafe { ring.submitter().register_buffers(&[buffer]) }?;
    ring.submitter().unregister_buffers()
}

fn registers_a_file(ring: &IoUring) -> io::Result<()> {
    let file = File::open("/dev/null")?;
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    ring.submitter().unregister_files()
}

fn feature_names(parameters: &Parameters) -> Vec<&'static str> {
    [
        (parameters.is_feature_single_mmap(), "single_mmap"),
        (parameters.is_feature_nodrop(), "nodrop"),
        (parameters.is_feature_submit_stable(), "submit_stable"),
        (parameters.is_feature_fast_poll(), "fast_poll"),
        (parameters.is_feature_sqpoll_nonfixed(), "sqpoll_nonfixed"),
        (parameters.is_feature_ext_arg(), "ext_arg"),
        (parameters.is_feature_native_workers(), "native_workers"),
        (parameters.is_feature_resource_tagging(), "resource_tagging"),
        (parameters.is_feature_skip_cqe_on_success(), "skip_cqe_on_success"),
        (parameters.is_feature_linked_file(), "linked_file"),
        (parameters.is_feature_min_timeout(), "min_timeout"),
        (parameters.is_feature_no_iowait(), "no_iowait"),
    ]
    .into_iter()
    .filter_map(|(present, name)| present.then_some(name))
    .collect()
}

/// State of the process that decides about io_uring.
struct ProcessState {
    /// `kernel.io_uring_disabled`: 0 allows all processes, 1 the privileged, 2 none.
    disabled: Option<u32>,
    /// True if a seccomp filter is installed.
    filtered: bool,
    /// The limit on locked memory, formatted.
    memlock: String,
}

impl ProcessState {
    fn of(host: &Host) -> ProcessState {
        let text = |path: &str| fs::read_to_string(path).ok();
        // A filter binds single threads, so the calling thread's status decides.
        let status = text("/proc/thread-self/status").or_else(|| text("/proc/self/status"));
        let disabled = text("/proc/sys/kernel/io_uring_disabled");
        ProcessState {
            disabled: disabled.and_then(|text| text.trim().parse().ok()),
            filtered: status_field(&status.unwrap_or_default(), "Seccomp") == Some("2"),
            memlock: host.memlock_soft.map_or("unlimited".to_owned(), |limit| limit.to_string()),
        }
    }
}

/// Returns reason and cure for an error of io_uring in this process.
pub(crate) fn explain_ring(error: &io::Error) -> (String, String) {
    explain(error, &ProcessState::of(&Host::this()))
}

/// Returns reason and cure for an error of io_uring, given the state of the process.
fn explain(error: &io::Error, state: &ProcessState) -> (String, String) {
    let say = |reason: &str, cure: &str| (reason.to_owned(), cure.to_owned());
    match (Errno::from_io_error(error), state.disabled) {
        (Some(Errno::NOSYS), _) if state.filtered => {
            say("a seccomp filter hides it, or the kernel lacks it", SECCOMP_CURE)
        }
        (Some(Errno::NOSYS), _) => {
            say("the kernel is older than 5.1 or built without it", "use a kernel with CONFIG_IO_URING")
        }
        (Some(Errno::PERM), Some(2)) => {
            say("kernel.io_uring_disabled is 2", "sysctl -w kernel.io_uring_disabled=0")
        }
        (Some(Errno::PERM), Some(1)) => say(
            "kernel.io_uring_disabled is 1",
            "sysctl -w kernel.io_uring_disabled=0, or join the group kernel.io_uring_group names",
        ),
        (Some(Errno::PERM | Errno::ACCESS), _) if state.filtered => {
            say("a seccomp filter forbids it", SECCOMP_CURE)
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => say(
            "a security module forbids it",
            "allow io_uring for this program in the SELinux or AppArmor policy",
        ),
        (Some(Errno::NOMEM), _) => (
            format!("locked memory is limited to {}", state.memlock),
            "set ulimit -l to 8192 or more (systemd: LimitMEMLOCK=8M)".to_owned(),
        ),
        (Some(Errno::MFILE), _) => {
            say("the process has too many files open", "set ulimit -n to 1024 or more")
        }
        (Some(Errno::TIME), _) => say(
            "no completion within 5 s",
            "look for a hung device or server under this path in the kernel log",
        ),
        _ => say("unexpected", "use another method of I/O: system calls or threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_io_uring_has_its_cure() {
        let check = |errno: i32, disabled: Option<u32>, filtered: bool, expect: (&str, &str)| {
            let state = ProcessState { disabled, filtered, memlock: "64 KB".to_owned() };
            let (reason, cure) = explain(&io::Error::from_raw_os_error(errno), &state);
            assert!(reason.contains(expect.0), "{reason}");
            assert!(cure.contains(expect.1), "{cure}");
        };
        check(libc::ENOSYS, None, false, ("older than 5.1", "CONFIG_IO_URING"));
        check(libc::ENOSYS, Some(0), true, ("seccomp", "seccomp=PROFILE"));
        check(libc::EPERM, Some(0), true, ("seccomp", "seccomp=PROFILE"));
        check(libc::EPERM, Some(1), false, ("is 1", "io_uring_group"));
        check(libc::EPERM, Some(2), true, ("is 2", "sysctl -w kernel.io_uring_disabled=0"));
        check(libc::EPERM, Some(0), false, ("security module", "SELinux"));
        check(libc::ENOMEM, Some(0), false, ("64 KB", "ulimit -l"));
        check(libc::EIO, Some(0), false, ("unexpected", "another method"));
    }
}
