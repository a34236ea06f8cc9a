//! Sorts a file of lines by plumb and by GNU sort, with the same total memory and the same number
//! of threads.
//!
//! Lines resemble those of an access log: an address with a shared prefix, a number, a tail.
//! Rounds are interleaved in random order. Both programs read a file that is not in the page cache.
//! plumb writes past the page cache and syncs; GNU sort's output is synced after it. Both are timed
//! until then. The outputs are compared byte by byte and removed. plumb's check of its own output
//! is not timed, because GNU sort makes none.

use super::stop::{Room, Stop};
use super::{Spread, order};
use anyhow::{Context, ensure};
use clap::Args;
use plumb_engine::instance::InitialSizes;
use plumb_engine::line_sort::{LineSortSpec, Shape, SortOrder, Ties, sort_lines};
use plumb_engine::{Instance, Layout};
use plumb_events::now;
use plumb_host::readings;
use plumb_io::{DirectIo, Disk, OpenMode};
use plumb_proof::random::Generator;
use plumb_units::{Bytes, RowCount};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Args)]
pub struct Options {
    /// Number of lines to sort.
    #[arg(long, default_value_t = 10_000_000)]
    lines: u64,
    /// Total memory of each program.
    #[arg(long, default_value = "128M")]
    memory: Bytes,
    /// Parent of the bench's directory, which is removed at the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Number of sorts by each program.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Setting of plumb, as name=value, over those derived from the memory.
    #[arg(long = "set")]
    set: Vec<String>,
}

/// Memory outside the sort areas: read and write buffers, the table queue, the program.
const OVERHEAD: u64 = 32 * Bytes::M;
/// Servers of plumb and threads of GNU sort.
const DEGREE: u64 = 2;

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "lines")?;
    let input = room.path().join("in.txt");
    write_lines(&input, options.lines)?;
    let bytes = fs::metadata(&input)?.len();
    println!("{} lines, {}, {} of memory", RowCount(options.lines), Bytes(bytes), options.memory);
    let area = options.memory.0.saturating_sub(OVERHEAD) / DEGREE / Bytes::M * Bytes::M;
    let (area, degree) = (Bytes(area.max(Bytes::M)).as_setting(), DEGREE.to_string());
    let given = [
        ("sort_area_size", area.as_str()),
        ("parallel_degree", &degree),
        ("db_cache_size", "1M"),
        ("db_block_size", "32K"),
    ];
    let settings = super::settings(&given, &options.set)?;
    let sizes = InitialSizes { users: Bytes(1), temp: Bytes(bytes + bytes / 4), indx: Bytes(1) };
    let layout = Layout::in_one(room.path().join("plumb"));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    stop.interruptible(|cancel| {
        let instance = Instance::create(&layout, settings, sizes, cancel)?;
        let mut random = Generator::new(1);
        for _ in 0..options.repeat {
            for who in order(&mut random, 2) {
                stop.check()?;
                cold(&input)?;
                match who {
                    0 => ours.push(by_plumb(&instance, room.path())?),
                    _ => theirs.push(by_gnu(room.path(), options.memory)?),
                }
            }
            compare(room.path())?;
        }
        Ok(())
    })?;
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| theirs / ours).collect();
    let show = |seconds: Vec<f64>| Spread::of(seconds).show(2);
    println!(
        "plumb     {} s\nGNU sort  {} s\nGNU sort takes {} times as long",
        show(ours),
        show(theirs),
        show(ratios)
    );
    Ok(())
}

fn write_lines(path: &Path, count: u64) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for line in 0..count {
        let mixed = (line ^ line >> 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        writeln!(
            file,
            "/shop/{:03}/item/{:05} {} {line}",
            mixed >> 57,
            mixed >> 20 & 0xFFFF,
            mixed >> 44 & 0x3FF
        )?;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

/// Evicts a file from the page cache.
fn cold(path: &Path) -> anyhow::Result<()> {
    rustix::fs::sync();
    let file = Disk::Kernel.open(path, OpenMode::Read, DirectIo::Off)?;
    let _ = file.descriptor().map(readings::drop_cache);
    Ok(())
}

fn by_plumb(instance: &Instance, room: &Path) -> anyhow::Result<f64> {
    let order = SortOrder { keys: Vec::new(), ties: Ties::Bytes };
    let (input, output) = (room.join("in.txt"), room.join("ours.txt"));
    let begin = now();
    sort_lines(instance, &LineSortSpec { input, output, shape: Shape::Lines, order })?;
    Ok(now().saturating_sub(begin).seconds())
}

fn by_gnu(room: &Path, memory: Bytes) -> anyhow::Result<f64> {
    let output = room.join("theirs.txt");
    let mut sort = Command::new("sort");
    sort.env("LC_ALL", "C").arg("-S").arg(format!("{}K", memory.0 / Bytes::K));
    sort.arg(format!("--parallel={DEGREE}"))
        .arg("-T")
        .arg(room)
        .arg("-o")
        .arg(&output)
        .arg(room.join("in.txt"));
    let begin = now();
    ensure!(sort.status().context("sort cannot be started")?.success(), "sort failed");
    File::open(&output)?.sync_all()?;
    Ok(now().saturating_sub(begin).seconds())
}

/// Compares both outputs, and removes them.
fn compare(room: &Path) -> anyhow::Result<()> {
    let paths = ["ours.txt", "theirs.txt"].map(|name| room.join(name));
    let open = |path: &PathBuf| File::open(path).map(|file| BufReader::with_capacity(1 << 20, file));
    let (mut one, mut two) = (open(&paths[0])?, open(&paths[1])?);
    let (mut mine, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    ensure!(fs::metadata(&paths[0])?.len() == fs::metadata(&paths[1])?.len(), "wrong result: another length");
    loop {
        let read = one.read(&mut mine)?;
        two.read_exact(&mut other[..read])?;
        ensure!(mine[..read] == other[..read], "wrong result: another order");
        if read == 0 {
            break;
        }
    }
    for path in paths {
        fs::remove_file(path)?;
    }
    Ok(())
}
