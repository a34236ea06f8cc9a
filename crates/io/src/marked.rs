//! The search for marked files and directories of killed processes, and their removal.
//!
//! ```text
//! directory, its plumb-reports ──> marks of dead processes ──> maker ──> parts ──> Remains
//! ```
//!
//! Other users may write to a searched directory, as to `/tmp`. So another user's mark counts only
//! for that user's files, and removal goes by names beneath the searched directory and follows no
//! link. A mount below a marked directory is not entered: its content is not of this process.
//!
//! An empty directory with a maker's name and without a mark is that of a process that was killed
//! before it made one.
//!
//! - Nothing of a living process is found, and no process takes over what was found, because a
//!   [`Remains`] holds the mark.
//! - A directory with a part that its maker does not make stays as it is, with its mark.
//! - The mark goes last, so that a leftover is found again after a failure or a second kill.

use crate::{Directory, EntryKind, IoError, cure};
use plumb_host::kernel::start_time;
use plumb_host::leftover::{Fate, Leftover, MakerClaim, MarkedPart, PartKind, Remains};
use plumb_host::owner::{self, MARK};
use plumb_units::Bytes;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Finds leftovers of these makers in a directory and in one below it, and those of the same
/// processes elsewhere, sorted by name. An unreadable directory has none.
pub fn find(directory: &Path, below: &str, makers: &[&'static dyn Leftover]) -> Vec<Remains> {
    let Ok(directory) = Directory::open(directory) else { return Vec::new() };
    let below = directory.directory(below).ok();
    let mut found: Vec<Leaving> = Vec::new();
    for around in std::iter::once(directory).chain(below).map(Rc::new) {
        let entries = around.entries().unwrap_or_default();
        let marked = entries.into_iter().filter_map(|entry| marked(entry.kind, Path::new(&entry.name)));
        found.extend(marked.filter_map(|own| Leaving::of(&around, own, makers)));
    }
    let elsewhere: Vec<Leaving> = found.iter().flat_map(|one| one.elsewhere(makers)).collect();
    found.extend(elsewhere);
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found.into_iter().map(Leaving::remains).collect()
}

/// Finds the leftover at a path.
pub fn at(path: &Path, makers: &[&'static dyn Leftover]) -> Option<Remains> {
    let around = Rc::new(Directory::open(path.parent()?).ok()?);
    Leaving::of(&around, PathBuf::from(path.file_name()?), makers).map(Leaving::remains)
}

/// Returns the name that an entry of a searched directory may be the mark of, or may hold one of.
fn marked(kind: EntryKind, name: &Path) -> Option<PathBuf> {
    match kind {
        EntryKind::Directory => Some(name.to_path_buf()),
        EntryKind::File if name.extension().is_some_and(|end| end == MARK) => Some(name.with_extension("")),
        _ => None,
    }
}

/// A marked file or directory whose process has ended.
struct Leaving {
    path: PathBuf,
    /// The directory around it; everything is removed by its name in it.
    around: Rc<Directory>,
    own: PathBuf,
    mark: PathBuf,
    maker: &'static dyn Leftover,
    claim: MakerClaim,
    parts: Parts,
    /// The mark, locked; `None` if the process was killed before it made one.
    held: Option<File>,
}

/// Parts of a marked directory that its maker made.
#[derive(Default)]
struct Parts {
    files: Vec<PathBuf>,
    /// Each directory before those in it.
    directories: Vec<PathBuf>,
    bytes: u64,
    /// An entry that the maker did not make.
    stray: Option<PathBuf>,
}

impl Leaving {
    fn of(around: &Rc<Directory>, own: PathBuf, makers: &[&'static dyn Leftover]) -> Option<Leaving> {
        let path = around.path().join(&own);
        let is_directory = around.kind(&own) == Some(EntryKind::Directory);
        let mut mark = own.as_os_str().to_owned();
        mark.push(if is_directory { format!("/{MARK}") } else { format!(".{MARK}") });
        let mark = PathBuf::from(mark);
        let held = match around.kind(&mark) {
            Some(_) => Some(owner::abandoned(&around.path().join(&mark))?),
            // Most directories have none.
            None if is_bare(around, &own) => None,
            None => return None,
        };
        let (maker, claim, parts) = makers.iter().find_map(|maker| {
            let claim = maker.claim(&path).filter(|claim| held.is_some() || *claim == MakerClaim::Name)?;
            let parts = Parts::of(around, &own, *maker, claim);
            let is_its = claim != MakerClaim::Parts || parts.stray.is_none() || !parts.files.is_empty();
            is_its.then_some((*maker, claim, parts))
        })?;
        Some(Leaving { path, around: Rc::clone(around), own, mark, maker, claim, parts, held })
    }

    /// Finds other directories of the same process. Another user may have written the file that
    /// names them, so each must belong to the same user and have the mark of the same process.
    fn elsewhere(&self, makers: &[&'static dyn Leftover]) -> Vec<Leaving> {
        let user = self.around.found(&self.own).map(|found| found.owner);
        let found = self.maker.others(&self.path).into_iter().filter_map(|place| {
            let around = Rc::new(Directory::open(place.parent()?).ok()?);
            let name = PathBuf::from(place.file_name()?);
            around
                .found(&name)
                .filter(|there| Some(there.owner) == user && there.kind == EntryKind::Directory)?;
            let found = Leaving::of(&around, name, makers)?;
            let is_same = owner::is_same_maker(self.held.as_ref()?, found.held.as_ref()?);
            is_same.then_some(found)
        });
        found.collect()
    }

    fn remains(self) -> Remains {
        let fate = match (&self.parts.stray, self.claim) {
            (Some(stray), _) => Fate::Stays(not_made(stray)),
            (None, MakerClaim::Original) => Fate::Ends("a study wrote it: becomes what it was"),
            (None, _) => Fate::Removed,
        };
        let (name, bytes) = (self.path.display().to_string(), Bytes(self.parts.bytes));
        Remains::new(name, bytes, fate, move || self.put_away())
    }

    fn put_away(self) -> Result<(), String> {
        let path = self.path.display();
        let failed = |error: io::Error| {
            let cure = cure(&error, &self.path, "give this user the right to, or remove it by hand");
            format!("cannot remove {path}: {error}{cure}")
        };
        match self.claim {
            MakerClaim::Original => self.maker.release(&self.path).map_err(|error| error.to_string())?,
            _ => self.maker.release(&self.path).map_err(failed)?,
        }
        // A process that was ended just now may have made more.
        let parts = Parts::of(&self.around, &self.own, self.maker, self.claim);
        match parts.stray {
            Some(stray) => Err(format!("{path} stays: {}", not_made(&stray))),
            None => self.remove(&parts).map_err(|error| failed(error.into_source())),
        }
    }

    fn remove(&self, parts: &Parts) -> Result<(), IoError> {
        parts.files.iter().try_for_each(|file| self.around.remove(file))?;
        let inner = parts.directories.iter().skip(1).rev();
        inner.into_iter().try_for_each(|directory| self.around.remove_directory(directory))?;
        self.held.iter().try_for_each(|_| self.around.remove(&self.mark))?;
        parts.directories.first().iter().try_for_each(|own| self.around.remove_directory(own))
    }
}

impl Parts {
    /// Lists the parts of a marked directory, or the marked file, up to the first stray.
    fn of(around: &Directory, own: &Path, maker: &dyn Leftover, claim: MakerClaim) -> Parts {
        let mut parts = Parts::default();
        let Some(found) = around.found(own) else { return parts };
        if found.kind != EntryKind::Directory {
            let file = MarkedPart { name: Path::new(""), kind: PartKind::File };
            if claim != MakerClaim::Original && found.kind == EntryKind::File && maker.makes(&file) {
                parts.files.push(own.to_path_buf());
                parts.bytes = found.allocated;
            }
            return parts;
        }
        let mut waiting = vec![own.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            parts.add(around, own, &directory, maker, &mut waiting);
            parts.directories.push(directory);
        }
        parts
    }

    fn add(
        &mut self,
        around: &Directory,
        own: &Path,
        directory: &Path,
        maker: &dyn Leftover,
        waiting: &mut Vec<PathBuf>,
    ) {
        let device = around.found(own).map(|found| found.identity.0);
        let entries = around.directory(directory).and_then(|found| found.entries()).unwrap_or_default();
        for name in entries.into_iter().map(|entry| directory.join(entry.name)) {
            let relative = name.strip_prefix(own).unwrap_or(&name);
            let found = around.found(&name).filter(|_| relative != Path::new(MARK));
            let Some(found) = found else { continue };
            let kind = match found.kind {
                EntryKind::File => Some(PartKind::File),
                EntryKind::Directory => Some(PartKind::Directory),
                EntryKind::Other => Some(PartKind::Special),
                EntryKind::Link => None,
            };
            let is_made = |kind: &PartKind| {
                maker.makes(&MarkedPart { name: relative, kind: *kind }) || is_renamed(relative, *kind)
            };
            match kind.filter(is_made) {
                Some(PartKind::Directory) if Some(found.identity.0) == device => waiting.push(name),
                Some(PartKind::Directory) => {}
                Some(_) => {
                    self.bytes += found.allocated;
                    self.files.push(name);
                }
                None => self.stray = self.stray.take().or(Some(around.path().join(&name))),
            }
        }
    }
}

/// True for an empty directory of this user, unless its name has the number of a living process,
/// which may be about to mark it.
fn is_bare(around: &Directory, own: &Path) -> bool {
    let lives = |part: &str| part.parse().is_ok_and(|process| start_time(process).is_some());
    let is_own = around.found(own).is_some_and(|found| owner::is_trusted(found.owner, None));
    let is_empty =
        || around.directory(own).and_then(|found| found.entries()).is_ok_and(|found| found.is_empty());
    is_own && is_empty() && !own.to_string_lossy().split('-').any(lives)
}

/// True for a file that FUSE or NFS renamed, because it was removed while open.
fn is_renamed(name: &Path, kind: PartKind) -> bool {
    let last = name.file_name().unwrap_or_default().to_string_lossy();
    kind == PartKind::File && [".fuse_hidden", ".nfs"].iter().any(|prefix| last.starts_with(prefix))
}

fn not_made(stray: &Path) -> String {
    format!("plumb did not make {}", stray.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_host::leftover::named;
    use std::fs;

    /// Makes directories `made-NAME` with files `a` and directories `d`.
    struct TestMaker;

    impl Leftover for TestMaker {
        fn claim(&self, marked: &Path) -> Option<MakerClaim> {
            named(marked, "made-")
        }

        fn makes(&self, part: &MarkedPart<'_>) -> bool {
            let last = part.name.file_name().unwrap_or_default();
            last == if part.kind == PartKind::Directory { "d" } else { "a" }
        }

        fn release(&self, marked: &Path) -> io::Result<()> {
            match marked.ends_with("made-busy") {
                true => Err(io::Error::other("it is in use")),
                false => Ok(()),
            }
        }
    }

    const DEAD: &str = "plumb 4194305 started 1\n";

    fn left(here: &Path, name: &str, files: &[&str], mark: Option<&str>) {
        fs::create_dir_all(here.join(name).join("d")).expect("a directory");
        files.iter().for_each(|file| fs::write(here.join(name).join(file), "x").expect("a file"));
        mark.into_iter().for_each(|mark| fs::write(here.join(name).join(MARK), mark).expect("a mark"));
    }

    fn names(here: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(here)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_dead_process_left_goes_and_all_else_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path();
        left(here, "made-dead", &["a", "d/a"], Some(DEAD));
        left(here, "made-unmarked", &["a"], None);
        left(here, "another-dead", &["a"], Some(DEAD));
        left(here, "made-living", &["a"], None);
        let _living = owner::Owner::of_directory(&here.join("made-living")).expect("a mark");
        fs::create_dir(here.join("made-4194305")).expect("a directory without a mark");
        fs::create_dir(here.join(format!("made-{}", std::process::id()))).expect("one in the making");
        let found = find(here, "none", &[&TestMaker]);
        let path = |name: &str| here.join(name).display().to_string();
        let shown: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(shown, [path("made-4194305"), path("made-dead")]);
        assert!(
            find(here, "none", &[&TestMaker]).iter().all(|one| one.name != path("made-dead")),
            "it is held"
        );
        found.into_iter().for_each(|one| one.put_away().expect("removed"));
        let own = format!("made-{}", std::process::id());
        let mut kept =
            vec!["another-dead".to_string(), own, "made-living".to_string(), "made-unmarked".to_string()];
        kept.sort();
        assert_eq!(names(here), kept);
    }

    #[test]
    fn a_directory_with_a_stray_stays_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path();
        for stray in ["mine", "d/mine"] {
            left(here, "made-1", &["a", stray], Some(DEAD));
            let found = find(here, "none", &[&TestMaker]);
            let why = format!("plumb did not make {}", here.join("made-1").join(stray).display());
            assert_eq!(found[0].fate, Fate::Stays(why));
            assert_eq!(found[0].freed(), Bytes(0));
            found.into_iter().for_each(|one| one.put_away().expect("it stays"));
            assert!(here.join("made-1").join(MARK).exists() && here.join("made-1/a").exists());
            fs::remove_dir_all(here.join("made-1")).expect("gone");
        }
    }

    #[test]
    fn a_leftover_that_is_in_use_keeps_its_mark() {
        let directory = tempfile::tempdir().expect("a directory");
        left(directory.path(), "made-busy", &["a"], Some(DEAD));
        let found = at(&directory.path().join("made-busy"), &[&TestMaker]).expect("it is found");
        let why = found.put_away().expect_err("it is in use");
        assert!(why.starts_with("cannot remove ") && why.contains("made-busy: it is in use; "), "{why}");
        assert_eq!(names(&directory.path().join("made-busy")), ["a", "d", MARK]);
    }
}
