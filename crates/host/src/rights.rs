//! Access rights of a file: owner, mode and access control list.

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The attribute in which Linux keeps the access control list.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Bytes: Linux's limit for one attribute, and for the list of their names.
const ATTRIBUTE_MAX: usize = 64 * 1024;

/// Copies owner, access control list, mode and the other extended attributes
/// from one file to another.
///
/// # Errors
/// When owner, list or mode cannot be set, because the file would be open to other users. An
/// attribute that this process may not set, or that the file system rejects, is left out.
pub fn copy_rights(from: &File, to: &File) -> io::Result<()> {
    let found = fstat(from)?;
    let own = fstat(to)?;
    if (found.st_uid, found.st_gid) != (own.st_uid, own.st_gid) {
        fchown(to, Some(Uid::from_raw(found.st_uid)), Some(Gid::from_raw(found.st_gid)))?;
    }
    let mut names = vec![0; ATTRIBUTE_MAX];
    let listed = match flistxattr(from, &mut names) {
        Ok(bytes) => bytes,
        // The file system has no extended attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(errno) => return Err(errno.into()),
    };
    for name in names[..listed].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let copied = copy_attribute(from, to, name);
        if name.to_bytes() == ACCESS_LIST {
            copied?;
        }
    }
    // Setting the list changes the group's bits, and a change of owner clears bits,
    // so the mode comes last.
    fchmod(to, Mode::from_raw_mode(found.st_mode))?;
    Ok(())
}

fn copy_attribute(from: &File, to: &File, name: &CStr) -> Result<(), Errno> {
    let mut value = vec![0; ATTRIBUTE_MAX];
    let bytes = fgetxattr(from, name, &mut value)?;
    let name = std::ffi::OsStr::from_bytes(name.to_bytes());
    fsetxattr(to, name, &value[..bytes], rustix::fs::XattrFlags::empty())
}

/// Returns the effective user id of this process.
pub fn caller() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::XattrFlags;

    /// An access control list in the kernel's form: version 2, then tag, rights
    /// and user of each entry.
    fn access_list() -> Vec<u8> {
        let nobody_id = u32::MAX;
        let entries: [(u16, u16, u32); 5] = [
            (1, 6, nobody_id),
            (2, 6, 65_534),
            (4, 4, nobody_id),
            (0x10, 6, nobody_id),
            (0x20, 4, nobody_id),
        ];
        let entry = |(tag, rights, user): (u16, u16, u32)| {
            [tag.to_le_bytes().to_vec(), rights.to_le_bytes().to_vec(), user.to_le_bytes().to_vec()].concat()
        };
        [2_u32.to_le_bytes().to_vec(), entries.into_iter().flat_map(entry).collect()].concat()
    }

    #[test]
    fn a_copy_has_the_mode_the_access_list_and_the_attributes() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| File::create(directory.path().join(name)).expect("a file");
        let (from, to) = (file("from"), file("to"));
        let set = |name: &str, value: &[u8]| fsetxattr(&from, name, value, XattrFlags::empty());
        let list = "system.posix_acl_access";
        if set("user.note", b"keep").and_then(|()| set(list, &access_list())).is_err() {
            println!("skipped: this file system has no access control lists");
            return;
        }
        copy_rights(&from, &to).expect("copied");
        let value = |name: &str| {
            let mut value = [0; 100];
            fgetxattr(&to, name, &mut value).map(|bytes| value[..bytes].to_vec())
        };
        assert_eq!(value("user.note").expect("there"), b"keep");
        assert_eq!(value(list).expect("there"), access_list());
        assert_eq!(fstat(&to).expect("open").st_mode, fstat(&from).expect("open").st_mode);
    }
}
