//! The walk from a mount down to the disks.
//!
//! Each step is a fact of sysfs or of the mount table. In sysfs: a `partition` file, a `slaves`
//! directory (dm and md), a `loop/backing_file`, the `devices` of a btrfs. In the mount table: the
//! source of a file system without a device number, the upper directory of an overlay. The walk is
//! depth first and bounded by [`DEPTH_MAX`] and [`LAYERS_MAX`], because names can show an overlay
//! or a loop file above itself.
//!
//! The queue is that of the first disk: striping over unlike disks shows in `disks` and
//! `stack`, not in the queue.

use super::{BlockDevice, DeviceNumber, Mount, Queue, Virtualization, mount, queue};
use crate::roots::{Roots, base_name, names, number, text};
use plumb_units::Bytes;
use std::path::{Path, PathBuf};

/// Most layers above each other: real stacks have about five (overlay, file system,
/// crypt, volume, RAID, partition, disk).
const DEPTH_MAX: usize = 12;
/// Most lines in the stack, for arrays of many disks.
const LAYERS_MAX: usize = 64;
/// The unit of `size` in sysfs, whatever the disk's own block size.
const SECTOR_BYTES: u64 = 512;

/// Drivers of disks that a hypervisor provides.
const PARAVIRTUAL_DRIVERS: [&str; 8] =
    ["virtio_blk", "virtio_scsi", "vbd", "xen-blkfront", "hv_storvsc", "storvsc", "vmw_pvscsi", "ibmvscsi"];
/// Words in the vendor or model of disks that a hypervisor provides.
const VIRTUAL_DISK_NAMES: [&str; 9] = [
    "QEMU",
    "VMware",
    "VBOX",
    "Msft",
    "Virtual",
    "PersistentDisk",
    "nvme_card",
    "Elastic Block Store",
    "EC2 NVMe",
];
/// Words in the DMI product or vendor of virtual machines.
const VIRTUAL_MACHINE_NAMES: [&str; 11] = [
    "KVM",
    "QEMU",
    "VMware",
    "VirtualBox",
    "Virtual Machine",
    "Google Compute Engine",
    "HVM domU",
    "OpenStack",
    "Bochs",
    "Droplet",
    "Standard PC",
];
/// Devices that are software, by the start of their names, and their nature.
const SOFTWARE_DEVICES: [(&str, &str); 6] = [
    ("zram", "is compressed memory"),
    ("ram", "is memory"),
    ("loop", "is a file"),
    ("nbd", "is a network block device"),
    ("rbd", "is a Ceph block device"),
    ("drbd", "is a mirror over a network (DRBD)"),
];

/// Suffixes that LVM gives the names of a cached volume's parts: of dm-cache and of dm-writecache.
const LVM_CACHE_PARTS: [&str; 4] = ["_corig", "_cdata", "_wcorig", "_cvol"];
/// Modules of the device mapper's caching targets, and the targets' names.
const CACHE_TARGETS: [(&str, &str); 2] = [("dm_cache", "dm-cache"), ("dm_writecache", "dm-writecache")];
/// Prefixes of the uuids of mapped devices that are no caches, or have names of LVM.
const KNOWN_FAMILIES: [&str; 3] = ["LVM-", "CRYPT-", "mpath-"];

/// Layers and disks beneath a mount.
pub(super) struct Beneath {
    pub stack: Vec<String>,
    pub block: Option<BlockDevice>,
    pub virtualization: Virtualization,
}

/// Walks from the mount down to the disks.
pub(super) fn descend(roots: &Roots, table: &[Mount], mount: &Mount) -> Beneath {
    let mut walk = Walk { roots, table, stack: Vec::new(), top: None, disks: Vec::new(), caches: Vec::new() };
    walk.mount(mount, 0);
    let Walk { stack, top, disks, caches, .. } = walk;
    let block = top
        .zip(disks.first())
        .map(|(top, disk)| BlockDevice { caches, ..describe(roots, &top, disk, &disks) });
    let virtualization = virtualization(roots, block.as_ref(), disks.first());
    Beneath { stack, block, virtualization }
}

struct Walk<'a> {
    roots: &'a Roots,
    table: &'a [Mount],
    /// One line a layer, top down.
    stack: Vec<String>,
    /// The sysfs directory of the first device of the walk.
    top: Option<PathBuf>,
    /// The sysfs directories of the disks at the bottom.
    disks: Vec<PathBuf>,
    /// Layers that answer requests without the disk, a sentence each.
    caches: Vec<String>,
}

