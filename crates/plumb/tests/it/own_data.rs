//! Load, index, check and drop of the user's own files.

use crate::program::{fine, names, refused};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// A file with text keys, quoted commas, NULLs, dates and numbers.
fn shops(rows: usize) -> String {
    let mut text = String::from("city,name,opened,area,zip\n");
    for row in 0..rows {
        let city = ["Zürich", "São Paulo", "Oslo", "", "東京"][row % 5];
        let area = if row % 7 == 0 { String::new() } else { format!("{}.{:02}", row % 1000, row % 100) };
        let _ = writeln!(
            text,
            "{city},\"Shop, no. {}\",2024-0{}-11,{area},0{row:05}",
            row * 7919 % rows,
            row % 9 + 1
        );
    }
    text
}

fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).expect("a file");
}

#[test]
fn a_csv_file_is_loaded_indexed_and_checked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "shops.csv", &shops(5000));
    let loaded = fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    assert!(loaded.contains("shops.csv: 5,000 rows\n"), "{loaded}");
    assert!(loaded.contains("/plumb.db: 5,000 rows, "), "{loaded}");
    for columns in [&["city,name"][..], &["area", "desc,opened"], &["zip"]] {
        let arguments = ["index", "shops"].into_iter().chain(columns.iter().copied());
        let built = fine(directory.path(), arguments.chain(["--set", "sort_area_size=64K"]));
        // The text after the word depends on other processes of the machine.
        assert!(
            built.contains(": UNVERIFIED") && built.contains("(no check of the result was run, "),
            "{built}"
        );
        assert!(built.ends_with("; run `plumb check shops` to verify it\n"), "{built}");
    }
    let listed = fine(directory.path(), ["list", "tables"]);
    assert!(listed.contains("SHOPS_CITY_NAME_IX"), "{listed}");
    assert!(listed.contains("area desc, opened"), "{listed}");
    let checked = fine(directory.path(), ["check", "shops"]);
    assert!(checked.starts_with("table SHOPS\n"), "{checked}");
    assert_eq!(fine(directory.path(), ["check"]).lines().count(), checked.lines().count());
    assert_eq!(names(directory.path()), ["plumb.db", "shops.csv"]);
}

/// A packed area has several times the bytes of its memory; receipts must not
/// report that as another area.
#[test]
fn texts_that_share_most_of_their_bytes_leave_receipts_that_hold() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut text = String::from("address\n");
    for row in 0..60_000_u64 {
        let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        let _ = writeln!(text, "https://www.example.org/a/rather/long/path/{mixed:07}");
    }
    write(directory.path(), "pages.csv", &text);
    fine(directory.path(), ["load", "pages.csv", "--table", "pages"]);
    for area in ["sort_area_size=64K", "sort_area_size=512K"] {
        let arguments =
            ["index", "pages", "address", "--set", area, "--set", "parallel_degree=1", "--report"];
        let built = fine(directory.path(), arguments);
        let words = built.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(" unpacked, where such an area makes runs of "), "{built}");
        fine(directory.path(), ["check", "pages"]);
        fine(directory.path(), ["drop", "pages_address_ix"]);
    }
}

#[test]
fn what_was_found_about_the_columns_is_shown() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "shops.csv", &shops(100));
    let loaded = fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    let columns =
        loaded.lines().take_while(|line| !line.starts_with("table ")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(columns);
}

#[test]
fn gzip_other_delimiters_null_texts_and_given_types_work() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"id;amount;code\n1;NA;007\n2;3.50;-\n3;NA;008\n").expect("memory");
    fs::write(directory.path().join("data.csv.gz"), packed.finish().expect("memory")).expect("a file");
    let loaded = fine(
        directory.path(),
        [
            "load",
            "data.csv.gz",
            "--table",
            "d",
            "--delimiter",
            "semicolon",
            "--null",
            "NA",
            "--null",
            "-",
            "--types",
            "code=VARCHAR2(9)",
        ],
    );
    assert!(loaded.contains("NUMBER(3,2)"), "a closing zero comes back: {loaded}");
    assert!(loaded.contains("VARCHAR2(9)"), "{loaded}");
    assert!(loaded.contains("3 rows"), "{loaded}");
    fine(directory.path(), ["index", "d", "amount,code"]);
    fine(directory.path(), ["check", "d"]);
}

