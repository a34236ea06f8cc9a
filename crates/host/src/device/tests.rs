//! Machines laid out as fixture directories, and the machine the tests run on.

use super::*;
use crate::roots::{Roots, bracketed};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ring's own crate tests the probe.
fn no_ring(_: &Probed<'_>) -> IoUringSupport {
    IoUringSupport::No { why: "not tried".to_owned(), cure: String::new() }
}

/// A temporary directory with `sys` and `proc` inside.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let serial = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("plumb-device-test-{}-{serial}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("sys")).unwrap();
        fs::create_dir_all(root.join("proc/self")).unwrap();
        Machine { root: root.canonicalize().unwrap() }
    }

    fn roots(&self) -> Roots {
        Roots { sys: self.root.join("sys"), proc: self.root.join("proc") }
    }

    fn file(&self, path: &str, text: &str) -> &Machine {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn directory(&self, path: &str) -> &Machine {
        fs::create_dir_all(self.root.join(path)).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Machine {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.root.join(target), path).unwrap();
        self
    }

    /// A device of sysfs: its directory, its number and its links.
    fn device(&self, directory: &str, number: &str) -> &Machine {
        let name = directory.rsplit('/').next().unwrap();
        self.file(&format!("{directory}/dev"), number)
            .link(&format!("sys/dev/block/{number}"), directory)
            .link(&format!("sys/class/block/{name}"), directory)
    }

    fn describe(&self) -> DeviceDescription {
        describe_under(&self.roots(), &self.root, no_ring).unwrap()
    }

    /// Writes a mount table whose last line is the fixture's own mount, so that
    /// it is the one found.
    fn mounted(&self, device: &str, file_system: &str) -> &Machine {
        let root = self.root.display();
        self.file(
            "proc/self/mountinfo",
            &format!(
                "900000001 1 0:99 / / rw - rootfs rootfs rw\n\
             900000002 900000001 {device} / {root} rw,relatime shared:1 - {file_system}\n"
            ),
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn virtio_machine() -> Machine {
    let machine = Machine::new();
    let disk = "sys/devices/pci0000:00/virtio1/block/vda";
    machine.device(disk, "254:0");
    machine
        .mounted("254:0", "ext4 /dev/vda rw,discard")
        .directory("sys/bus/virtio/drivers/virtio_blk")
        .link("sys/devices/pci0000:00/virtio1/driver", "sys/bus/virtio/drivers/virtio_blk")
        .link(&format!("{disk}/device"), "sys/devices/pci0000:00/virtio1")
        .file("sys/devices/pci0000:00/virtio1/vendor", "0x1af4\n")
        .file(&format!("{disk}/size"), "2097152\n")
        .directory(&format!("{disk}/slaves"))
        .directory(&format!("{disk}/mq/0"))
        .file("proc/cpuinfo", "processor : 0\nflags\t\t: fpu sse2 hypervisor avx\n")
        .file("proc/sys/kernel/osrelease", "6.18.44\n")
        .file("proc/self/status", "Name:\tplumb\nCapEff:\t0000000000000000\nSeccomp:\t0\n")
        .file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    for (name, value) in [
        ("write_cache", "write back"),
        ("fua", "0"),
        ("scheduler", "none [mq-deadline] kyber bfq "),
        ("nr_requests", "256"),
        ("max_sectors_kb", "4096"),
        ("max_segments", "254"),
        ("io_poll", "0"),
        ("rotational", "1"),
        ("logical_block_size", "512"),
        ("physical_block_size", "4096"),
        ("discard_max_bytes", "1073741824"),
        ("atomic_write_unit_max_bytes", "0"),
        ("read_ahead_kb", "128"),
    ] {
        machine.file(&format!("{disk}/queue/{name}"), value);
    }
    machine
}

#[test]
fn a_virtio_disk_is_described_with_its_queue() {
    let description = virtio_machine().describe();
    assert_eq!(description.mount.file_system, "ext4");
    assert_eq!(description.mount.source, "/dev/vda");
    assert_eq!(description.mount.options, ["rw", "relatime", "discard"]);
    assert_eq!(description.stack, ["ext4 on /dev/vda", "vda: 0x1af4, driver virtio_blk"]);
    let block = description.block.unwrap();
    assert_eq!(block.name, "vda");
    assert_eq!(block.disk, "vda");
    assert_eq!(block.number, Some(DeviceNumber { major: 254, minor: 0 }));
    assert_eq!(block.partition, None);
    assert_eq!(block.disk_size, Some(Bytes(Bytes::G)));
    assert_eq!(block.driver.as_deref(), Some("virtio_blk"));
    assert_eq!(block.upper_queue, None);
    let expect = Queue {
        write_cache: Some(WriteCache::WriteBack),
        fua: Some(false),
        scheduler: Some("mq-deadline".to_owned()),
        schedulers: ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned).to_vec(),
        nr_requests: Some(256),
        request_size_max: Some(Bytes(4 * Bytes::M)),
        max_segments: Some(254),
        hardware_queues: Some(1),
        io_poll: Some(false),
        rotational: Some(true),
        logical_block_size: Some(Bytes(512)),
        physical_block_size: Some(Bytes(4096)),
        discard_max: Some(Bytes(Bytes::G)),
        atomic_write_unit_max: Some(Bytes(0)),
        read_ahead: Some(Bytes(128 * Bytes::K)),
    };
    assert_eq!(block.queue, expect);
    assert!(description.virtualization.disk);
    assert!(description.virtualization.machine);
    assert_eq!(
        description.virtualization.evidence,
        ["vda has the driver virtio_blk", "the processor flag hypervisor"]
    );
    assert_eq!(description.host.kernel_release.as_deref(), Some("6.18.44"));
    assert_eq!(description.host.transparent_huge_pages.as_deref(), Some("madvise"));
    assert!(!description.host.memlock_exempt);
}

#[test]
fn the_notes_of_a_virtio_disk_say_what_matters() {
    let mut description = virtio_machine().describe();
    // These three depend on the machine that runs the tests.
    description.direct_io = DirectIoSupport::No { why: "a reason".to_owned() };
    description.io_uring = IoUringSupport::No { why: "a reason".to_owned(), cure: "a cure".to_owned() };
    description.host.memlock_soft = Some(Bytes(8 * Bytes::M));
    description.host.page_size = Bytes(4096);
    let expect = "\
mounted with discard: removing files sends discards that compete with measured I/O
vda has a write-back cache and no FUA: an O_DSYNC write is a write and a flush, so O_DSYNC against fdatasync is a matter of system calls, not of the device
vda is virtual: the layer beneath may cache reads, absorb writes and answer flushes early, none of which is visible from here
vda says it rotates, which is likely misreported on a virtual disk; the kernel chooses scheduler and read-ahead by it
vda takes 254 segments: a request above 1016K (254 pages of 4K) is split unless its memory is in huge pages; above 4M always
vda has one hardware queue under mq-deadline: requests of all processors pass one lock and may be merged and reordered
vda has no polled queues: an IOPOLL ring cannot be used
vda has no atomic writes: a block larger than 512 B may be torn by a power cut
no direct I/O: a reason
no io_uring: a reason; a cure
locked memory is limited to 8M: a larger buffer arena cannot be registered (ulimit -l)";
    assert_eq!(notes(&description).join("\n"), expect);
}

#[test]
fn of_a_loop_device_it_is_said_how_it_reaches_its_file() {
    let note = |dio: Option<&str>| {
        let machine = Machine::new();
        let disk = "sys/devices/virtual/block/loop0";
        machine.device(disk, "7:0").mounted("7:0", "ext4 /dev/loop0 rw");
        if let Some(dio) = dio {
            machine.file(&format!("{disk}/loop/dio"), dio);
        }
        let description = machine.describe();
        notes(&description).into_iter().find(|note| note.starts_with("loop0 is a file")).expect("a note")
    };
    let file = "loop0 is a file on another file system";
    assert_eq!(
        note(Some("1\n")),
        format!("{file}, which it reaches by direct I/O (loop/dio is 1): a layer more, and no second cache")
    );
    assert_eq!(
        note(Some("0\n")),
        format!(
            "{file}, which it reaches through the page cache (loop/dio is 0): every block may be cached twice"
        )
    );
    assert_eq!(note(None), format!("{file}: every block may be cached twice"));
}

#[test]
fn layers_that_answer_without_the_disk_are_named() {
    let check = |device: &str, files: &[(&str, &str)], expect: Option<&str>| {
        let machine = Machine::new();
        let disk = format!("sys/devices/virtual/block/{device}");
        machine.device(&disk, "7:0").mounted("7:0", "ext4 /dev/x rw");
        for (name, text) in files {
            machine.file(&format!("{disk}/{name}"), text);
        }
        let block = machine.describe().block.expect("a device");
        assert_eq!(block.caches.iter().map(String::as_str).collect::<Vec<_>>(), Vec::from_iter(expect));
    };
    let file = ("loop/backing_file", "/x.img\n");
    let cached = Some("loop0 reaches its file through the page cache (loop/dio is 0)");
    check("loop0", &[file, ("loop/dio", "0\n")], cached);
    check("loop0", &[file], cached);
    check("loop0", &[file, ("loop/dio", "1\n")], None);
    check("zram0", &[], Some("zram0 is compressed memory"));
    check("ram1", &[], Some("ram1 is memory"));
    check("bcache0", &[], Some("bcache0 is a cache of one device on another (bcache)"));
    check("nbd0", &[], Some("nbd0 is a network block device"));
    check("rbd1", &[], Some("rbd1 is a Ceph block device"));
    check("drbd0", &[], Some("drbd0 is a mirror over a network (DRBD)"));
    check("rambus", &[], None);
    check("vda", &[], None);
}

#[test]
fn a_volume_over_a_cache_is_told_by_the_names_of_its_parts() {
    let caches = |part: &str| {
        let machine = Machine::new();
        let volume = "sys/devices/virtual/block/dm-2";
        let below = "sys/devices/virtual/block/dm-1";
        machine
            .device(below, "253:1")
            .file(&format!("{below}/dm/name"), part)
            .device(volume, "253:2")
            .mounted("253:2", "xfs /dev/mapper/vg-data rw")
            .link(&format!("{volume}/slaves/dm-1"), below);
        machine.describe().block.expect("a device").caches
    };
    assert_eq!(caches("vg-data_corig\n"), ["dm-2 is a cache of one device on another (dm-cache)"]);
    assert_eq!(caches("vg-thin_tdata\n"), [""; 0]);
}

/// Describes a mapped device of 1,000 sectors over parts of these sizes, with a test's additions.
fn mapped(parts: &[&str], add: impl Fn(&Machine, &str)) -> Vec<String> {
    let machine = Machine::new();
    let volume = "sys/devices/virtual/block/dm-0";
    machine.device(volume, "253:0").mounted("253:0", "xfs /dev/mapper/fast rw");
    machine.file(&format!("{volume}/size"), "1000\n").file(&format!("{volume}/dm/name"), "fast\n");
    for (index, size) in parts.iter().enumerate() {
        let part = format!("sys/devices/pci0000:00/block/sd{index}");
        machine.device(&part, &format!("8:{index}")).file(&format!("{part}/size"), size);
        machine.link(&format!("{volume}/slaves/sd{index}"), &part);
    }
    add(&machine, volume);
    machine.describe().block.expect("a device").caches
}

#[test]
fn a_mapped_device_of_the_shape_of_a_cache_is_named_while_such_a_target_is_in_use() {
    let used = |module: &'static str| {
        move |machine: &Machine, _: &str| {
            machine.file(&format!("sys/module/{module}/refcnt"), "1\n");
        }
    };
    let cache = ["10\n", "100\n", "1000\n"];
    assert_eq!(
        mapped(&cache, used("dm_cache")),
        ["dm-0 may be a cache of one device on another (dm-cache is in use)"]
    );
    assert_eq!(
        mapped(&["100\n", "1000\n"], used("dm_writecache")),
        ["dm-0 may be a cache of one device on another (dm-writecache is in use)"]
    );
    // In turn: no target in use, one part, parts that sum to the device, and a known family.
    assert_eq!(mapped(&cache, |_, _| {}), [""; 0]);
    let idle = |machine: &Machine, _: &str| {
        machine.file("sys/module/dm_cache/refcnt", "0\n");
    };
    assert_eq!(mapped(&cache, idle), [""; 0]);
    assert_eq!(mapped(&["1000\n"], used("dm_cache")), [""; 0]);
    assert_eq!(mapped(&["600\n", "400\n"], used("dm_cache")), [""; 0]);
    let paths = |machine: &Machine, volume: &str| {
        used("dm_cache")(machine, volume);
        machine.file(&format!("{volume}/dm/uuid"), "mpath-36005\n");
    };
    assert_eq!(mapped(&["1000\n", "1000\n"], paths), [""; 0]);
}

fn nvme(machine: &Machine) -> &Machine {
    let disk = "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
    machine.device(disk, "259:0").device(&format!("{disk}/nvme0n1p2"), "259:2");
    machine
        .directory("sys/bus/pci/drivers/nvme")
        .link("sys/devices/pci0000:00/0000:00:04.0/driver", "sys/bus/pci/drivers/nvme")
        .link(&format!("{disk}/device"), "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0")
        .file("sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/model", "Fast SSD 980      \n")
        .file(&format!("{disk}/nvme0n1p2/partition"), "2\n")
        .file(&format!("{disk}/queue/write_cache"), "write through")
        .file(&format!("{disk}/queue/scheduler"), "[none] mq-deadline")
        .file(&format!("{disk}/queue/io_poll"), "1")
        .directory(&format!("{disk}/mq/0"))
        .directory(&format!("{disk}/mq/1"))
        .file("proc/cpuinfo", "flags : fpu sse2\n")
}

#[test]
fn a_partition_leads_to_its_disk() {
    let machine = Machine::new();
    nvme(&machine).mounted("259:2", "xfs /dev/nvme0n1p2 rw");
    let description = machine.describe();
    assert_eq!(
        description.stack,
        ["xfs on /dev/nvme0n1p2", "nvme0n1p2: partition 2 of nvme0n1", "nvme0n1: Fast SSD 980, driver nvme"]
    );
    let block = description.block.unwrap();
    assert_eq!(block.name, "nvme0n1p2");
    assert_eq!(block.partition, Some(2));
    assert_eq!(block.disk, "nvme0n1");
    assert_eq!(block.model.as_deref(), Some("Fast SSD 980"));
    assert_eq!(block.queue.write_cache, Some(WriteCache::WriteThrough));
    assert_eq!(block.queue.scheduler.as_deref(), Some("none"));
    assert_eq!(block.queue.hardware_queues, Some(2));
    assert_eq!(block.queue.io_poll, Some(true));
    assert_eq!(block.queue.max_segments, None);
    assert_eq!(block.upper_queue, None);
    assert_eq!(description.virtualization, Virtualization::default());
}

#[test]
fn a_volume_leads_through_its_slaves_to_the_disk() {
    let machine = Machine::new();
    let volume = "sys/devices/virtual/block/dm-0";
    let partition = "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1/nvme0n1p2";
    nvme(&machine).device(volume, "253:0").mounted("253:0", "ext4 /dev/mapper/vg-data rw");
    machine
        .link(&format!("{volume}/slaves/nvme0n1p2"), partition)
        .file(&format!("{volume}/dm/name"), "vg-data\n")
        .file(&format!("{volume}/dm/uuid"), "LVM-abcdef\n")
        .file(&format!("{volume}/queue/max_segments"), "128\n");
    let description = machine.describe();
    assert_eq!(
        description.stack,
        [
            "ext4 on /dev/mapper/vg-data",
            "dm-0: device mapper vg-data (LVM)",
            "nvme0n1p2: partition 2 of nvme0n1",
            "nvme0n1: Fast SSD 980, driver nvme"
        ]
    );
    let block = description.block.unwrap();
    assert_eq!(block.name, "dm-0");
    assert_eq!(block.disks, ["nvme0n1"]);
    assert_eq!(block.upper_queue.unwrap().max_segments, Some(128));
    assert_eq!(block.queue.hardware_queues, Some(2));
}

#[test]
fn a_mirror_names_all_its_disks() {
    let machine = Machine::new();
    let mirror = "sys/devices/virtual/block/md0";
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        let disk = format!("sys/devices/ata/block/{name}");
        machine.device(&disk, number).link(&format!("{mirror}/slaves/{name}"), &disk);
    }
    machine
        .device(mirror, "9:0")
        .file(&format!("{mirror}/md/level"), "raid1\n")
        .mounted("9:0", "ext4 /dev/md0 rw");
    let description = machine.describe();
    assert_eq!(
        description.stack,
        ["ext4 on /dev/md0", "md0: md raid1 over 2 devices", "sda: disk", "sdb: disk"]
    );
    let note = "md0 lies on 2 disks (sda, sdb): the queue described is that of sda";
    assert!(notes(&description).iter().any(|line| line == note));
}