impl Walk<'_> {
    fn push(&mut self, line: String) {
        if self.stack.len() < LAYERS_MAX {
            self.stack.push(line);
        }
    }

    fn mount(&mut self, mount: &Mount, depth: usize) {
        self.push(format!("{} on {}", mount.file_system, mount.source));
        if depth >= DEPTH_MAX {
            return self.push("and so on: the walk ends here".to_owned());
        }
        if mount.file_system == "overlay" {
            return self.overlay(mount, depth);
        }
        let devices = self.devices_of(mount);
        let memory = super::direct::is_memory_file_system(&mount.file_system);
        if devices.is_empty() && mount.device.major != 0 {
            self.push(format!("device {}: not in sysfs", mount.device));
        } else if devices.is_empty() && !memory {
            self.push(format!("{}: nothing beneath it is visible", mount.source));
        }
        for device in devices {
            self.device(&device, depth + 1);
        }
    }

    /// Returns the sysfs directories of the devices under a file system.
    fn devices_of(&self, mount: &Mount) -> Vec<PathBuf> {
        let sys = &self.roots.sys;
        if mount.device.major != 0
            && let Ok(device) = sys.join(format!("dev/block/{}", mount.device)).canonicalize()
        {
            return vec![device];
        }
        if !mount.source.starts_with("/dev/") {
            return Vec::new();
        }
        // sysfs knows /dev/mapper/NAME, a link, only as dm-N.
        let source = Path::new(&mount.source);
        let name = base_name(&source.canonicalize().unwrap_or_else(|_| source.to_owned()));
        let members = if mount.file_system == "btrfs" { btrfs_members(sys, &name) } else { vec![name] };
        members.iter().filter_map(|name| sys.join("class/block").join(name).canonicalize().ok()).collect()
    }

    /// Walks to the upper directory, which takes all writes. Its path is that of the mount
    /// namespace in which the overlay was mounted, so a container cannot see it.
    fn overlay(&mut self, overlay: &Mount, depth: usize) {
        let upper = overlay.options.iter().find_map(|option| option.strip_prefix("upperdir="));
        let Some(upper) = upper else {
            return self.push("overlay without an upper directory: read-only".to_owned());
        };
        let beneath = Path::new(upper)
            .canonicalize()
            .ok()
            .and_then(|path| mount::find(self.table, &path, mount::id_of(&path)))
            .filter(|beneath| *beneath != overlay);
        match beneath {
            Some(beneath) => {
                self.push(format!("upper directory {upper}"));
                self.mount(beneath, depth + 1);
            }
            None => self.push(format!("upper directory {upper}: not visible from here")),
        }
    }

    fn device(&mut self, device: &Path, depth: usize) {
        self.top.get_or_insert_with(|| device.to_owned());
        let name = device_name(device);
        if depth >= DEPTH_MAX {
            return self.push(format!("{name}: the walk ends here"));
        }
        self.caches.extend(cache_of(self.roots, device));
        if let Some(partition) = number(&device.join("partition"))
            && let Some(disk) = device.parent()
        {
            self.push(format!("{name}: partition {partition} of {}", device_name(disk)));
            return self.device(disk, depth + 1);
        }
        let slaves: Vec<PathBuf> = names(&device.join("slaves"))
            .iter()
            .filter_map(|slave| device.join("slaves").join(slave).canonicalize().ok())
            .collect();
        if !slaves.is_empty() {
            self.push(format!("{name}: {}", upper_kind(device, slaves.len())));
            for slave in slaves {
                self.device(&slave, depth + 1);
            }
            return;
        }
        if let Some(file) = text(&device.join("loop/backing_file")) {
            self.push(format!("{name}: loop over {file}"));
            if let Some(beneath) = mount::find(self.table, Path::new(&file), None) {
                let disk_count = self.disks.len();
                self.mount(beneath, depth + 1);
                if self.disks.len() > disk_count {
                    return;
                }
            }
        } else {
            self.push(disk_line(self.roots, device));
        }
        if !self.disks.iter().any(|disk| disk == device) {
            self.disks.push(device.to_owned());
        }
    }
}