#[test]
fn a_file_without_a_header_and_odd_names_are_loaded_as_they_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    write(here, "rows.csv", "101,Ulm,-6.08\n102,Bonn,7.1\n");
    let (_, line) = refused(here, ["load", "rows.csv", "--table", "t"]);
    assert!(
        line.contains("2 of 2 are values as those below them; say --no-header or --names A,B,..."),
        "{line}"
    );
    let named = ["load", "rows.csv", "--table", "t", "--names", "id,\"price, EUR\",a=b"];
    assert!(fine(here, named).starts_with("rows.csv: 2 rows\n"));
    assert_eq!(fine(here, ["export", "t"]), "id,\"price, EUR\",a=b\n101,Ulm,-6.08\n102,Bonn,7.1\n");
    let (_, line) = refused(here, ["index", "t", "price"]);
    assert!(line.contains("id, \"price, EUR\", \"a=b\""), "{line}");
    fine(here, ["index", "t", "\"price, EUR\" desc,a=b"]);
    let types = ["load", "rows.csv", "--table", "u", "--no-header", "--types", "\"column_3\"=NUMBER(9,3)"];
    fine(here, types);
    assert_eq!(fine(here, ["export", "u"]), "column_1,column_2,column_3\n101,Ulm,-6.080\n102,Bonn,7.100\n");
    write(here, "quotes.tsv", "id\ttitle (\")\n1\t\"Open\n2\tshut\"\n");
    let said = fine(here, ["load", "quotes.tsv", "--table", "swallowed"]);
    let expected = "1 row has a field of several lines: on lines 2 to 3; if quotes are text in this file, load again with \
                    --quote none\n";
    assert!(said.contains(expected), "{said}");
    assert!(
        fine(here, ["load", "quotes.tsv", "--table", "q", "--quote", "none"])
            .starts_with("quotes.tsv: 2 rows\n")
    );
    assert!(fine(here, ["check"]).ends_with("passed: 4 tables and their indexes are right\n"));
    assert!(fine(here, ["check", "t"]).ends_with("passed: the table and its indexes are right\n"));
}

#[test]
fn a_blank_line_is_a_null_in_one_column_and_skipped_and_said_in_several() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "one.csv", "a\n1\n\n3\n");
    let loaded = fine(directory.path(), ["load", "one.csv", "--table", "one"]);
    assert!(loaded.contains("one.csv: 3 rows\n"), "{loaded}");
    assert!(!loaded.contains("blank"), "{loaded}");
    write(directory.path(), "two.csv", "a,b\n1,2\n\n3,4\n\n\n");
    let loaded = fine(directory.path(), ["load", "two.csv", "--table", "two"]);
    assert!(loaded.contains("two.csv: 2 rows\n") && loaded.ends_with("3 blank lines skipped\n"), "{loaded}");
    fine(directory.path(), ["check"]);
}

#[test]
fn a_dropped_table_goes_with_its_indexes_and_its_space_is_used_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "shops.csv", &shops(2000));
    fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    fine(directory.path(), ["index", "shops", "name", "--name", "by_name"]);
    assert_eq!(fine(directory.path(), ["drop", "by_name"]), "dropped index BY_NAME\n");
    fine(directory.path(), ["index", "shops", "name", "--name", "by_name"]);
    assert_eq!(fine(directory.path(), ["drop", "shops"]), "dropped table SHOPS, index BY_NAME\n");
    assert_eq!(fine(directory.path(), ["list", "tables"]), "the database has no table\n");
    fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    fine(directory.path(), ["check"]);
}

#[test]
fn an_index_writes_a_bundle_when_asked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "shops.csv", &shops(2000));
    fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    let built = fine(directory.path(), ["index", "shops", "name", "--report", "--bundle", "b"]);
    assert!(built.starts_with("PLUMB REPORT  Workload: index\n"), "{built}");
    assert_eq!(names(&directory.path().join("b")), ["record.json", "report.html", "report.txt"]);
}

#[test]
fn a_table_without_rows_can_be_indexed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "empty.csv", "a,b\n");
    fine(directory.path(), ["load", "empty.csv", "--table", "empty"]);
    fine(directory.path(), ["index", "empty", "a"]);
    fine(directory.path(), ["check", "empty"]);
}

#[test]
fn a_name_is_used_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path(), "shops.csv", &shops(10));
    fine(directory.path(), ["load", "shops.csv", "--table", "shops"]);
    let ended = crate::program::plumb(directory.path(), ["load", "shops.csv", "--table", "Shops"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "plumb: table SHOPS exists already: choose another name, or remove it first with `plumb drop SHOPS`\n"
    );
    let (code, line) = refused(directory.path(), ["index", "shops", "size"]);
    assert_eq!(code, 1);
    assert!(line.contains("no column size") && line.contains("city"), "{line}");
}

#[test]
fn rows_longer_than_a_block_are_loaded_indexed_checked_and_listed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let row = |id: usize| {
        let bytes = if id.is_multiple_of(10) { 1500 } else { 20 };
        format!("{id},{},{}\n", "a".repeat(bytes), "b".repeat(bytes))
    };
    let rows: String = (0..1000).map(row).collect();
    write(directory.path(), "notes.csv", &format!("id,first,second\n{rows}"));
    fine(directory.path(), ["load", "notes.csv", "--table", "notes", "--set", "db_block_size=2K"]);
    fine(directory.path(), ["index", "notes", "id"]);
    let listed = fine(directory.path(), ["list", "tables"]);
    let words = |start: &str| {
        let line = listed.lines().find(|line| line.starts_with(start)).expect("a line");
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        words("NAME"),
        [
            "NAME",
            "KIND",
            "TABLESPACE",
            "ROWS",
            "DATA",
            "BLOCKS",
            "EXTENTS",
            "AVG",
            "ROW",
            "CHAINED",
            "COLUMNS"
        ]
    );
    let notes = words("NOTES");
    assert_eq!((notes[3].as_str(), notes[9].as_str()), ("1,000", "100"), "{listed}");
    let checked = fine(directory.path(), ["check", "notes"]);
    assert!(checked.contains("1,000 rows of 3 columns"), "{checked}");
}