#[test]
fn a_loop_device_leads_to_the_disk_of_its_file() {
    let machine = virtio_machine();
    let device = "sys/devices/virtual/block/loop0";
    let (file, root) = (machine.root.join("below/image"), machine.root.display());
    machine
        .device(device, "7:0")
        .file(&format!("{device}/loop/backing_file"), &file.display().to_string())
        .file(&format!("{device}/size"), "8192\n")
        .file(
            "proc/self/mountinfo",
            &format!(
                "900000001 1 7:0 / {root} rw - ext4 /dev/loop0 rw\n\
             900000002 1 254:0 / {root}/below rw - xfs /dev/vda rw\n"
            ),
        );
    let description = machine.describe();
    assert_eq!(
        description.stack,
        [
            "ext4 on /dev/loop0".to_owned(),
            format!("loop0: loop over {}", file.display()),
            "xfs on /dev/vda".to_owned(),
            "vda: 0x1af4, driver virtio_blk".to_owned()
        ]
    );
    let block = description.block.unwrap();
    assert_eq!((block.name.as_str(), block.disk.as_str()), ("loop0", "vda"));
    assert_eq!((block.upper_size, block.disk_size), (Some(Bytes(4 * Bytes::M)), Some(Bytes(Bytes::G))));
    assert_eq!(description.virtualization.evidence[0], "loop0 is a file");
}

