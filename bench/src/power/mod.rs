//! Simulates losses of power on file systems of the kernel. No acknowledged commit may be lost.
//!
//! A trial makes a database on a file system that logs each operation ([`mounted`]), or on ext4,
//! xfs or btrfs on a loop device over one ([`place`]). A process with four sessions changes it,
//! reports each commit, and is killed. A second process recovers it, goes on, and is killed. The
//! log yields images of the file system after a loss of power ([`medium`]). For each image, a
//! process recovers the database, counts the transactions of each session and compares each index
//! with its table. It must find all acknowledged transactions, and at most one more per session. A
//! quarter of the images lose power again during recovery, each at three points.
//!
//! Canary: images of the same logs by a device whose syncs lie. The bench fails if all of these
//! are sound.
//!
//! A seed determines the settings, the length of a trial, and the points and survivors of its
//! images. The scheduler determines the order of operations, so a seed does not repeat each image.

mod medium;
mod mounted;
pub(super) mod place;
mod process;
mod tree;

use super::stop::{Room, Stop};
use clap::Args;
use medium::{Entry, Medium, Syncs};
use place::{Format, On, Place};
use plumb_crash::kill::{Expected, SESSIONS};
use plumb_crash::survivors;
use plumb_io::sim::power::Survivors;
use plumb_units::SplitMix;
use process::{Judgement, Work, finish, judge, kill_when};
use std::path::{Path, PathBuf};
use tree::Tree;

/// Prefix of the error on a machine that cannot run the bench.
const NEEDS: &str = "power needs root and /dev/fuse";
const IMAGES: u64 = 25;
/// One image of this number loses power again during recovery.
const SECOND_LOSS: u64 = 4;
const SECOND_LOSS_POINTS: usize = 3;
/// Images of one trial by a device whose syncs lie.
const CANARIES: u64 = 2;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// File systems below the database.
    #[arg(long, value_enum, default_value = "all")]
    on: On,
    /// Images on each file system, without those of recoveries and the canary.
    #[arg(long, default_value_t = 100)]
    images: u64,
    /// The first seed; each has 25 images.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Start no image after this number of seconds on a file system.
    #[arg(long)]
    seconds: Option<u64>,
    /// Parent of the mount points; the files are in memory.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    path: PathBuf,
    /// Run as a process of a trial: its work, database, reports and settings.
    #[arg(long, hide = true, num_args = 3..)]
    process: Option<Vec<String>>,
}

/// Runs the trials. The first unsound image ends them and prints its seed.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(given) = &options.process {
        return process::run(given);
    }
    require_rights()?;
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "power")?;
    place::prepare(room.path())?;
    for on in options.on.each() {
        match on.missing() {
            Some(skipped) => println!("{skipped}"),
            None => trials(options, on, room.path(), &stop)?,
        }
    }
    Ok(())
}

fn require_rights() -> anyhow::Result<()> {
    let user = rustix::process::geteuid();
    anyhow::ensure!(user.is_root(), "{NEEDS}: this is user {}; run it as root", user.as_raw());
    let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    device.map_err(|error| anyhow::anyhow!("{NEEDS}: opening /dev/fuse: {error}; load the module fuse"))?;
    Ok(())
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    trials: u64,
    operations: u64,
    syncs: u64,
    commits: u64,
    images: u64,
    recoveries: u64,
    /// Sessions with an unacknowledged commit.
    unsaid: u64,
    canaries: u64,
    canaries_refused: u64,
    canaries_lost: u64,
}

fn trials(options: &Options, on: On, room: &Path, stop: &Stop) -> anyhow::Result<()> {
    let begin = plumb_events::now();
    let seconds = || plumb_events::now().saturating_sub(begin).seconds();
    let out_of_time = || options.seconds.is_some_and(|most| seconds() > most as f64);
    let mut tally = Tally::default();
    for seed in options.seed.. {
        let images = options.images.saturating_sub(tally.images).min(IMAGES);
        if images == 0 || out_of_time() {
            break;
        }
        let trial = Trial::run(on, room, stop, seed)?;
        trial.canaries(&mut tally)?;
        for number in 0..images {
            if out_of_time() {
                break;
            }
            trial.image(number, &mut tally)?;
        }
        trial.count(&mut tally);
    }
    let Tally { trials, operations, syncs, commits, images, recoveries, unsaid, .. } = tally;
    println!(
        "{}: seeds {} to {}: {images} images and {recoveries} of their recoveries, of {operations} operations with {syncs} syncs; {commits} commits acknowledged, none lost; {unsaid} found besides; {:.0} s",
        on.name(),
        options.seed,
        options.seed + trials.max(1) - 1,
        seconds()
    );
    let Tally { canaries, canaries_refused, canaries_lost, .. } = tally;
    println!(
        "{}: canary: {canaries} images by syncs that lie: {canaries_refused} refused, {canaries_lost} with losses found",
        on.name()
    );
    anyhow::ensure!(
        trials == 0 || canaries_refused + canaries_lost > 0,
        "{}: syncs that lie lost nothing in {canaries} images: the harness finds nothing",
        on.name()
    );
    Ok(())
}

