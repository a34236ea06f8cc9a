//! Documents and texts written by hand in the shape of fio's, with the figures of one device.

use crate::reader;
use crate::report::Report;
use crate::source::Source;
use plumb_record::Consistent;
use std::path::Path;

/// A version 3 document of one group of jobs.
const JSON: &str = r#"random: (g=0): rw=randread
{
  "fio version" : "fio-3.16",
  "timestamp" : 1573926872,
  "time" : "Sat Nov 16 18:54:32 2019",
  "global options" : {
    "ioengine" : "libaio",
    "direct" : "1"
  },
  "jobs" : [
    {
      "jobname" : "random",
      "error" : 0,
      "job options" : {
        "rw" : "randread",
        "bs" : "4k",
        "iodepth" : "16",
        "numjobs" : "8",
        "group_reporting" : "1"
      },
      "read" : {
        "io_bytes" : 11408945152,
        "io_kbytes" : 11141548,
        "bw" : 185680,
        "iops" : 46420.021999,
        "runtime" : 60004,
        "total_ios" : 2785387,
        "short_ios" : 0,
        "clat_ns" : {
          "min" : 231967,
          "max" : 24107381,
          "mean" : 2741879.732462,
          "percentile" : {
            "1.000000" : 2539520,
            "50.000000" : 2736128,
            "99.000000" : 3096576,
            "0.00" : 0,
            "0.00" : 0
          },
          "bins" : {
            "2539520" : 2785000,
            "3096576" : 387
          }
        },
        "lat_ns" : {
          "min" : 272207,
          "mean" : 2753743.111752
        }
      },
      "write" : {
        "io_bytes" : 0,
        "total_ios" : 0
      }
    }
  ],
  "disk_util" : [
    {
      "name" : "sdb"
    }
  ]
}
Run status group 0 (all jobs):
"#;

/// A version 2 text of two jobs.
const TEXT: &str = "\
[~/fio]$ ./fio rand-read.fio
rand-read: (g=0): rw=randread, bs=8K-8K/8K-8K/8K-8K, ioengine=libaio, iodepth=8
fio-2.1.13
Starting 2 processes
rand-read: (groupid=0, jobs=1): err= 0: pid=6124: Thu Oct 30 15:41:15 2014
  read : io=5120.0MB, bw=44174KB/s, iops=5521, runt=118686msec
    slat (usec): min=4, max=109, avg=13.06, stdev= 6.14
    clat (usec): min=128, max=43082, avg=1434.23, stdev=586.65
     lat (usec): min=140, max=43094, avg=1447.47, stdev=586.41
    clat percentiles (usec):
     |  1.00th=[  516],  5.00th=[  708], 50.00th=[ 1352],
     | 99.00th=[ 3184], 99.99th=[ 6752]
    bw (KB  /s): min=27088, max=70928, per=24.99%, avg=44119.50, stdev=6314.88
     issued    : total=r=655360/w=0/d=0, short=r=0/w=0/d=0
rand-read: (groupid=0, jobs=1): err= 0: pid=6127: Thu Oct 30 15:41:15 2014
  read : io=5120.0MB, bw=47359KB/s, iops=5919, runt=110704msec
    clat (usec): min=188, max=42988, avg=1337.06, stdev=571.06
     issued    : total=r=655360/w=0/d=0, short=r=0/w=0/d=0
";

/// A text of version 3, of one job.
const THREE: &str = "\
fio-3.33
job: (groupid=0, jobs=1): err= 0: pid=7: Sat Nov 21 20:19:22 2026
  write: IOPS=22.5k, BW=87.9MiB/s (92.2MB/s)(5120MiB/58254msec); 0 zone resets
    clat (nsec): min=900, max=12.3k, avg=1434.23, stdev=586.65
    clat percentiles (usec):
     |  1.00th=[   10], 99.00th=[   40]
     issued rwts: total=0,1310720,0,0 short=0,0,0,0 dropped=0,0,0,0
";

fn reports(text: &str) -> Vec<Report> {
    let source = Source::of(Path::new("fio"), text.as_bytes());
    let found = reader::reports(&source, &super::READERS);
    found.map_or_else(|_| Vec::new(), |found| found.into_iter().map(|(_, report)| report).collect())
}