#[test]
fn an_overlay_leads_to_the_disk_of_its_upper_directory() {
    let machine = virtio_machine();
    let root = machine.root.display();
    machine.directory("layers/upper").file(
        "proc/self/mountinfo",
        &format!(
            "900000001 1 0:50 / {root} rw - overlay overlay rw,lowerdir=/l,upperdir={root}/layers/upper\n\
         900000002 1 254:0 / {root}/layers rw - ext4 /dev/vda rw\n"
        ),
    );
    let description = machine.describe();
    assert_eq!(
        description.stack,
        [
            "overlay on overlay".to_owned(),
            format!("upper directory {root}/layers/upper"),
            "ext4 on /dev/vda".to_owned(),
            "vda: 0x1af4, driver virtio_blk".to_owned()
        ]
    );
    assert_eq!(description.block.unwrap().disk, "vda");
}

#[test]
fn an_overlay_of_another_namespace_ends_the_walk() {
    let machine = virtio_machine();
    machine.mounted("0:50", "overlay overlay rw,upperdir=/nowhere/upper");
    let description = machine.describe();
    assert_eq!(
        description.stack,
        ["overlay on overlay", "upper directory /nowhere/upper: not visible from here"]
    );
    assert_eq!(description.block, None);
}

#[test]
fn a_btrfs_is_found_by_its_source_with_all_its_devices() {
    let machine = Machine::new();
    for (name, number) in [("sdy", "8:1"), ("sdz", "8:2")] {
        let disk = format!("sys/devices/ata/block/{name}");
        machine.device(&disk, number).link(&format!("sys/fs/btrfs/uuid/devices/{name}"), &disk);
    }
    machine.mounted("0:40", "btrfs /dev/sdz rw,compress=zstd:3");
    let description = machine.describe();
    assert_eq!(description.stack, ["btrfs on /dev/sdz", "sdy: disk", "sdz: disk"]);
    assert_eq!(description.block.unwrap().disks, ["sdy", "sdz"]);
}

