//! Storage of blocks: tablespaces over data files, extents, the control file.
//!
//! A [`tablespace::Tablespace`] is a set of data files of one block size; a database has several
//! ([`tablespaces::Tablespaces`]). Files are cut into equal extents. A segment (a table, an index,
//! a sort's runs) is a list of extents. They are allocated round robin over the files, so that
//! files on different disks share the load. Free space is not stored: it is the extents that no
//! segment of the control file owns. So a load or build that dies midway leaves no trace.
//!
//! Every block carries its own address, a kind, an LSN and a CRC-32C over all of it ([`block`]). A
//! new file is filled with zeros. Otherwise a write would have to allocate or convert an extent: it
//! would wait for the file system's journal and take the inode lock exclusively.

pub mod block;
mod bounds;
pub mod control;
pub mod datafile;
pub mod header;
mod layout;
pub mod log_places;
pub(crate) mod own_file;
mod path_text;
pub mod reader;
pub(crate) mod scattered_reader;
pub mod tablespace;
pub mod tablespaces;
pub mod writer;