fn one(text: &str) -> Report {
    let mut found = reports(text);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// The outcomes of the checks of a name.
fn outcomes(report: &Report, name: &str) -> Vec<Consistent> {
    report.checks.iter().filter(|check| check.name == name).map(|check| check.outcome).collect()
}

#[test]
fn a_document_keeps_its_figures_with_lines_and_its_arithmetic_holds() {
    let report = one(JSON);
    let jobs = report.sheet("jobs").expect("jobs");
    assert_eq!(jobs.rows.len(), 1, "a direction without requests is none");
    let figure = |key: &str| jobs.figure(&jobs.rows[0], key).expect(key);
    assert_eq!((figure("rate").value, figure("rate").line), (46420.021999, 25));
    assert_eq!(figure("runtime").value, 60.004);
    assert!((figure("mean").value - 0.002741879732462).abs() < 1e-15);
    assert_eq!(figure("size").value, 4096.0);
    assert_eq!(report.run.elapsed.as_ref().and_then(|cell| cell.reading.value()), Some(60.004));
    let times = report.sheet("percentiles").expect("percentiles");
    assert_eq!(times.rows.len(), 3, "0.00 is no percentile");
    for check in &report.checks {
        assert_eq!(check.outcome, Consistent::Holds, "{check:?}");
    }
    assert_eq!(report.checks.len(), 7);
    assert_eq!(report.prose.len(), 1, "the text behind the document: {:?}", report.prose);
    assert!(report.unread.is_empty(), "{:?}", report.unread);
}

#[test]
fn the_text_behind_a_document_has_its_figures_again() {
    let text = "\
random: (groupid=0, jobs=8): err= 0: pid=7: Sat Nov 16 18:54:32 2019
  read: IOPS=46.4k, BW=181MiB/s (190MB/s)(10.6GiB/60004msec)
    clat (usec): min=231, max=24107, avg=2741.88, stdev=1.00
     issued rwts: total=2785387,0,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
   READ: bw=181MiB/s (190MB/s), 181MiB/s-181MiB/s (190MB/s-190MB/s), io=10.6GiB (11.4GB), run=60004-60004msec
";
    let both = format!("{}{text}", JSON.replace("Run status group 0 (all jobs):\n", ""));
    let report = one(&both);
    assert_eq!(report.sheet("jobs").expect("jobs").rows.len(), 1, "the jobs of the document alone");
    assert_eq!(outcomes(&report, "JSON = text"), [Consistent::Holds; 8]);
    assert_eq!(outcomes(&report, "io of jobs = io of Run status"), [Consistent::Holds]);
    let changed = one(&both.replace("IOPS=46.4k", "IOPS=46.6k"));
    let failed = outcomes(&changed, "JSON = text").iter().filter(|held| **held == Consistent::Habit).count();
    assert_eq!(failed, 1);
}

#[test]
fn one_changed_figure_fails_the_check_that_uses_it() {
    for (from, to, name) in [
        ("\"bw\" : 185680", "\"bw\" : 190136", "io_bytes / runtime = bw"),
        ("46420.021999", "46320.021999", "total_ios / runtime = iops"),
        ("\"bs\" : \"4k\"", "\"bs\" : \"8k\"", "total_ios x bs = io_bytes"),
        ("\"max\" : 24107381", "\"max\" : 2410738", "min <= mean <= max"),
        ("\"99.000000\" : 3096576", "\"99.000000\" : 2036576", "percentiles ascend"),
        ("\"iodepth\" : \"16\"", "\"iodepth\" : \"15\"", "iops x latency <= iodepth x numjobs"),
        ("\"3096576\" : 387", "\"3096576\" : 388", "bins = total_ios"),
    ] {
        assert!(JSON.contains(from), "{from}");
        let report = one(&JSON.replacen(from, to, 1));
        assert_ne!(outcomes(&report, name), [Consistent::Holds], "{name}");
        let failed = report.checks.iter().filter(|check| check.outcome != Consistent::Holds).count();
        assert_eq!(failed, 1, "{name}");
    }
}

#[test]
fn units_follow_the_keys_and_the_version() {
    let old = JSON
        .replace("fio-3.16", "fio-2.1.13")
        .replace("        \"io_kbytes\" : 11141548,\n", "")
        .replace("11408945152", "11141548")
        .replace("clat_ns", "clat")
        .replace("lat_ns", "lat");
    let report = one(&old);
    let jobs = report.sheet("jobs").expect("jobs");
    let figure = |key: &str| jobs.figure(&jobs.rows[0], key).expect(key);
    assert_eq!(figure("bytes").value, 11141548.0 * 1024.0, "KiB before 2.21");
    assert!((figure("least").value - 0.231967).abs() < 1e-12, "microseconds before clat_ns");
    assert_eq!(outcomes(&report, "io_bytes / runtime = bw"), [Consistent::Holds]);
}

#[test]
fn documents_one_behind_the_other_are_reports_of_their_own() {
    assert_eq!(reports(&format!("{JSON}{JSON}")).len(), 2);
}

#[test]
fn text_has_the_same_figures_and_checks() {
    let report = one(TEXT);
    let jobs = report.sheet("jobs").expect("jobs");
    let values = |key: &str| -> Vec<f64> {
        jobs.rows.iter().filter_map(|row| jobs.figure(row, key)).map(|figure| figure.value).collect()
    };
    assert_eq!(values("rate"), [5521.0, 5919.0]);
    assert_eq!(values("requests"), [655360.0, 655360.0]);
    assert_eq!(values("bandwidth"), [44174.0 * 1024.0, 47359.0 * 1024.0]);
    assert_eq!(values("latency"), [0.00144747]);
    assert_eq!(report.sheet("percentiles").expect("percentiles").rows.len(), 5);
    assert_eq!(report.run.workload, "rand-read");
    assert_eq!(report.run.elapsed.as_ref().and_then(|cell| cell.reading.value()), Some(118.686));
    for name in ["io_bytes / runtime = bw", "total_ios / runtime = iops", "min <= mean <= max"] {
        assert_eq!(outcomes(&report, name), [Consistent::Holds; 2], "{name}");
    }
    let three = one(THREE);
    let jobs = three.sheet("jobs").expect("jobs");
    let figure = |key: &str| jobs.figure(&jobs.rows[0], key).expect(key);
    assert_eq!((figure("rate").value, figure("requests").value), (22500.0, 1310720.0));
    assert!((figure("least").value - 900e-9).abs() < 1e-18);
    assert!((figure("most").value - 12.3e-6).abs() < 1e-18);
    assert_eq!(figure("runtime").value, 58.254);
    assert_eq!(outcomes(&three, "total_ios / runtime = iops"), [Consistent::Holds]);
}

#[test]
fn figures_become_measures_of_a_record() {
    let source = Source::of(Path::new("fio.json"), JSON.as_bytes());
    let imports = crate::import::import(&source, &super::READERS, "0").expect("a report");
    let record = imports[0].record.as_ref().expect("it has a runtime");
    let names: Vec<&str> = record.measures.iter().map(|measure| measure.name.as_str()).collect();
    let expected =
        ["requests", "bandwidth", "mean latency", "p50", "p99"].map(|what| format!("random read {what}"));
    assert_eq!(names[..5], expected);
    // Files whose jobs have other names compare by these.
    assert_eq!(
        names[5..],
        ["all read requests", "all read bandwidth", "all read mean latency", "all read p99 at most"]
    );
}

/// A file that was cut off is read as far as it goes.
#[test]
fn a_file_cut_at_any_byte_is_read_or_refused() {
    for text in [JSON, TEXT, THREE] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            for report in reports(&text[..end]) {
                let fails = report.checks.iter().filter(|check| check.outcome == Consistent::Fails);
                // A cut digit is another figure; nothing else may fail.
                assert!(fails.count() <= 2, "cut at {end}");
            }
        }
    }
    for hostile in [
        "\"fio version\" : {",
        "\"fio version\" : \"x\", \"jobs\" : [[[[",
        "fio-3\n|th=[th=[]",
        "fio-3\n  read: IOPS=",
    ] {
        let _ = reports(hostile);
    }
    let deep = format!("\"fio version\" : {}", "[".repeat(1 << 20));
    let _ = reports(&deep);
}