#[test]
fn without_sysfs_the_device_is_unknown_and_said_so() {
    let machine = Machine::new();
    machine.mounted("254:0", "ext4 /dev/vda rw");
    let description = machine.describe();
    assert_eq!(description.stack, ["ext4 on /dev/vda", "device 254:0: not in sysfs"]);
    assert_eq!(description.block, None);
    assert_eq!(description.virtualization, Virtualization::default());
    assert_eq!(description.host.transparent_huge_pages, None);
    let note =
        "no block device is visible under ext4 (/dev/vda): write cache, scheduler and queue are unknown";
    assert!(notes(&description).iter().any(|line| line == note));
}

#[test]
fn tmpfs_has_no_device_and_no_direct_io() {
    let machine = Machine::new();
    machine.mounted("0:23", "tmpfs tmpfs rw");
    let description = machine.describe();
    assert_eq!(description.stack, ["tmpfs on tmpfs"]);
    assert_eq!(
        description.direct_io,
        DirectIoSupport::No { why: "tmpfs keeps files in memory: there is no device to reach".to_owned() }
    );
    assert_eq!(notes(&description)[0], "tmpfs has no device: times here are those of memory");
}

#[test]
fn of_stacked_mounts_the_last_counts_and_escapes_are_read() {
    let line = |id: u64, point: &str, kind: &str| {
        mount::parse_line(&format!("{id} 1 8:1 / {point} rw,nosuid - {kind} /dev/x rw")).unwrap()
    };
    let table = [
        line(900_000_001, "/", "ext4"),
        line(900_000_002, r"/a\040b", "xfs"),
        line(900_000_003, r"/a\040b", "btrfs"),
    ];
    let kind = |path: &str, id| mount::find(&table, Path::new(path), id).unwrap().file_system.clone();
    assert_eq!(table[1].mount_point, Path::new("/a b"));
    assert_eq!(kind("/a b/c", None), "btrfs");
    assert_eq!(kind("/a b/c", Some(900_000_002)), "xfs");
    assert_eq!(kind("/a", None), "ext4");
    assert_eq!(kind("/a bc", None), "ext4");
    assert_eq!(mount::parse_line("no mount at all"), None);
}