/// `filesystemio_options` and `io_method` for I/O through the page cache.
const BUFFERED: [&str; 3] = ["none sync", "asynch threads", "asynch io_uring"];
const DIRECT: [&str; 3] = ["directio sync", "setall threads", "setall io_uring"];

fn settings(on: On, random: &mut SplitMix) -> Vec<String> {
    let mut one_of = |values: &[&str]| values[random.below(values.len() as u64) as usize].to_string();
    // btrfs with checksums ignores O_DIRECT for reads, so the engine rejects direct I/O there.
    let has_direct = on != On::Btrfs;
    let way = match has_direct {
        true => one_of(&[BUFFERED, DIRECT].concat()),
        false => one_of(&BUFFERED),
    };
    let log_file_io: &[&str] =
        if has_direct { &["auto", "direct", "buffered"] } else { &["auto", "buffered"] };
    let (options, method) = way.split_once(' ').unwrap_or((&way, "auto"));
    [
        ("filesystemio_options", options.to_string()),
        ("io_method", method.to_string()),
        ("log_sync_method", one_of(&["fdatasync", "fsync", "open_datasync", "open_sync"])),
        ("log_file_io", one_of(log_file_io)),
        ("log_file_members", one_of(&["1", "2"])),
        ("db_block_size", one_of(&["2K", "8K", "16K"])),
        ("archive_log_mode", one_of(&["off", "off", "on"])),
        ("archive_log_dest", "copies".to_string()),
    ]
    .map(|(name, value)| format!("{name}={value}"))
    .into()
}

/// A changed database, and the log of its file system.
struct Trial<'a> {
    on: On,
    room: &'a Path,
    stop: &'a Stop,
    seed: u64,
    set: Vec<String>,
    /// The file system when the database was made; the log starts there.
    base: Medium,
    log: Vec<Entry>,
}

/// A loss of power at a point of a log.
#[derive(Debug, Clone, Copy)]
struct Loss {
    point: usize,
    lies_from: usize,
    survivors: Option<Survivors>,
}

