//! The mount table: `/proc/self/mountinfo`.

use super::{DeviceError, DeviceNumber, Mount};
use crate::roots::Roots;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Magic numbers (statfs(2)) of file systems that commonly hold databases.
const FILE_SYSTEMS: [(u64, &str); 6] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794C_7630, "overlay"),
    (0x6969, "nfs"),
];

/// Returns the path of the mount table.
pub(super) fn table_path(roots: &Roots) -> PathBuf {
    roots.proc.join("self/mountinfo")
}

/// Reads all mounts in the order of mounting; lines that do not parse are skipped.
pub(super) fn read_table(roots: &Roots) -> Result<Vec<Mount>, DeviceError> {
    let table = table_path(roots);
    let bytes =
        fs::read(&table).map_err(|source| DeviceError::MountTable { table: table.clone(), source })?;
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse_line).collect())
}

/// Returns the mount that holds a resolved path: the one with the path's mount id. Without
/// an id it is the one with the longest mount point above the path, and among equals the
/// last, which hides the others.
pub(super) fn find<'a>(table: &'a [Mount], path: &Path, id: Option<u64>) -> Option<&'a Mount> {
    let holders = || table.iter().filter(|mount| path.starts_with(&mount.mount_point));
    let by_id = holders().find(|mount| Some(mount.id) == id);
    // max_by_key returns the last of equals.
    by_id.or_else(|| holders().max_by_key(|mount| mount.mount_point.components().count()))
}

/// Describes a mount that the table does not list, as in a process whose root is no mount point
/// (`chroot`), from what the file system itself reports.
pub(super) fn unlisted(path: &Path) -> io::Result<Mount> {
    let status = rustix::fs::stat(path)?;
    let magic = rustix::fs::statfs(path)?.f_type as u64;
    let known = FILE_SYSTEMS.iter().find(|(of, _)| *of == magic);
    Ok(Mount {
        mount_point: PathBuf::from("/"),
        file_system: known.map_or_else(|| format!("file system {magic:#x}"), |(_, name)| name.to_string()),
        options: Vec::new(),
        source: "a mount that is not listed here".to_string(),
        device: DeviceNumber {
            major: rustix::fs::major(status.st_dev),
            minor: rustix::fs::minor(status.st_dev),
        },
        id: id_of(path).unwrap_or(0),
    })
}

/// Returns the mount id of a path (kernel 5.8 and later).
pub(super) fn id_of(path: &Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let answer = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    (answer.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(answer.stx_mnt_id)
}

/// Parses `id parent major:minor root mount-point options [tags...] - type source options`.
pub(super) fn parse_line(line: &str) -> Option<Mount> {
    let (mount_part, file_system_part) = line.split_once(" - ")?;
    let mut fields = mount_part.split(' ');
    let id = fields.next()?.parse().ok()?;
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    let device = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
    let mount_point = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.nth(1)?)));
    let mount_options = fields.next()?;
    let mut fields = file_system_part.split(' ');
    let file_system = fields.next()?.to_owned();
    let source = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
    let mut options: Vec<String> = Vec::new();
    for option in mount_options.split(',').chain(fields.next().unwrap_or_default().split(',')) {
        let option = String::from_utf8_lossy(&unescape(option)).into_owned();
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { mount_point, file_system, options, source, device, id })
}

/// Decodes blanks, tabs, line ends and backslashes, written as three octal digits: `\040`.
fn unescape(field: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(b'\\');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