#[test]
fn the_choice_in_brackets_is_the_one_in_use() {
    assert_eq!(bracketed("none [mq-deadline] bfq"), Some("mq-deadline"));
    assert_eq!(bracketed("none"), Some("none"));
    assert_eq!(bracketed("a b"), None);
    assert_eq!(bracketed(""), None);
}

#[test]
fn an_error_names_the_path_and_the_cure() {
    let missing = describe(Path::new("/no/such/place"), no_ring).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot resolve /no/such/place: No such file or directory (os error 2); name a directory that exists"
    );
    let machine = Machine::new();
    let table = machine.root.join("proc/self/mountinfo");
    let unmounted = describe_under(&machine.roots(), &machine.root, no_ring).unwrap_err();
    let start = format!("cannot read the mount table {}", table.display());
    assert!(unmounted.to_string().starts_with(&start), "{unmounted}");
}

/// As in a process whose root is no mount point.
#[test]
fn a_path_that_no_listed_mount_holds_is_described_by_what_its_file_system_says() {
    let machine = Machine::new();
    machine.file("proc/self/mountinfo", "5 1 0:1 / /elsewhere rw - proc proc rw\n");
    let described = describe_under(&machine.roots(), &machine.root, no_ring).expect("described");
    assert_eq!(described.mount.source, "a mount that is not listed here");
    assert_eq!(described.mount.mount_point, Path::new("/"));
    assert!(described.space.total.0 > 0);
}