/// A line of terse version 3, of one job of reads.
fn terse(error: &str) -> String {
    let percentiles = |times: [u32; 2]| {
        let pairs = [format!("50.000000%={}", times[0]), format!("99.000000%={}", times[1])];
        pairs.into_iter().chain((2..20).map(|_| "0%=0".to_string())).collect::<Vec<_>>().join(";")
    };
    let read = format!(
        "204800;20480;5120;10000;1;20;3.000000;1.000000;40;700;180.000000;5.000000;{};44;710;184.000000;5.000000;\
         20000;21000;100.000000%;20480.000000;10.000000",
        percentiles([170, 400])
    );
    let none =
        "0;0;0;0;0;0;0.0;0.0;0;0;0.0;0.0;".to_string() + &percentiles([0, 0]) + ";0;0;0.0;0.0;0;0;0%;0.0;0.0";
    format!("3;fio-3.28;probe;0;{error};{read};{none};4.0%;9.0%;51200;0;12\n")
}

#[test]
fn terse_output_is_read_with_its_percentiles() {
    let report = one(&terse("0"));
    let jobs = report.sheet("jobs").expect("jobs");
    assert_eq!(jobs.rows.len(), 1, "a direction without requests is none");
    let value = |key: &str| jobs.figure(&jobs.rows[0], key).expect(key).value;
    assert_eq!([value("bytes"), value("rate"), value("runtime")], [204_800.0 * 1024.0, 5120.0, 10.0]);
    assert!((value("mean") - 180e-6).abs() < 1e-12 && (value("latency") - 184e-6).abs() < 1e-12);
    assert_eq!(report.sheet("percentiles").expect("percentiles").rows.len(), 2);
    assert!(outcomes(&report, "io_bytes / runtime = bw").iter().all(|of| *of == Consistent::Holds));
    assert_eq!(report.answers[0].value, "5,120 IOPS, 20.00 MiB/s");
    assert!(report.answers[0].aside.contains("p99 400.0 us"), "{:?}", report.answers);
    let two = one(&(terse("0") + &terse("5")));
    assert_eq!(two.sheet("jobs").expect("jobs").rows.len(), 2);
    assert_eq!(two.failed[0].text, "probe: error 5");
    assert!(two.answers[0].value.starts_with("10,240 IOPS"), "{:?}", two.answers);
}