impl Trial<'_> {
    /// Makes a database, and lets two processes change it until they are killed.
    fn run<'a>(on: On, room: &'a Path, stop: &'a Stop, seed: u64) -> anyhow::Result<Trial<'a>> {
        let mut random = SplitMix(seed);
        let set = settings(on, &mut random);
        let place = Place::open(on, room, on.blank(), Format::Make)?;
        let (home, acknowledged) = (place.home(), place.acknowledged());
        let work = |name| Work { name, home: &home, acknowledged: &acknowledged, set: &set };
        let named =
            |error: anyhow::Error| error.context(format!("{}: seed {seed}: {}", on.name(), set.join(" ")));
        finish(&work("create"), stop).map_err(named)?;
        let made = place.log_length();
        for _ in 0..2 {
            let enough = place.log_length() + 200 + random.below(2_500) as usize;
            kill_when(&work("change"), stop, || place.log_length() >= enough).map_err(named)?;
        }
        let mut making = place.into_log()?;
        let log = making.split_off(made);
        let mut base = Medium::new(on.blank(), on.sectors_whole());
        making.iter().for_each(|entry| base.advance(entry, Syncs::Hold));
        Ok(Trial { on, room, stop, seed, set, base, log })
    }

    fn count(&self, tally: &mut Tally) {
        tally.trials += 1;
        tally.operations += self.log.len() as u64;
        let is_sync = |entry: &&Entry| matches!(entry, Entry::Sync(_) | Entry::DurableWrite(_));
        tally.syncs += self.log.iter().filter(is_sync).count() as u64;
        tally.commits += self.expected(self.log.len()).iter().map(|expected| expected.least).sum::<u64>();
    }

    /// Returns the possible commits after a loss of power at a point.
    fn expected(&self, point: usize) -> Vec<Expected> {
        let mut expected = vec![Expected { least: 0, most: 1 }; SESSIONS];
        for entry in &self.log[..point] {
            if let Entry::Acknowledged(line) = entry {
                Expected::note(&mut expected, line.trim_end());
            }
        }
        expected
    }

    /// Tries one image, and for one in [`SECOND_LOSS`] its recovery.
    fn image(&self, number: u64, tally: &mut Tally) -> anyhow::Result<()> {
        let mut random = SplitMix(self.seed << 16 | number);
        let point = random.below(self.log.len() as u64 + 1) as usize;
        let loss = Loss { point, lies_from: point, survivors: None };
        let image = lose_power(&self.base, &self.log, loss, &mut random);
        let expected = self.expected(point);
        let named = |what: &str| {
            let set = self.set.join(" ");
            format!("{}: seed {} image {number}{what}, operation {point}: {set}", self.on.name(), self.seed)
        };
        let (judgement, recovery) = self.judge(&image)?;
        tally.unsaid +=
            hold(judgement, &expected).map_err(|wrong| anyhow::anyhow!("{}: {wrong}", named("")))?;
        tally.images += 1;
        if !number.is_multiple_of(SECOND_LOSS) {
            return Ok(());
        }
        let base = Medium::new(image, self.on.sectors_whole());
        for second in 0..SECOND_LOSS_POINTS {
            let point = random.below(recovery.len() as u64 + 1) as usize;
            let loss = Loss { point, lies_from: point, survivors: None };
            let again = lose_power(&base, &recovery, loss, &mut random);
            let held = hold(self.judge(&again)?.0, &expected);
            held.map_err(|wrong| anyhow::anyhow!("{}: {wrong}", named(&format!(" recovery {second}"))))?;
            tally.recoveries += 1;
        }
        Ok(())
    }

    /// Tries images of a device whose syncs lie. In the first one, nothing written after
    /// the database was made survives.
    fn canaries(&self, tally: &mut Tally) -> anyhow::Result<()> {
        let mut random = SplitMix(!self.seed);
        let length = self.log.len();
        for number in 0..CANARIES {
            let (lies_from, survivors) = match number {
                0 => (0, Some(Survivors::None)),
                _ => (length - (1 + random.below(400) as usize).min(length), None),
            };
            let loss = Loss { point: length, lies_from, survivors };
            let image = lose_power(&self.base, &self.log, loss, &mut random);
            let judgement = self.judge(&image)?.0;
            let is_refused = matches!(judgement, Judgement::Refused(_));
            let is_sound = hold(judgement, &self.expected(length)).is_ok();
            tally.canaries += 1;
            tally.canaries_refused += u64::from(is_refused);
            tally.canaries_lost += u64::from(!is_sound && !is_refused);
        }
        Ok(())
    }

    /// Recovers an image; also returns the log of the recovery.
    fn judge(&self, image: &Tree) -> anyhow::Result<(Judgement, Vec<Entry>)> {
        self.stop.check()?;
        let place = match Place::open(self.on, self.room, image.clone(), Format::Found) {
            Ok(place) => place,
            Err(error) => {
                self.stop.check()?;
                return Ok((Judgement::Refused(error.to_string()), Vec::new()));
            }
        };
        let (home, acknowledged) = (place.home(), place.acknowledged());
        let work = Work { name: "judge", home: &home, acknowledged: &acknowledged, set: &self.set };
        let judgement = judge(&work, self.stop)?;
        Ok((judgement, place.into_log()?))
    }
}

/// Returns a file system after a log and a loss of power.
fn lose_power(base: &Medium, log: &[Entry], loss: Loss, random: &mut SplitMix) -> Tree {
    let mut medium = base.clone();
    for (number, entry) in log[..loss.point].iter().enumerate() {
        let syncs = if number < loss.lies_from { Syncs::Hold } else { Syncs::Lie };
        medium.advance(entry, syncs);
    }
    let drawn = survivors(random, medium.unsynced());
    medium.image(loss.survivors.unwrap_or(drawn))
}

/// Compares a recovered database with the acknowledged commits. Returns the number of
/// sessions with one more commit.
fn hold(judgement: Judgement, expected: &[Expected]) -> Result<u64, String> {
    let found = match judgement {
        Judgement::Found(found) => found,
        Judgement::Refused(why) => return Err(format!("it does not open: {why}")),
        Judgement::Wrong(wrong) => return Err(wrong),
    };
    for (session, (found, Expected { least, most })) in found.iter().zip(expected).enumerate() {
        if !(*least..=*most).contains(found) {
            return Err(format!("session {session} has {found} commits, expected {least} to {most}"));
        }
    }
    Ok(found.iter().zip(expected).filter(|(found, expected)| **found > expected.least).count() as u64)
}