/// Unknown facts are only checked for consistency.
#[test]
fn this_machine_is_described_and_the_probe_leaves_nothing() {
    let directory = Machine::new();
    let Ok(description) = describe(&directory.root, no_ring) else {
        // A sandbox without /proc has no mount table.
        assert!(!Path::new("/proc/self/mountinfo").exists());
        return;
    };
    assert_eq!(description.path, directory.root);
    assert!(description.path.starts_with(&description.mount.mount_point));
    assert!(description.space.total >= description.space.free);
    assert!(description.space.block_size.0 >= 512);
    assert!(description.stack[0].starts_with(&description.mount.file_system));
    if let DirectIoSupport::Yes { memory_align, offset_align, .. } = description.direct_io {
        assert!(memory_align.0.is_power_of_two());
        assert!(offset_align.0.is_power_of_two());
        assert!(!direct::is_memory_file_system(&description.mount.file_system));
    }
    let left = crate::roots::names(&directory.root);
    assert_eq!(left, ["proc", "sys"]);
}

#[test]
fn shared_memory_opens_direct_and_is_refused_all_the_same() {
    let Ok(description) = describe(Path::new("/dev/shm"), no_ring) else {
        return;
    };
    if description.mount.file_system == "tmpfs" {
        assert!(matches!(&description.direct_io, DirectIoSupport::No { why } if why.contains("memory")));
        assert_eq!(description.block, None);
    }
}

#[test]
fn a_file_is_described_as_its_directory_is() {
    let machine = virtio_machine();
    let file = machine.root.join("proc/cpuinfo");
    let description = describe_under(&machine.roots(), &file, no_ring).unwrap();
    assert_eq!(description.path, file);
    assert_eq!(description.block.unwrap().name, "vda");
}
