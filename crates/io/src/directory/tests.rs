//! Tests of held directories: foreign ones, moved ones and links.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// Lookup by openat2, and by the walk.
type Open = fn(&Directory, &Path, OFlags, Mode) -> Result<OwnedFd, Errno>;
const WAYS: [Open; 2] = [Directory::resolve, |directory, name, flags, mode| {
    directory.walk(name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
}];

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

#[test]
fn no_name_leads_out_and_no_link_is_followed() {
    let around = tempfile::tempdir().expect("a directory");
    let inside = around.path().join("in");
    std::fs::create_dir_all(inside.join("sub")).expect("made");
    std::fs::write(around.path().join("victim"), "mine").expect("a file");
    std::fs::write(inside.join("sub/file"), "own").expect("a file");
    symlink("../victim", inside.join("link")).expect("a link");
    symlink("sub", inside.join("linked")).expect("a link");
    symlink("/", inside.join("root")).expect("a link");
    let directory = Directory::open(&inside).expect("there");
    for open in WAYS {
        let read = |name: &str| open(&directory, Path::new(name), OFlags::RDONLY, Mode::empty());
        assert!(read("sub/file").is_ok());
        for name in ["link", "linked/file", "root/etc/passwd"] {
            let errno = read(name).expect_err(name);
            assert!([Errno::LOOP, Errno::NOTDIR].contains(&errno), "{name}: {errno}");
        }
    }
    for name in ["../victim", "sub/../../victim", "/etc/passwd"] {
        assert_eq!(
            directory.resolve(Path::new(name), OFlags::RDONLY, Mode::empty()).err(),
            Some(Errno::XDEV),
            "D1"
        );
    }
    directory.write_file("link").expect_err("not followed");
    directory.create_file("link").expect_err("something has the name");
    directory.replace("link", b"new").expect("the link itself is replaced");
    assert_eq!(text(&inside.join("link")), "new");
    assert_eq!(text(&around.path().join("victim")), "mine");
    directory.remove("linked").expect("the link itself goes");
    assert_eq!(text(&inside.join("sub/file")), "own");
}

#[test]
fn a_directory_that_is_moved_is_the_same_and_its_place_is_not() {
    let around = tempfile::tempdir().expect("a directory");
    let [home, old] = ["home", "old"].map(|name| around.path().join(name));
    let directory = Directory::create(&home).expect("made");
    directory.replace("control", b"first").expect("written");
    std::fs::rename(&home, &old).expect("moved");
    std::fs::create_dir(&home).expect("another in its place");
    std::fs::write(home.join("control"), "another's").expect("a file");
    directory.replace("control", b"second").expect("written");
    directory.make_directory("sub").expect("made");
    directory.create_file("sub/file").expect("made");
    directory.rename("sub/file", "file").expect("moved");
    directory.rename_over("control", "file").expect("moved over it");
    directory.remove_directory("sub").expect("empty");
    directory.sync("").expect("synced");
    assert_eq!(text(&home.join("control")), "another's");
    assert_eq!(text(&old.join("file")), "second");
    let names: Vec<OsString> =
        directory.entries().expect("listed").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["file"]);
}

#[test]
fn what_a_link_of_the_new_files_name_leads_to_is_not_written() {
    let around = tempfile::tempdir().expect("a directory");
    let victim = around.path().join("victim");
    std::fs::write(&victim, "mine").expect("a file");
    std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o644)).expect("set");
    let directory = Directory::create(&around.path().join("in")).expect("made");
    symlink("../victim", directory.path().join("file.new")).expect("a link");
    directory.replace("file", b"text").expect("written");
    directory.put_private(Path::new("file"), b"secret").expect("written");
    assert_eq!(
        (text(&victim), std::fs::metadata(&victim).expect("there").mode() & 0o777),
        ("mine".into(), 0o644)
    );
    let file = directory.path().join("file");
    assert_eq!(
        (text(&file), std::fs::metadata(&file).expect("there").mode() & 0o777),
        ("secret".into(), 0o600)
    );
    assert_eq!(directory.kind("file.new"), None);
}

#[test]
fn only_a_regular_file_is_read_and_only_so_much_of_it() {
    let around = tempfile::tempdir().expect("a directory");
    let directory = Directory::open(around.path()).expect("there");
    fs::mknodat(directory.descriptor(), "pipe", FileType::Fifo, OWNER_ONLY, 0).expect("a pipe");
    directory.make_directory("sub").expect("made");
    directory.replace("file", b"12345").expect("written");
    let error = |name: &str, most| directory.read(name, most).expect_err(name).to_string();
    assert!(
        error("pipe", 9).ends_with("pipe: it is a pipe, expected a regular file"),
        "{}",
        error("pipe", 9)
    );
    assert!(error("sub", 9).ends_with("sub: it is a directory, expected a regular file"));
    assert!(error("file", 4).ends_with("file: it is longer than 4 bytes, the most that it can have"));
    assert_eq!(directory.read("file", 5).expect("read").as_deref(), Some(&b"12345"[..]));
    assert_eq!(directory.read("nothing", 5).expect("not there"), None);
    assert_eq!(directory.read("nothing/at/all", 5).expect("not there"), None);
    let pipe = regular::read_regular(&around.path().join("pipe"), 9).expect_err("a pipe").to_string();
    assert_eq!(pipe, "it is a pipe, expected a regular file");
    let file = directory.read_file("file").expect("there");
    assert!(!fs::fcntl_getfl(&file).expect("flags").contains(OFlags::NONBLOCK), "a ring would answer EAGAIN");
}

#[test]
fn a_file_has_as_many_names_as_it_was_given() {
    let around = tempfile::tempdir().expect("a directory");
    let directory = Directory::open(around.path()).expect("there");
    directory.replace("file", b"").expect("written");
    assert_eq!(directory.links("file"), Some(1));
    std::fs::hard_link(around.path().join("file"), around.path().join("other")).expect("linked");
    assert_eq!((directory.links("file"), directory.links("nothing")), (Some(2), None));
}

#[test]
fn where_the_kernel_has_no_such_rename_nothing_is_replaced_either() {
    for rename in [rename_by_link, rename_over_own] {
        let directory = tempfile::tempdir().expect("a directory");
        let [from, to] = ["from", "to"].map(|name| directory.path().join(name));
        let renamed = || rename((fs::CWD, from.as_os_str()), (fs::CWD, to.as_os_str()));
        std::fs::write(&from, "new").expect("a file");
        std::fs::write(&to, "old").expect("a file");
        assert_eq!(renamed(), Err(Errno::EXIST));
        assert_eq!(text(&to), "old");
        std::fs::remove_file(&to).expect("removed");
        assert_eq!(renamed(), Ok(()));
        assert_eq!(text(&to), "new");
        assert!(!from.exists());
        assert!(renamed().is_err());
        std::fs::remove_file(&to).expect("removed");
        assert_eq!(renamed(), Err(Errno::NOENT));
        assert!(!to.exists(), "nothing is left of what failed");
    }
}
