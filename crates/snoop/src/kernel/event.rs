//! The tracepoints, a row each, and their records as typed events.
//!
//! ```text
//! instance  filter              tracepoints
//! names     threads of targets  open, close, dup, rename, fork, exec, exit: rare, read at once
//! calls     threads of targets  read, write, sync, io_uring submissions
//! disk      none                block requests, write-back, journal, io_uring completions
//! ```
//!
//! `disk` has no filter by thread, because the kernel issues and completes requests in whatever
//! thread runs. `names` is apart, so that its buffer can wake the reader at each event: a
//! descriptor is read from /proc before its process closes it.

use crate::error::SnoopError;
use crate::kernel::format::Slot;
use crate::kernel::page;
use crate::kernel::syscalls::{CALLS, Call, Effect};
use crate::kernel::tracefs::Instance;
use std::collections::HashMap;

/// Ring buffer that keeps a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Events that change descriptors and processes.
    Names,
    /// Calls and submissions of the targets.
    Calls,
    /// Events of the kernel in any thread.
    Disk,
}

/// Event with its time and thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub time: u64,
    pub thread: u32,
    pub what: What,
}

/// Name of a thread, without its zeros.
pub(crate) type Comm = [u8; 16];

/// A block request as a tracepoint shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The kernel's number of the disk: major times 2^20, plus minor.
    pub device: u32,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Number of sectors; 0 for a flush.
    pub sectors: u32,
    /// Direction and flags: `WFS`, `RA`.
    pub flags: [u8; 10],
    /// Name of the running thread; empty at a completion.
    pub comm: Comm,
}

/// Kind and figures of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Enter {
        call: &'static Call,
        arguments: [u64; 4],
    },
    Exit {
        call: &'static Call,
        result: i64,
    },
    Fork {
        child: u32,
        is_thread: bool,
        comm: Comm,
    },
    Exec,
    /// The last thread of a process ended, or another one.
    End {
        is_process: bool,
    },
    /// A thread changed its name.
    Named {
        thread: u32,
        comm: Comm,
    },
    RingSubmit {
        request: u64,
        operation: u8,
    },
    RingFile {
        request: u64,
        descriptor: i32,
    },
    RingAsync {
        request: u64,
    },
    RingDone {
        request: u64,
        result: i64,
    },
    /// Direct I/O of a request that completes later.
    DirectBegin {
        device: u32,
        inode: u64,
        offset: u64,
    },
    /// A request was made: a thread waits for it or goes on.
    Queued(Block),
    /// The device got a request.
    Issued(Block),
    /// The device completed it, or part of it.
    Completed(Block),
    /// The thread writes back the pages of a file, until the end.
    WriteBack {
        inode: u64,
    },
    WriteBackEnd,
}

