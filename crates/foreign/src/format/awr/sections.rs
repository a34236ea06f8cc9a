//! Describes the sections of AWR and Statspack reports as data.
//!
//! A row has the headings of all versions, 10.2 to 23ai, in text and HTML, single, global and
//! compare periods. A column that is not listed has the unit of its heading and no key. A heading
//! that is a prefix of another one comes after it.
//!
//! Narrow columns cut off suffixes. Waits of a histogram have five letters, so 616.4K prints as
//! 616.4. `Data per sec` has seven letters and loses its M, so its figures are in MB/s.

use crate::figure::sheet::{Known, Section, known, words};
use plumb_figures::FigureUnit;

/// Returns a section whose tables are often pasted without the heading.
const fn pasted(
    key: &'static str,
    headings: &'static [&'static str],
    first: &'static [&'static str],
    columns: &'static [Known],
) -> Section {
    Section { key, headings, first, columns }
}

const fn headed(key: &'static str, headings: &'static [&'static str], columns: &'static [Known]) -> Section {
    Section { key, headings, first: &[], columns }
}

/// Columns of every list of events.
const EVENTS: &[Known] = &[
    words("instance", &["I#"]),
    words("class", &["Wait Class", "Wait I# Class"]),
    words("event", &["Event", "Wait Event", "Event Name"]),
    known("waits", FigureUnit::COUNT, &["Waits", "Event Waits", "Total Waits"]),
    known("timeouts", FigureUnit::PERCENT, &["%Time -outs", "Event %Timeouts", "% Timeouts"]),
    known(
        "time",
        FigureUnit::S,
        &[
            "Total Wait Time (s)",
            "Total Wait Time (sec)",
            "Tota Time",
            "Total Time",
            "Time (s)",
            "Wait Time Total(s)",
            "Total Wait Time",
        ],
    ),
    known(
        "average",
        FigureUnit::MS,
        &[
            "Avg wait (ms)",
            "wait (ms)",
            "Wait Avg(ms)",
            "Avg Wait",
            "Avg Time(ms)",
            "Wait Time Avg Wait",
            "Wait Time Avg(ms)",
        ],
    ),
    known("most", FigureUnit::MS, &["Max wait"]),
    known("per_transaction", FigureUnit::NUMBER, &["Waits /txn"]),
    known(
        "share",
        FigureUnit::PERCENT,
        &[
            "% DB time",
            "% bg time",
            "%Total Call Time",
            "Call Time",
            "Wait Time %DB time",
            "Wait Time %bg time",
            "% Total Elapsed Time",
        ],
    ),
];

const COMPARED_EVENTS: &[Known] = &[
    words("first_event", &["1st Event"]),
    words("first_class", &["1st Wait Class"]),
    known("first_waits", FigureUnit::COUNT, &["1st Waits"]),
    known("first_time", FigureUnit::S, &["1st Time(s)"]),
    known("first_average", FigureUnit::MS, &["1st Avg Time(ms)"]),
    known("first_share", FigureUnit::PERCENT, &["1st %DB time"]),
    words("second_event", &["2nd Event"]),
    words("second_class", &["2nd Wait Class"]),
    known("second_waits", FigureUnit::COUNT, &["2nd Waits"]),
    known("second_time", FigureUnit::S, &["2nd Time(s)"]),
    known("second_average", FigureUnit::MS, &["2nd Avg Time(ms)"]),
    known("second_share", FigureUnit::PERCENT, &["2nd %DB time"]),
];

const CLASSES: &[Known] = &[
    words("class", &["Wait Class"]),
    known("waits", FigureUnit::COUNT, &["Waits"]),
    known("timeouts", FigureUnit::PERCENT, &["%Time -outs"]),
    known("time", FigureUnit::S, &["Total Wait Time (s)", "Total Wait Time (sec)"]),
    known("average", FigureUnit::MS, &["Avg wait (ms)", "Avg Wait", "Avg Wait Time"]),
    known("share", FigureUnit::PERCENT, &["% DB time"]),
    known("sessions", FigureUnit::NUMBER, &["Avg Active Sessions"]),
];

/// Columns of both tables of I/O statistics. Requests and data occur twice: for reads and writes.
const IOSTAT: &[Known] = &[
    words("name", &["Function Name", "Filetype Name", "Function/File Name", "Function", "Filetype", ""]),
    known("reads", FigureUnit::COUNT, &["Reads: Reqs"]),
    known("read_bytes", FigureUnit::MB, &["Reads: Data", "Data Volume Read"]),
    known("reads_per_s", FigureUnit::PER_S, &["Reqs per sec", "Requests per sec", "Requests /sec"]),
    known("read_bytes_per_s", FigureUnit::MB_PER_S, &["Data per sec", "Data Vol/sec", "Reads: MB/s"]),
    known("writes", FigureUnit::COUNT, &["Writes: Reqs"]),
    known("written_bytes", FigureUnit::MB, &["Writes: Data"]),
    known("writes_per_s", FigureUnit::PER_S, &["Reqs per sec", "Requests per sec", "Requests /sec"]),
    known("written_bytes_per_s", FigureUnit::MB_PER_S, &["Data per sec", "Data Vol/sec", "Writes: MB/s"]),
    known("waits", FigureUnit::COUNT, &["Waits: Count", "Wait Count"]),
    known("average", FigureUnit::MS, &["Avg Tm(ms)", "Avg Time", "Avg wait"]),
    known("small_read", FigureUnit::MS, &["Small Read"]),
    known("large_read", FigureUnit::MS, &["Large Read"]),
];

/// Columns of both tables of tablespaces and files.
const FILES: &[Known] = &[
    words("tablespace", &["Tablespace", "TS Name"]),
    words("file", &["Filename"]),
    known("reads", FigureUnit::COUNT, &["Reads"]),
    known("reads_per_s", FigureUnit::PER_S, &["Av Rds/s", "Av Reads/s"]),
    known("read_time", FigureUnit::MS, &["Av Rd(ms)", "Av Rd"]),
    known("blocks_per_read", FigureUnit::NUMBER, &["Av Blks/Rd"]),
    known("single_reads_per_s", FigureUnit::PER_S, &["1-bk Rds/s"]),
    known("single_read_time", FigureUnit::MS, &["Av 1-bk Rd(ms)"]),
    known("optimized", FigureUnit::PERCENT, &["% Opt Reads"]),
    known("writes", FigureUnit::COUNT, &["Writes"]),
    known("writes_per_s", FigureUnit::PER_S, &["Writes avg/s", "Av Writes/s", "Av Wrts/s"]),
    known("write_time", FigureUnit::MS, &["Av Writes(ms)", "Av Wrt"]),
    known("buffer_waits", FigureUnit::COUNT, &["Buffer Waits"]),
    known("buffer_wait_time", FigureUnit::MS, &["Av Buf Wt(ms)", "Av Buf Wt"]),
    words("pdb", &["PDB Name"]),
];

const HISTOGRAM: &[Known] = &[
    words("event", &["Event"]),
    known(
        "waits",
        FigureUnit::NARROW_COUNT,
        &["Total Waits", "Waits", "Waits 64ms to 2s", "Waits 4s to 2m", "Waits 4m to 1h"],
    ),
];

const ACTIVITY: &[Known] = &[
    words("name", &["Statistic", "Statistic Name"]),
    known("total", FigureUnit::COUNT, &["Total"]),
    known("per_second", FigureUnit::TWICE_ROUNDED, &["per Second"]),
    known("per_transaction", FigureUnit::TWICE_ROUNDED, &["per Trans", "per Transaction"]),
];

const PAIRS: &[Known] = &[words("name", &["Name"]), known("value", FigureUnit::NUMBER, &["Value"])];

/// The sections. A section comes after those whose heading begins with its own.
pub static SECTIONS: &[Section] = &[
    Section {
        key: "database",
        headings: &[],
        first: &["DB Name"],
        columns: &[
            words("database", &["DB Name"]),
            words("database_id", &["DB Id"]),
            words("unique_name", &["Unique Name"]),
            words("role", &["Role", "DB Role"]),
            words("edition", &["Edition"]),
            words("instance", &["Instance"]),
            words("instance_number", &["Inst Num"]),
            words("startup", &["Startup Time"]),
            words("release", &["Release"]),
            words("rac", &["RAC", "Cluster"]),
            words("cdb", &["CDB"]),
            words("host", &["Host"]),
        ],
    },
    Section {
        key: "database",
        headings: &[],
        first: &["Database Id", "Database Name"],
        columns: &[
            words("database_id", &["Database Id"]),
            words("database", &["Database Name"]),
            words("unique_name", &["Database Unique Name"]),
            words("role", &["Database Role"]),
            words("edition", &["Database Edition"]),
            words("cdb", &["Database CDB"]),
            words("rac_database", &["Database RAC"]),
            known("block_size", FigureUnit::BYTES, &["Database Block Size"]),
            known("db_time", FigureUnit::MINUTES, &["Report Total (minutes) DB time"]),
            known("elapsed", FigureUnit::MINUTES, &["Report Total (minutes) Elapsed time"]),
            words("instance", &["Instance"]),
            words("instance_number", &["Inst Num"]),
            words("startup", &["Startup Time"]),
            words("release", &["Release"]),
            words("rac", &["RAC"]),
        ],
    },
    Section {
        key: "database",
        headings: &[],
        first: &["DB Id", "Instance"],
        columns: &[
            words("database_id", &["DB Id"]),
            words("instance", &["Instance"]),
            words("instance_number", &["Inst Num"]),
            words("startup", &["Startup Time"]),
            words("release", &["Release"]),
            words("rac", &["RAC"]),
        ],
    },
    Section {
        key: "host",
        headings: &[],
        first: &["Name", "Platform"],
        columns: &[
            words("host", &["Name"]),
            words("platform", &["Platform"]),
            known("cpus", FigureUnit::COUNT, &["CPUs"]),
            known("cores", FigureUnit::COUNT, &["Cores"]),
            known("sockets", FigureUnit::COUNT, &["Sockets"]),
            known("memory", FigureUnit::GB, &["Memory (G)"]),
        ],
    },
    // The head of this program's reports.
    Section {
        key: "run",
        headings: &[],
        first: &["Workload", "Release"],
        columns: &[
            words("workload", &["Workload"]),
            words("release", &["Release"]),
            words("revision", &["Revision"]),
            words("settings", &["Settings Hash"]),
            words("seed", &["Seed"]),
        ],
    },
    Section {
        key: "instance",
        headings: &[],
        first: &["Instance", "Inst Num"],
        columns: &[
            words("instance", &["Instance"]),
            words("instance_number", &["Inst Num"]),
            words("startup", &["Startup Time"]),
        ],
    },
    Section {
        key: "host",
        headings: &[],
        first: &["Host Name"],
        columns: &[
            words("host", &["Host Name"]),
            words("platform", &["Platform"]),
            known("cpus", FigureUnit::COUNT, &["CPUs"]),
            known("cores", FigureUnit::COUNT, &["Cores"]),
            known("sockets", FigureUnit::COUNT, &["Sockets"]),
            known("memory", FigureUnit::GB, &["Memory(GB)", "Memory (G)", "Memory"]),
        ],
    },
    Section {
        key: "snapshots",
        headings: &[],
        first: &["Snap Id", "Snap Time"],
        columns: &[
            words("label", &["", "Snapshot"]),
            words("snapshot", &["Snap Id"]),
            words("time", &["Snap Time"]),
            known("sessions", FigureUnit::COUNT, &["Sessions"]),
            known("cursors", FigureUnit::NUMBER, &["Curs/Sess", "Cursors/Session"]),
            known("instances", FigureUnit::COUNT, &["Instances"]),
        ],
    },
    Section {
        key: "compared_databases",
        headings: &[],
        first: &["Snapshot Set", "DB Id"],
        columns: &[
            words("set", &["Snapshot Set"]),
            words("database_id", &["DB Id"]),
            words("instance", &["Instance"]),
            words("instance_number", &["Inst Num"]),
            words("release", &["Release"]),
            words("rac", &["Cluster"]),
            words("host", &["Host"]),
            known("block_size", FigureUnit::BYTES, &["Std Block Size"]),
        ],
    },
    Section {
        key: "compared_periods",
        headings: &[],
        first: &["Snapshot Set", "Begin Snap Id"],
        columns: &[
            words("set", &["Snapshot Set"]),
            words("begin_snapshot", &["Begin Snap Id"]),
            words("begin", &["Begin Snap Time"]),
            words("end_snapshot", &["End Snap Id"]),
            words("end", &["End Snap Time"]),
            known("active", FigureUnit::NUMBER, &["Avg Active Users"]),
            known("elapsed", FigureUnit::MINUTES, &["Elapsed Time (min)"]),
            known("db_time", FigureUnit::MINUTES, &["DB time (min)"]),
        ],
    },
    headed(
        "included_instances",
        &["Database Instances Included In Report"],
        &[
            words("instance", &["I#"]),
            words("name", &["Instance"]),
            words("host", &["Host"]),
            words("startup", &["Startup"]),
            words("begin", &["Begin Snap Time"]),
            words("end", &["End Snap Time"]),
            words("release", &["Release"]),
            known("elapsed", FigureUnit::MINUTES, &["Elapsed Time(min)"]),
            known("db_time", FigureUnit::MINUTES, &["DB time(min)"]),
            known("up_time", FigureUnit::NUMBER, &["Up Time(hrs)"]),
            known("active", FigureUnit::NUMBER, &["Avg Active Sessions"]),
            words("platform", &["Platform"]),
        ],
    ),
    headed(
        "compared_load",
        &["Workload Comparison", "Load Profile Comparison"],
        &[
            words("name", &["", "Load Profile"]),
            known("first_per_second", FigureUnit::NUMBER, &["1st Per Sec"]),
            known("second_per_second", FigureUnit::NUMBER, &["2nd Per Sec"]),
            known("difference_per_second", FigureUnit::PERCENT, &["%Diff"]),
            known("first_per_transaction", FigureUnit::NUMBER, &["1st Per Txn"]),
            known("second_per_transaction", FigureUnit::NUMBER, &["2nd Per Txn"]),
            known("difference_per_transaction", FigureUnit::PERCENT, &["%Diff"]),
        ],
    ),
    headed(
        "compared_hosts",
        &["Host Configuration Comparison"],
        &[
            words("name", &["", "Name"]),
            known("first", FigureUnit::NUMBER, &["1st"]),
            known("second", FigureUnit::NUMBER, &["2nd"]),
            known("difference", FigureUnit::NUMBER, &["Diff"]),
            known("percent", FigureUnit::PERCENT, &["%Diff"]),
        ],
    ),
    headed(
        "load_profile",
        &["Load Profile"],
        &[
            words("name", &["", "Load Profile", "Load"]),
            known("total", FigureUnit::NUMBER, &["Total"]),
            known("per_second", FigureUnit::TWICE_ROUNDED, &["Per Second"]),
            known("per_transaction", FigureUnit::TWICE_ROUNDED, &["Per Transaction"]),
            known("per_exec", FigureUnit::NUMBER, &["Per Exec"]),
            known("per_call", FigureUnit::NUMBER, &["Per Call"]),
        ],
    ),
    headed("efficiency", &["Instance Efficiency"], PAIRS),
    headed("compared_events", &["Top Timed Events First"], COMPARED_EVENTS),
    headed("top_foreground_events", &["Top Timed Foreground Events"], EVENTS),
    headed("top_background_events", &["Top Timed Background Events"], EVENTS),
    pasted(
        "top_events",
        &[
            "Top 5 Timed",
            "Top 10 Foreground Events",
            "Top 10 Timed",
            "Top Timed Events",
            "Top Timed Foreground",
        ],
        &["Event", "Waits"],
        EVENTS,
    ),
    headed("wait_classes", &["Wait Classes by Total Wait Time"], CLASSES),
    headed("global_classes", &["Foreground Wait Classes"], &[]),
    headed("foreground_classes", &["Foreground Wait Class"], CLASSES),
    headed(
        "host_cpu",
        &["Host CPU"],
        &[
            known("cpus", FigureUnit::COUNT, &["CPUs"]),
            known("cores", FigureUnit::COUNT, &["Cores"]),
            known("sockets", FigureUnit::COUNT, &["Sockets"]),
            known("load_begin", FigureUnit::NUMBER, &["Load Average Begin", "Begin", "Load Begin"]),
            known("load_end", FigureUnit::NUMBER, &["Load Average End", "End", "Average End"]),
            known("user", FigureUnit::PERCENT, &["%User", "User"]),
            known("system", FigureUnit::PERCENT, &["%System", "System"]),
            known("wio", FigureUnit::PERCENT, &["%WIO", "WIO"]),
            known("idle", FigureUnit::PERCENT, &["%Idle", "Idle"]),
            words("state", &["State"]),
            known("time", FigureUnit::S, &["Time (s)"]),
            known("share", FigureUnit::PERCENT, &["% of CPU"]),
        ],
    ),
    headed(
        "statement",
        &["Statistics of a statement"],
        &[words("name", &["Statistic"]), known("value", FigureUnit::NUMBER, &["Value"])],
    ),
    headed("instance_cpu", &["Instance CPU"], PAIRS),
    headed(
        "io_profile",
        &["IO Profile"],
        &[
            words("name", &["", "Statistic", "IO Profile"]),
            known(
                "total",
                FigureUnit::NUMBER,
                &["Read+Write/Second", "Read+Write Per Second", "Read+Write/s"],
            ),
            known("reads", FigureUnit::NUMBER, &["Read/Second", "Read per Second", "Reads/s"]),
            known("writes", FigureUnit::NUMBER, &["Write/Second", "Write per Second", "Writes/s"]),
        ],
    ),
    headed(
        "cache_sizes",
        &["Cache Sizes"],
        &[
            words("name", &["", "Name", "Area"]),
            known("begin", FigureUnit::BYTES, &["Begin", "Size"]),
            known("end", FigureUnit::BYTES, &["End"]),
        ],
    ),
    headed(
        "time_model",
        &["Time Model Statistics"],
        &[
            words("name", &["Statistic Name", "Statistic"]),
            known("time", FigureUnit::S, &["Time (s)"]),
            known("share", FigureUnit::PERCENT, &["% of DB Time", "% DB Time"]),
            known("cpu_share", FigureUnit::PERCENT, &["% of Total CPU Time"]),
        ],
    ),
    headed(
        "os_statistics_by_instance",
        &["OS Statistics By Instance"],
        &[words("instance", &["I#"]), known("cpus", FigureUnit::COUNT, &["CPU #CPUs"])],
    ),
    headed("os_statistics_detail", &["Operating System Statistics - Detail", "OS Statistics - detail"], &[]),
    headed(
        "os_statistics",
        &["Operating System Statistics", "OS Statistics"],
        &[
            words("name", &["Statistic"]),
            known("value", FigureUnit::NUMBER, &["Value", "Total"]),
            known("end", FigureUnit::NUMBER, &["End Value"]),
        ],
    ),
    headed("foreground_events", &["Foreground Wait Events"], EVENTS),
    headed("background_events", &["Background Wait Events"], EVENTS),
    headed("wait_events", &["Wait Events"], EVENTS),
    headed("histogram_detail", &["Wait Event Histogram Detail", "Wait Event Histogram (up to"], HISTOGRAM),
    headed("histogram", &["Wait Event Histogram"], HISTOGRAM),
    headed(
        "absolute_values",
        &["Instance Activity Stats - Absolute Values", "System Statistics (Absolute Values)"],
        &[],
    ),
    headed(
        "thread_activity",
        &["Instance Activity Stats - Thread Activity"],
        &[
            words("name", &["Statistic"]),
            known("total", FigureUnit::COUNT, &["Total"]),
            known("per_hour", FigureUnit::NUMBER, &["per Hour"]),
        ],
    ),
    pasted(
        "activity",
        &[
            "Key Instance Activity Stats",
            "Other Instance Activity Stats",
            "Instance Activity Stats",
            "System Statistics (Global)",
        ],
        &["Statistic", "Total"],
        ACTIVITY,
    ),
    headed("io_function_filetypes", &["IOStat by Function/Filetype"], IOSTAT),
    pasted(
        "io_filetypes",
        &["IOStat by Filetype summary", "IO Stat by Filetype -"],
        &["Filetype Name", "Reads: Data"],
        IOSTAT,
    ),
    pasted(
        "global_io_functions_rates",
        &["IOStat by Function (per Second)"],
        &["#", "Reads MB/sec Total"],
        &[
            words("instance", &["I#", "#"]),
            known("read_bytes_per_s", FigureUnit::MB_PER_S, &["Reads MB/sec Total"]),
            known("cache_read_bytes_per_s", FigureUnit::MB_PER_S, &["Reads MB/sec Buffer Cache"]),
            known("direct_read_bytes_per_s", FigureUnit::MB_PER_S, &["Reads MB/sec Direct Reads"]),
            known("written_bytes_per_s", FigureUnit::MB_PER_S, &["Writes MB/sec Total"]),
            known("dbwr_bytes_per_s", FigureUnit::MB_PER_S, &["Writes MB/sec DBWR"]),
            known("direct_written_bytes_per_s", FigureUnit::MB_PER_S, &["Writes MB/sec Direct Writes"]),
            known("lgwr_bytes_per_s", FigureUnit::MB_PER_S, &["Writes MB/sec LGWR"]),
            known("reads_per_s", FigureUnit::PER_S, &["Reads requests/sec Total"]),
            known("cache_reads_per_s", FigureUnit::PER_S, &["Reads requests/sec Buffer Cache"]),
            known("direct_reads_per_s", FigureUnit::PER_S, &["Reads requests/sec Direct Reads"]),
            known("writes_per_s", FigureUnit::PER_S, &["Writes requests/sec Total"]),
            known("dbwr_writes_per_s", FigureUnit::PER_S, &["Writes requests/sec DBWR"]),
            known("direct_writes_per_s", FigureUnit::PER_S, &["Writes requests/sec Direct Writes"]),
            known("lgwr_writes_per_s", FigureUnit::PER_S, &["Writes requests/sec LGWR"]),
        ],
    ),
    pasted(
        "io_functions",
        &["IOStat by Function summary", "IO Stat by Function - summary"],
        &["Function Name", "Reads: Data"],
        IOSTAT,
    ),
    headed("global_io_functions", &["IOStat by Function"], GLOBAL_IO),
    headed("global_io_filetypes", &["IOStat by File Type"], GLOBAL_IO),
    pasted("tablespaces", &["Tablespace IO Stats"], &["Tablespace", "Reads"], FILES),
    pasted("files", &["File IO Stats"], &["Tablespace", "Filename"], FILES),
    headed(
        "sql_by_reads",
        &["SQL ordered by Reads"],
        &[
            known("reads", FigureUnit::COUNT, &["Physical Reads"]),
            known("share", FigureUnit::PERCENT, &["%Total"]),
            words("statement", &["SQL Id", "Hash Value", "Old Hash Value"]),
        ],
    ),
    headed(
        "buffer_advisory",
        &["Buffer Pool Advisory"],
        &[
            words("pool", &["P"]),
            known("size_factor", FigureUnit::NUMBER, &["Size Factor"]),
            known("read_factor", FigureUnit::NUMBER, &["Est Phys Read Factor"]),
        ],
    ),
    headed(
        "pga_histogram",
        &["PGA Aggr Target Histogram"],
        &[
            known("low", FigureUnit::BYTES, &["Low Optimal"]),
            known("high", FigureUnit::BYTES, &["High Optimal"]),
            known("one_pass", FigureUnit::COUNT, &["1-Pass Execs"]),
            known("multi_pass", FigureUnit::COUNT, &["M-Pass Execs"]),
        ],
    ),
    headed("multi_valued_parameters", &["init.ora Multi-Valued Parameters"], PARAMETERS),
    headed("parameters", &["init.ora Parameters"], PARAMETERS),
];

const GLOBAL_IO: &[Known] = &[
    words("instance", &["I#"]),
    words("name", &["Function Name", "Filetype Name"]),
    known("requests", FigureUnit::COUNT, &["Requests Total"]),
    known("requests_per_s", FigureUnit::PER_S, &["Requests IOs/s"]),
    known("reads_per_s", FigureUnit::PER_S, &["Requests Reads/s"]),
    known("writes_per_s", FigureUnit::PER_S, &["Requests Writes/s"]),
    known("bytes", FigureUnit::MB, &["MB Total"]),
    known("bytes_per_s", FigureUnit::MB_PER_S, &["MB IO MB/s"]),
    known("read_bytes_per_s", FigureUnit::MB_PER_S, &["MB Read MB/s"]),
    known("written_bytes_per_s", FigureUnit::MB_PER_S, &["MB Write MB/s"]),
    known("waits", FigureUnit::COUNT, &["Waits: Count"]),
    known("average", FigureUnit::MS, &["Avg Time"]),
    known("small_read", FigureUnit::MS, &["Service Time Small Read"]),
    known("large_read", FigureUnit::MS, &["Service Time Large Read"]),
];

const PARAMETERS: &[Known] = &[
    words("name", &["Parameter Name"]),
    words("instance", &["I#"]),
    words("value", &["Begin value", "Value"]),
    words("end", &["End value (if different)"]),
];

/// Returns the section of a table by its heading, or without one by its first columns.
#[must_use]
pub fn section_of(heading: &str, names: &[String]) -> Option<&'static Section> {
    match heading {
        "" => SECTIONS.iter().find(|section| section.begins(names)),
        heading => SECTIONS.iter().find(|section| section.is_headed(heading)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::sheet::plain;

    #[test]
    fn every_section_is_reached_by_each_of_its_headings() {
        for section in SECTIONS {
            for heading in section.headings {
                let found = section_of(heading, &[]).map(|found| found.key);
                assert_eq!(found, Some(section.key), "{heading}");
            }
        }
    }

    #[test]
    fn keys_and_headings_of_columns_are_unique_where_they_must_be() {
        for section in SECTIONS {
            let keys: Vec<&str> = section.columns.iter().map(|column| column.key).collect();
            for (at, key) in keys.iter().enumerate() {
                assert!(!keys[..at].contains(key), "{}: {key}", section.key);
            }
            for column in section.columns {
                let headings: Vec<String> = column.headings.iter().map(|heading| plain(heading)).collect();
                for (at, heading) in headings.iter().enumerate() {
                    assert!(!headings[..at].contains(heading), "{}: {heading}", section.key);
                }
            }
        }
    }
}