/// Returns all devices of the btrfs that `name` belongs to; `name` alone when sysfs lists none.
fn btrfs_members(sys: &Path, name: &str) -> Vec<String> {
    let file_systems = sys.join("fs/btrfs");
    names(&file_systems)
        .iter()
        .map(|uuid| names(&file_systems.join(uuid).join("devices")))
        .find(|members| members.iter().any(|member| member == name))
        .unwrap_or_else(|| vec![name.to_owned()])
}

/// True if the name is this word and a number.
fn is_numbered(name: &str, word: &str) -> bool {
    let number = name.strip_prefix(word).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the cache, memory or network that a device is, in a sentence; `None` for a device that
/// passes its requests on to a disk.
fn cache_of(roots: &Roots, device: &Path) -> Option<String> {
    let name = device_name(device);
    if number(&device.join("partition")).is_some() {
        return None;
    }
    if device.join("loop/backing_file").exists() {
        // Without the file the kernel is older than direct I/O of loop devices.
        let direct = text(&device.join("loop/dio")).is_some_and(|direct| direct == "1");
        return (!direct).then(|| format!("{name} reaches its file through the page cache (loop/dio is 0)"));
    }
    if let Some((_, what)) = SOFTWARE_DEVICES.iter().find(|(word, _)| is_numbered(&name, word)) {
        return Some(format!("{name} {what}"));
    }
    if is_numbered(&name, "bcache") {
        return Some(format!("{name} is a cache of one device on another (bcache)"));
    }
    mapped_cache(roots, device)
}

/// Names a mapped device that is a cache, or may be one.
///
/// The kernel shows the kind of a mapped device to root only. LVM gives the parts of a cache names
/// of their own. A cache made by `dmsetup create` has a shape: it is as large as one of its parts
/// and has further parts, and the module of such a target is in use. A mirror has that shape too,
/// so the sentence says "may". Targets that are built into the kernel are not seen.
fn mapped_cache(roots: &Roots, device: &Path) -> Option<String> {
    let name = device_name(device);
    let parts: Vec<PathBuf> =
        names(&device.join("slaves")).iter().map(|part| device.join("slaves").join(part)).collect();
    let by_lvm = |part: &PathBuf| {
        text(&part.join("dm/name")).is_some_and(|part| LVM_CACHE_PARTS.iter().any(|end| part.ends_with(end)))
    };
    if parts.iter().any(by_lvm) {
        return Some(format!("{name} is a cache of one device on another (dm-cache)"));
    }
    let uuid = text(&device.join("dm/uuid")).unwrap_or_default();
    let size = size_of(device)?;
    let is_shaped = parts.len() > 1 && parts.iter().any(|part| size_of(part) >= Some(size));
    if !is_shaped || KNOWN_FAMILIES.iter().any(|family| uuid.starts_with(family)) {
        return None;
    }
    let is_used = |module: &str| number(&roots.sys.join("module").join(module).join("refcnt")) > Some(0);
    let (_, target) = CACHE_TARGETS.iter().find(|(module, _)| is_used(module))?;
    Some(format!("{name} may be a cache of one device on another ({target} is in use)"))
}

/// Returns the device's name, in which sysfs writes `!` for a slash.
fn device_name(device: &Path) -> String {
    base_name(device).replace('!', "/")
}

fn upper_kind(device: &Path, slave_count: usize) -> String {
    let over = if slave_count == 1 { String::new() } else { format!(" over {slave_count} devices") };
    if let Some(level) = text(&device.join("md/level")) {
        return format!("md {level}{over}");
    }
    let mapped = text(&device.join("dm/name")).unwrap_or_else(|| "unnamed".to_owned());
    // The uuid starts with the target's family: LVM-, CRYPT-LUKS2-, mpath-.
    let family = text(&device.join("dm/uuid"))
        .and_then(|uuid| uuid.split_once('-').map(|(family, _)| format!(" ({family})")))
        .unwrap_or_default();
    format!("device mapper {mapped}{family}{over}")
}

fn disk_line(roots: &Roots, disk: &Path) -> String {
    let words: Vec<String> =
        [vendor(disk), model(disk), drivers(roots, disk).first().map(|name| format!("driver {name}"))]
            .into_iter()
            .flatten()
            .collect();
    let name = device_name(disk);
    if words.is_empty() { format!("{name}: disk") } else { format!("{name}: {}", words.join(", ")) }
}

fn describe(roots: &Roots, top: &Path, disk: &Path, disks: &[PathBuf]) -> BlockDevice {
    let partition = number(&top.join("partition")).and_then(|number| u32::try_from(number).ok());
    let whole = if partition.is_some() { top.parent().unwrap_or(top) } else { top };
    let upper_queue: Option<Queue> = (whole != disk).then(|| queue::read(whole));
    BlockDevice {
        name: device_name(top),
        number: device_number(top),
        partition,
        disk: device_name(disk),
        disks: disks.iter().map(|disk| device_name(disk)).collect(),
        disk_size: size_of(disk),
        vendor: vendor(disk),
        model: model(disk),
        driver: drivers(roots, disk).into_iter().next(),
        queue: queue::read(disk),
        upper_queue,
        caches: Vec::new(),
        upper_size: (whole != disk).then(|| size_of(whole)).flatten(),
        loop_direct_io: text(&whole.join("loop/dio")).map(|direct| direct == "1"),
    }
}

fn size_of(device: &Path) -> Option<Bytes> {
    number(&device.join("size")).map(|sectors| Bytes(sectors.saturating_mul(SECTOR_BYTES)))
}

fn device_number(device: &Path) -> Option<DeviceNumber> {
    let text = text(&device.join("dev"))?;
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn vendor(disk: &Path) -> Option<String> {
    text(&disk.join("device/vendor"))
}

fn model(disk: &Path) -> Option<String> {
    text(&disk.join("device/model"))
}

/// Returns the drivers of the disk and of its parent devices, nearest first.
fn drivers(roots: &Roots, disk: &Path) -> Vec<String> {
    let root = roots.sys.canonicalize().unwrap_or_else(|_| roots.sys.clone());
    disk.ancestors()
        .take_while(|directory| *directory != root)
        .flat_map(|directory| [directory.join("driver"), directory.join("device/driver")])
        .filter_map(|link| link.canonicalize().ok())
        .map(|driver| base_name(&driver))
        .fold(Vec::new(), |mut drivers, driver| {
            if !drivers.contains(&driver) {
                drivers.push(driver);
            }
            drivers
        })
}

fn virtualization(roots: &Roots, block: Option<&BlockDevice>, disk: Option<&PathBuf>) -> Virtualization {
    let disk_evidence = match (block, disk) {
        (Some(block), Some(disk)) => virtual_disk_evidence(roots, block, disk),
        _ => Vec::new(),
    };
    let machine_evidence = virtual_machine_evidence(roots);
    Virtualization {
        machine: !machine_evidence.is_empty(),
        disk: !disk_evidence.is_empty(),
        evidence: disk_evidence.into_iter().chain(machine_evidence).collect(),
    }
}

fn virtual_disk_evidence(roots: &Roots, block: &BlockDevice, disk: &Path) -> Vec<String> {
    let name = &block.disk;
    let software = [name, &block.name].into_iter().find_map(|name| {
        let (_, what) = SOFTWARE_DEVICES.iter().find(|(start, _)| name.starts_with(start))?;
        Some(format!("{name} {what}"))
    });
    let driver = drivers(roots, disk)
        .into_iter()
        .find(|driver| PARAVIRTUAL_DRIVERS.contains(&driver.as_str()))
        .map(|driver| format!("{name} has the driver {driver}"));
    let words = [block.vendor.as_deref(), block.model.as_deref()];
    let maker = words
        .into_iter()
        .flatten()
        .find(|word| VIRTUAL_DISK_NAMES.iter().any(|known| word.contains(known)))
        .map(|word| format!("{name} calls itself {word}"));
    [software, driver, maker].into_iter().flatten().collect()
}

fn virtual_machine_evidence(roots: &Roots) -> Vec<String> {
    let cpuinfo = roots.proc_text("cpuinfo").unwrap_or_default();
    let flag = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
        .then(|| "the processor flag hypervisor".to_owned());
    let dmi = ["product_name", "sys_vendor"]
        .iter()
        .filter_map(|name| roots.sys_text(&format!("class/dmi/id/{name}")))
        .find(|text| VIRTUAL_MACHINE_NAMES.iter().any(|known| text.contains(known)))
        .map(|text| format!("the machine calls itself {text}"));
    let hypervisor = roots.sys_text("hypervisor/type").map(|kind| format!("the hypervisor {kind} in sysfs"));
    [flag, dmi, hypervisor].into_iter().flatten().collect()
}