/// Decoder of a kind of record.
#[derive(Debug, Clone)]
enum Decoder {
    Enter(&'static Call),
    Exit(&'static Call),
    Fields(fn(&Fields<'_>) -> What, Vec<Slot>),
}

/// Fields of a record in the order of its row.
struct Fields<'r> {
    slots: &'r [Slot],
    record: &'r [u8],
}

impl Fields<'_> {
    fn number(&self, at: usize) -> u64 {
        self.slots[at].number(self.record)
    }

    fn signed(&self, at: usize) -> i64 {
        self.slots[at].signed(self.record)
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        let text = self.slots[at].text(self.record);
        let length = text.len().min(N);
        array[..length].copy_from_slice(&text[..length]);
        array
    }

    fn block(&self) -> Block {
        let comm = if self.slots.len() > 4 { self.array(4) } else { Comm::default() };
        Block {
            device: self.number(0) as u32,
            sector: self.number(1),
            sectors: self.number(2) as u32,
            flags: self.array(3),
            comm,
        }
    }
}

/// Need of a view for a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    /// Older kernels and other architectures lack it; the trace sees less.
    May,
}

struct Row {
    name: &'static str,
    role: Role,
    need: Need,
    filter: &'static str,
    fields: &'static [&'static str],
    decode: fn(&Fields<'_>) -> What,
}

/// Flag of clone(2): the child is a thread of its parent's process.
const CLONE_THREAD: u64 = 0x10000;
const BLOCK: &[&str] = &["dev", "sector", "nr_sector", "rwbs", "comm"];
const COMPLETED: &[&str] = &["dev", "sector", "nr_sector", "rwbs"];

/// Tracepoints other than those of system calls.
const ROWS: [Row; 15] = [
    Row {
        name: "task/task_newtask",
        role: Role::Names,
        need: Need::Must,
        filter: "",
        fields: &["pid", "clone_flags", "comm"],
        decode: |of| What::Fork {
            child: of.number(0) as u32,
            is_thread: of.number(1) & CLONE_THREAD != 0,
            comm: of.array(2),
        },
    },
    Row {
        name: "task/task_rename",
        role: Role::Names,
        need: Need::May,
        filter: "",
        fields: &["pid", "newcomm"],
        decode: |of| What::Named { thread: of.number(0) as u32, comm: of.array(1) },
    },
    Row {
        name: "sched/sched_process_exec",
        role: Role::Names,
        need: Need::Must,
        filter: "",
        fields: &[],
        decode: |_| What::Exec,
    },
    Row {
        name: "sched/sched_process_exit",
        role: Role::Names,
        need: Need::Must,
        filter: "",
        fields: &["group_dead"],
        decode: |of| What::End { is_process: of.number(0) != 0 },
    },
    Row {
        name: "io_uring/io_uring_submit_req",
        role: Role::Calls,
        need: Need::May,
        filter: "",
        fields: &["req", "opcode"],
        decode: |of| What::RingSubmit { request: of.number(0), operation: of.number(1) as u8 },
    },
    Row {
        name: "io_uring/io_uring_file_get",
        role: Role::Calls,
        need: Need::May,
        filter: "",
        fields: &["req", "fd"],
        decode: |of| What::RingFile { request: of.number(0), descriptor: of.signed(1) as i32 },
    },
    Row {
        name: "io_uring/io_uring_queue_async_work",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: &["req"],
        decode: |of| What::RingAsync { request: of.number(0) },
    },
    Row {
        name: "io_uring/io_uring_complete",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: &["req", "res"],
        decode: |of| What::RingDone { request: of.number(0), result: of.signed(1) },
    },
    Row {
        name: "iomap/iomap_dio_rw_begin",
        role: Role::Disk,
        need: Need::May,
        filter: "aio == 1",
        fields: &["dev", "ino", "pos"],
        decode: |of| What::DirectBegin {
            device: of.number(0) as u32,
            inode: of.number(1),
            offset: of.number(2),
        },
    },
    Row {
        name: "block/block_io_start",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: BLOCK,
        decode: |of| What::Queued(of.block()),
    },
    Row {
        name: "block/block_rq_issue",
        role: Role::Disk,
        need: Need::Must,
        filter: "",
        fields: BLOCK,
        decode: |of| What::Issued(of.block()),
    },
    Row {
        name: "block/block_rq_complete",
        role: Role::Disk,
        need: Need::Must,
        filter: "",
        fields: COMPLETED,
        decode: |of| What::Completed(of.block()),
    },
    Row {
        name: "ext4/ext4_writepages",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: &["ino"],
        decode: |of| What::WriteBack { inode: of.number(0) },
    },
    Row {
        name: "writeback/writeback_single_inode_start",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: &["ino"],
        decode: |of| What::WriteBack { inode: of.number(0) },
    },
    Row {
        name: "writeback/writeback_single_inode",
        role: Role::Disk,
        need: Need::May,
        filter: "",
        fields: &[],
        decode: |_| What::WriteBackEnd,
    },
];

/// Decoders of enabled tracepoints, by the number in their records.
#[derive(Debug, Default)]
pub(crate) struct Decoders {
    by_id: HashMap<u16, Decoder>,
    /// Tracepoints that this kernel lacks.
    pub missing: Vec<String>,
}

impl Decoders {
    /// Enables the tracepoints of a role in its instance.
    /// Fails if the kernel lacks one that the view needs, or a field of it.
    pub fn enable(&mut self, instance: &Instance, role: Role) -> Result<(), SnoopError> {
        for row in ROWS.iter().filter(|row| row.role == role) {
            match instance.enable(row.name, row.filter) {
                Ok(format) => {
                    let slots = row.fields.iter().map(|field| {
                        format.slot(field).ok_or_else(|| SnoopError::Format {
                            name: row.name.to_string(),
                            why: format!("it has no field {field}"),
                            path: format!("/sys/kernel/tracing/events/{}/format", row.name).into(),
                        })
                    });
                    let slots = slots.collect::<Result<Vec<_>, _>>()?;
                    self.by_id.insert(format.id, Decoder::Fields(row.decode, slots));
                }
                Err(SnoopError::NoTracepoint { .. }) if row.need == Need::May => {
                    self.missing.push(row.name.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        CALLS.iter().filter(|call| role_of(call) == Some(role)).try_for_each(|call| self.call(instance, call))
    }

    fn call(&mut self, instance: &Instance, call: &'static Call) -> Result<(), SnoopError> {
        let sides = [("enter", Decoder::Enter(call)), ("exit", Decoder::Exit(call))];
        for (side, decoder) in sides {
            let unused = match call.effect {
                Effect::Open | Effect::Rename => side == "enter",
                Effect::Close => side == "exit",
                _ => false,
            };
            if unused {
                continue;
            }
            // Of fcntl only F_DUPFD and F_DUPFD_CLOEXEC; an exit without an entry is left out.
            let filter = match (call.kernel_name, side) {
                ("fcntl", "enter") => "cmd == 0 || cmd == 1030",
                _ => "",
            };
            match instance.enable(&format!("syscalls/sys_{side}_{}", call.kernel_name), filter) {
                Ok(format) => {
                    self.by_id.insert(format.id, decoder);
                }
                // No architecture has all of them; read and write are on each.
                Err(SnoopError::NoTracepoint { .. }) if !matches!(call.kernel_name, "read" | "write") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Appends the events of a page; returns the number that were lost before it.
    pub fn decode(&self, page: &[u8], events: &mut Vec<Event>) -> u64 {
        page::walk(page, &mut |time, record| events.extend(self.event(time, record)))
    }

    fn event(&self, time: u64, record: &[u8]) -> Option<Event> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let thread = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
        let word = |at: usize| {
            let bytes = record.get(16 + 8 * at..24 + 8 * at).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let what = match self.by_id.get(&id)? {
            Decoder::Enter(call) => What::Enter { call, arguments: [0, 1, 2, 3].map(word) },
            Decoder::Exit(call) => What::Exit { call, result: word(0) as i64 },
            Decoder::Fields(decode, slots) => decode(&Fields { slots, record }),
        };
        Some(Event { time, thread, what })
    }
}

/// Returns the buffer that keeps a call; none if it is not traced.
fn role_of(call: &Call) -> Option<Role> {
    Some(match call.effect {
        Effect::Open | Effect::Duplicate | Effect::Close | Effect::Rename => Role::Names,
        _ => Role::Calls,
    })
}

/// Returns a name of at most 16 bytes as text.
pub fn comm_text(comm: &[u8]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::Format;

    #[test]
    fn a_kernel_without_a_tracepoint_or_a_field_is_refused_with_the_cure_or_sees_less() {
        let directory = tempfile::tempdir().expect("a directory");
        let format = |event: &str, fields: &[&str]| {
            let path = directory.path().join("events").join(event);
            std::fs::create_dir_all(&path).expect("a directory");
            let line = |field: &&str| format!("\tfield:int {field};\toffset:8;\tsize:4;\tsigned:0;\n");
            let lines: String = fields.iter().map(line).collect();
            std::fs::write(path.join("format"), format!("ID: 7\n{lines}")).expect("a file");
        };
        let instance = Instance::imitation(directory.path());
        let refused = || Decoders::default().enable(&instance, Role::Disk).expect_err("refused").to_string();
        let missing = refused();
        assert!(missing.starts_with("tracepoint block/block_rq_issue is missing in kernel "), "{missing}");
        assert!(
            missing.ends_with("a kernel with CONFIG_BLOCK=y has it, and --sample does without"),
            "{missing}"
        );
        format("block/block_rq_issue", &BLOCK[..3]);
        let odd = refused();
        let begin = "the format of tracepoint block/block_rq_issue is not understood: it has no field rwbs";
        assert!(odd.starts_with(begin), "{odd}");
        format("block/block_rq_issue", BLOCK);
        format("block/block_rq_complete", COMPLETED);
        let mut decoders = Decoders::default();
        decoders.enable(&instance, Role::Disk).expect("the others are not needed");
        assert!(decoders.missing.contains(&"block/block_io_start".to_string()), "{:?}", decoders.missing);
    }

    #[test]
    fn records_become_events_by_their_number() {
        let format = Format::parse(
            "ID: 9\n\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
             \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
             \tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;\n",
        )
        .expect("a format");
        let slots = COMPLETED.iter().map(|field| format.slot(field).expect("a field")).collect();
        let mut decoders = Decoders::default();
        decoders.by_id.insert(9, Decoder::Fields(|of| What::Completed(of.block()), slots));
        decoders.by_id.insert(10, Decoder::Enter(&CALLS[1]));
        let mut record = vec![0_u8; 48];
        record[0] = 9;
        record[4..8].copy_from_slice(&77_u32.to_le_bytes());
        record[8..12].copy_from_slice(&(254_u32 << 20).to_le_bytes());
        record[16..24].copy_from_slice(&2048_u64.to_le_bytes());
        record[24] = 16;
        record[28..31].copy_from_slice(b"WFS");
        let event = decoders.event(5, &record).expect("known");
        assert_eq!((event.time, event.thread), (5, 77));
        let What::Completed(block) = event.what else { panic!("{event:?}") };
        assert_eq!((block.device >> 20, block.sector, block.sectors), (254, 2048, 16));
        assert_eq!(comm_text(&block.flags), "WFS");
        record[0] = 10;
        let Some(Event { what: What::Enter { call, arguments }, .. }) = decoders.event(5, &record) else {
            panic!("an entry")
        };
        assert_eq!(
            (call.name, arguments[0], arguments[1]),
            ("pread", 2048, u64::from_le_bytes(record[24..32].try_into().expect("8 bytes")))
        );
        record[0] = 11;
        assert!(decoders.event(5, &record).is_none(), "another's event");
        assert!(decoders.event(5, &record[..3]).is_none(), "a cut record");
    }
}