#[test]
fn a_log_is_a_series_whose_unit_the_name_of_its_file_says() {
    let text: String = (1..=200).map(|at| format!("{}, {}, 0, 4096, 0\n", at * 500, at * 1000)).collect();
    let read = |name: &str| {
        let source = Source::of(Path::new(name), text.as_bytes());
        let found = reader::reports(&source, &super::READERS).expect("a log");
        let figures = (found[0].0.derive)(&found[0].1);
        let figure = |of: &str| figures.iter().find(|figure| figure.name.ends_with(of)).expect(of).clone();
        (figure("p99 over time"), figure("most"), found[0].1.run.elapsed.clone())
    };
    let (p99, most, elapsed) = read("db_clat.1.log");
    assert_eq!((p99.value, p99.unit.as_str(), p99.line), (198_000.0 * 1e-9, "s", 198));
    assert_eq!(most.value, 200_000.0 * 1e-9);
    assert_eq!(elapsed.and_then(|cell| cell.reading.value()), Some(100.0));
    assert_eq!(read("db_bw.log").0.value, 198_000.0 * 1024.0);
    assert_eq!(read("db_iops.log").0.unit, "/s");
    assert_eq!(read("x.csv").0.name, "read value: p99 over time");
    let other = Source::of(Path::new("x.csv"), b"1, 2, 3, 4\n5, 6, 7, 8\n");
    assert!(reader::reports(&other, &super::READERS).is_err());
}

#[test]
fn no_depth_is_invented_where_no_option_is_printed() {
    let bare = JSON.replace("\"job options\"", "\"other\"").replace("\"global options\"", "\"others\"");
    let report = one(&bare);
    assert_eq!(outcomes(&report, "iops x latency <= iodepth x numjobs"), [Consistent::NotAsked]);
    let default = one(&JSON.replace("\"iodepth\" : \"16\",", "").replace("\"numjobs\" : \"8\",", ""));
    assert_eq!(outcomes(&default, "iops x latency <= iodepth x numjobs"), [Consistent::Fails]);
}

#[test]
fn a_document_without_requests_is_read_and_errors_are_named() {
    let old = JSON.replace("\"total_ios\" : 2785387,", "");
    let jobs = one(&old);
    assert_eq!(jobs.sheet("jobs").expect("jobs").rows.len(), 1);
    assert_eq!(jobs.answers[0].value.split(',').next(), Some("46"), "{:?}", jobs.answers);
    let failed = one(&JSON.replace("\"error\" : 0", "\"error\" : 28"));
    assert_eq!(failed.failed[0].text, "random: error 28");
    let text = TEXT.replacen(
        "err= 0: pid=6124",
        "err=28 (file:filesetup.c:240, func=write, error=No space left): pid=6124",
        1,
    );
    let failed = one(&text);
    assert_eq!(
        failed.failed[0].text,
        "rand-read: error 28, file:filesetup.c:240, func=write, error=No space left"
    );
    assert_eq!(failed.failed.len(), 1);
}

#[test]
fn the_text_has_sizes_and_depth_from_the_lines_above_its_version() {
    let report = one(TEXT);
    let jobs = report.sheet("jobs").expect("jobs");
    for row in &jobs.rows {
        assert_eq!(jobs.figure(row, "size").expect("bs").value, 8192.0);
        assert_eq!(jobs.figure(row, "depth").expect("iodepth").value, 8.0);
    }
    assert!(outcomes(&report, "total_ios x bs = io_bytes").contains(&Consistent::Holds));
    let answer = &report.answers[0];
    assert_eq!(answer.value.split(' ').next(), Some("11,440"), "{answer:?}");
    assert!(answer.aside.contains("2 jobs") && answer.aside.contains("p99 at most 3.184 ms"), "{answer:?}");
}
