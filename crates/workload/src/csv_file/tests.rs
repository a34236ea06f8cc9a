//! CSV files as users have them: inferred types, rows, and the text of every error.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use plumb_types::{Value, columns};
use std::io::Write;

/// A directory with the file `rows.csv` in it.
struct Given {
    dir: tempfile::TempDir,
}

impl Given {
    fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("rows.csv"), bytes).unwrap();
        Given { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("rows.csv")
    }

    fn open(&self, options: CsvOptions) -> Result<CsvFile, CsvError> {
        CsvFile::open(self.path(), options)
    }

    /// Error text with the directory taken out.
    fn text(&self, error: impl std::fmt::Display) -> String {
        let text = error.to_string().replace(&format!("{}/", self.dir.path().display()), "");
        assert!(!text.contains('\n'), "an error is one line: {text:?}");
        text
    }
}

/// Formats all rows, a line each, with bars between columns.
fn shown(file: &CsvFile) -> Result<String, SourceError> {
    let mut batch = RowBatch::new();
    let mut lines = Vec::new();
    while file.next_batch(&mut batch)? {
        for row in batch.iter() {
            let values: Vec<String> = columns(row)
                .zip(&file.schema().columns)
                .map(|(bytes, column)| Value::from_encoded(&column.column_type, bytes).unwrap().to_string())
                .collect();
            lines.push(values.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

fn schema_of(file: &CsvFile) -> String {
    let shown = file.schema().columns.iter().map(|column| {
        let null = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {}{null}", column.name, column.column_type)
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Compares the schema and rows of a file of these bytes.
#[track_caller]
fn check(bytes: &[u8], schema: &str, rows: &str) {
    let given = Given::new(bytes);
    let file = given.open(CsvOptions::default()).unwrap();
    assert_eq!(schema_of(&file), schema);
    assert_eq!(shown(&file).unwrap(), rows);
    let row_count = rows.replace("\r\n", " ").lines().count();
    assert_eq!(file.row_count(), Some(row_count as u64));
}

/// Compares the error of opening the file or of reading its rows.
#[track_caller]
fn check_error(bytes: &[u8], options: CsvOptions, expect: &str) {
    let given = Given::new(bytes);
    let found = match given.open(options) {
        Err(error) => given.text(error),
        Ok(file) => {
            let error = shown(&file).expect_err("an error");
            assert!(error.downcast_ref::<CsvError>().is_some());
            assert!(!file.next_batch(&mut RowBatch::new()).unwrap(), "nothing follows an error");
            given.text(error)
        }
    };
    assert_eq!(found, expect);
}

fn typed(types: &[&str]) -> CsvOptions {
    let types = types.iter().map(|entry| match entry.split_once(':') {
        Some((name, column_type)) => (Some(name.to_owned()), column_type.parse().unwrap()),
        None => (None, entry.parse().unwrap()),
    });
    CsvOptions { types: types.collect(), ..CsvOptions::default() }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn types_follow_from_all_values() {
    check(
        b"id,price,day,note,none\n1,2.5,2024-01-31,abc,\n200,-10,2024-02-01 13:45:00,,\n",
        "id NUMBER(3) NOT NULL, price NUMBER(3,1) NOT NULL, day DATE NOT NULL, note VARCHAR2(3), none VARCHAR2(1)",
        "1|2.5|2024-01-31|abc|NULL\n200|-10|2024-02-01 13:45:00|NULL|NULL",
    );
    check(b"a,b\n0,0.05\n0,1000\n", "a NUMBER(1) NOT NULL, b NUMBER(6,2) NOT NULL", "0|0.05\n0|1000");
    let wide = format!("1{}\n0.00001", "0".repeat(37));
    check(format!("a\n{wide}\n").as_bytes(), "a NUMBER NOT NULL", &wide);
    check(b"a,b\n 12 , 2024-01-31\n", "a NUMBER(2) NOT NULL, b DATE NOT NULL", "12|2024-01-31");
    check("a\nüber\n".as_bytes(), "a VARCHAR2(5) NOT NULL", "über");
}

#[test]
fn a_column_that_became_text_says_why() {
    let reason = |text: &str| {
        let given = Given::new(text.as_bytes());
        let file = given.open(CsvOptions::default()).unwrap();
        match &file.findings()[0].basis {
            ColumnBasis::Text { reason, .. } => reason.to_string(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(reason("a\n1\n\nx\n"), "line 4: \"x\" is not a number, as the values above it are");
    assert_eq!(reason("a\n007\n"), "line 2: \"007\" starts with zeros that a number would lose");
    assert_eq!(reason("a\n1\n-01\n"), "line 3: \"-01\" starts with zeros that a number would lose");
    assert_eq!(
        reason("a\n2024-01-31\n2024-02-30\n"),
        "line 3: \"2024-02-30\" is not a date, as the values above it are"
    );
    assert_eq!(
        reason("a\n2024-01-31 10:00:00.123\n"),
        "line 2: \"2024-01-31 10:00:00.123\" has fractional seconds that a DATE would lose"
    );
    assert_eq!(reason("a\nabc\n"), "line 2: \"abc\" is neither a number nor a date");
    assert_eq!(
        reason("a\n1234567890123456789012345678901234567890x\n"),
        "line 2: \"1234567890123456789012345678901234567890...\" is neither a number nor a date"
    );
    assert_eq!(
        reason("a\n123456789012345678901234567890123456789\n"),
        "line 2: \"123456789012345678901234567890123456789\" has more digits or another size than a NUMBER keeps"
    );
    assert_eq!(
        reason("a\n0\n0.5\n"),
        "Numbers { integer_digits: 0, fraction_digits: 1, written: NumberForm { decimals: 0, zero_before_point: true } }"
    );
    assert_eq!(reason("a\n \n"), "line 2: \" \" is neither a number nor a date");
}

/// The rule: one form of numbers reproduces every value of the column.
#[test]
fn what_would_come_back_as_another_text_is_no_number() {
    let basis = |values: &str| {
        let given = Given::new(format!("a\n{values}\n").as_bytes());
        let basis = given.open(CsvOptions::default()).unwrap().findings()[0].basis.clone();
        match basis {
            ColumnBasis::Text { reason, .. } => reason.to_string(),
            other => other.column_type().to_string(),
        }
    };
    let cases = [
        ("+49", "line 2: \"+49\" has a sign that a number would lose"),
        ("1\n-0", "line 3: \"-0\" has a sign that a number would lose"),
        ("1E5", "line 2: \"1E5\" is written with an exponent, which a number would lose"),
        ("1.9\n1.10", "line 3: \"1.10\" ends in zeros that a number would lose"),
        (
            "1.10\n1.9",
            "line 3: \"1.9\" has other digits behind the point than the values above it, whose closing zeros a \
             number would lose",
        ),
        ("5.", "line 2: \"5.\" has a point without digits on one side, which a number would lose"),
        ("0.5\n.5", "line 3: \".5\" has a point without digits on one side, which a number would lose"),
        // One form each: prices, floats as programs print them, the shortest, Oracle's.
        ("1.10\n-2.50\n0.00", "NUMBER(3,2)"),
        ("10.00\n20.00", "NUMBER(4,2)"),
        ("10.0\n2.25\n-3.5", "NUMBER(4,2)"),
        ("10\n2.25\n0.5", "NUMBER(4,2)"),
        (".5\n-.25\n3", "NUMBER(3,2)"),
    ];
    for (values, expected) in cases {
        assert_eq!(basis(values), expected, "{values:?}");
    }
}

#[test]
fn text_that_began_as_numbers_keeps_its_longest_value() {
    check(b"a\n1000000\nx\n", "a VARCHAR2(7) NOT NULL", "1000000\nx");
}

#[test]
fn quotes_line_breaks_and_line_ends_are_those_of_rfc_4180() {
    check(
        b"a,b\r\n\"x, \"\"y\"\"\r\nz\",1\r\n\"\",2\r\n",
        "a VARCHAR2(9), b NUMBER(1) NOT NULL",
        "x, \"y\"\r\nz|1\nNULL|2",
    );
}

#[test]
fn a_quoted_line_break_counts_as_a_line() {
    check_error(
        b"a,b\r\n\"x\r\ny\",1\r\n\r\n\"p\r\nq\"\r\n",
        CsvOptions::default(),
        "rows.csv:5: found 1 field, the last \"p\\r\\nq\", expected 2 as in the first row; \
         column b is the first without a value: complete the row or take it out",
    );
}

#[test]
fn the_byte_order_mark_is_skipped() {
    check(b"\xEF\xBB\xBFa\n1\n", "a NUMBER(1) NOT NULL", "1");
    check_error(
        b"\xFF\xFEa\0\n\0",
        CsvOptions::default(),
        "rows.csv is UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8",
    );
}

#[test]
fn delimiters_are_found_or_given() {
    check(b"a;b\n1,5;2\n", "a VARCHAR2(3) NOT NULL, b NUMBER(1) NOT NULL", "1,5|2");
    check(b"a\tb\n1\t2\n", "a NUMBER(1) NOT NULL, b NUMBER(1) NOT NULL", "1|2");
    let given = Given::new(b"a;b\n1;2\n");
    let file = given.open(CsvOptions { delimiter: Delimiter::Byte(b','), ..CsvOptions::default() }).unwrap();
    assert_eq!(schema_of(&file), "a;b VARCHAR2(3) NOT NULL");
    check(b"id|name\n1|x\n", "id NUMBER(1) NOT NULL, name VARCHAR2(1) NOT NULL", "1|x");
    check_error(
        b"a|b,c\n1|2,3\n",
        CsvOptions::default(),
        "rows.csv: the header has 1 comma and 1 |, and the lines below it do not tell which of them stands between two \
         fields: say so with --delimiter",
    );
}

#[test]
fn dates_of_any_one_form_are_found() {
    let date = "d DATE NOT NULL";
    check(b"d\n2012/01/01\n2012/12/31 23:59\n", date, "2012-01-01\n2012-12-31 23:59:00");
    check(b"d\n03/04/2020\n31/12/2020\n", date, "2020-04-03\n2020-12-31");
    check(b"d\n2020-06-01T10:00:00+02:00\n", date, "2020-06-01 10:00:00");
    for (text, why) in [
        (
            "d\n03/04/2020\n05/06/2020\n",
            "line 2: \"03/04/2020\" may be DD/MM/YYYY or MM/DD/YYYY, and so may all other values; --date-format says which",
        ),
        (
            "d\n2020-01-01\n02/01/2020\n",
            "line 3: \"02/01/2020\" is written in another order or with other marks than the dates above it",
        ),
        (
            "d\n2020-06-01T10:00:00+02:00\n2020-12-01T10:00:00+01:00\n",
            "line 3: \"2020-12-01T10:00:00+01:00\" has another time zone than the times above it, which a DATE would lose",
        ),
    ] {
        let file = Given::new(text.as_bytes()).open(CsvOptions::default()).unwrap();
        let ColumnBasis::Text { reason, .. } = &file.findings()[0].basis else { panic!("{text}") };
        assert_eq!(reason.to_string(), why);
    }
    let american = Some(DateForm::parse("MM/DD/YYYY").unwrap());
    let options = CsvOptions { date_form: american, ..CsvOptions::default() };
    let given = Given::new(b"d\n03/04/2020\n05/06/2020\n");
    assert_eq!(shown(&given.open(options.clone()).unwrap()).unwrap(), "2020-03-04\n2020-05-06");
    // A given type behaves in the same way.
    let given = Given::new(b"d\n03/04/2020\n31/12/2020\n");
    let file = given.open(CsvOptions { types: typed(&["DATE"]).types, ..options }).unwrap();
    let error = given.text(shown(&file).unwrap_err());
    assert_eq!(
        error,
        "rows.csv:3: column d: found \"31/12/2020\", expected DATE written MM/DD/YYYY; there is no day 2020-31-12 in the \
         calendar of the years 1 to 9999: correct it or give the column the type VARCHAR2"
    );
}

#[test]
fn bytes_may_lie_in_another_file_than_messages_name() {
    let given = Given::new(b"a\n1\nx\n");
    let options =
        CsvOptions { types: typed(&["NUMBER"]).types, bytes: Some(given.path()), ..CsvOptions::default() };
    let file = CsvFile::open("standard input", options).unwrap();
    let error = shown(&file).unwrap_err().to_string();
    assert!(error.starts_with("standard input:3: column a: found \"x\""), "{error}");
}

#[test]
fn gzip_is_told_by_content_and_may_have_members() {
    let mut bytes = gzip(b"\xEF\xBB\xBFa,b\n1,x\n");
    bytes.extend(gzip(b"2,y\n"));
    check(&bytes, "a NUMBER(1) NOT NULL, b VARCHAR2(1) NOT NULL", "1|x\n2|y");
    let given = Given::new(&gzip(&b"a,b\n1,2\n".repeat(1000))[..40]);
    let error = given.text(given.open(CsvOptions::default()).unwrap_err());
    // The decompressor decides how many lines come out first, and its own words.
    assert!(error.starts_with("rows.csv is a damaged gzip file: ") && error.contains(" after "), "{error}");
    assert!(error.ends_with(" lines; fetch or compress it again"), "{error}");
    let mut broken = gzip(b"a,b\n1,2\n");
    broken[10..14].fill(0xFF);
    let given = Given::new(&broken);
    let error = given.text(given.open(CsvOptions::default()).unwrap_err());
    assert!(error.starts_with("rows.csv is a damaged gzip file: "), "{error}");
}

#[test]
fn what_stands_behind_gzip_data_is_padding_or_named() {
    let whole = gzip(b"a,b\n1,x\n");
    let padded = [&whole[..], &vec![0; 100_000], &gzip(b"2,y\n"), &[0; 7]].concat();
    check(&padded, "a NUMBER(1) NOT NULL, b VARCHAR2(1) NOT NULL", "1|x\n2|y");
    let garbage = [&whole[..], &[0; 3], b"garbage"].concat();
    let given = Given::new(&garbage);
    let error = given.text(given.open(CsvOptions::default()).unwrap_err());
    assert_eq!(
        error,
        "rows.csv: behind the whole gzip data stands something else, beginning \"garbage\"; if it is worth nothing, load \
         what is before it"
    );
}

#[test]
fn a_first_line_that_names_the_delimiter_is_no_header() {
    check(b"sep=;\nid;name\n1;x, y\n", "id NUMBER(1) NOT NULL, name VARCHAR2(4) NOT NULL", "1|x, y");
    check(b"\xEF\xBB\xBF\"sep=|\"\r\na\r\n1\r\n", "a NUMBER(1) NOT NULL", "1");
    check_error(
        b"sep=;\na;b\n1\n",
        CsvOptions::default(),
        "rows.csv:3: found 1 field, the last \"1\", expected 2 as in the first row; column b is the first without a value: \
         complete the row or take it out",
    );
}

#[test]
fn quotes_that_are_text_are_read_where_that_is_said() {
    let text = b"id\tsize (\")\ttitle\n1\t5\t\"Open\n2\t6\t\"Whole\" song\n3\t7\tshut\"\n";
    let given = Given::new(text);
    let file = given.open(CsvOptions { quote: Quote::None, ..CsvOptions::default() }).unwrap();
    assert_eq!(
        schema_of(&file),
        "id NUMBER(1) NOT NULL, size (\") NUMBER(1) NOT NULL, title VARCHAR2(12) NOT NULL"
    );
    assert_eq!(shown(&file).unwrap(), "1|5|\"Open\n2|6|\"Whole\" song\n3|7|shut\"");
    check(b"id\tsize (\")\n1\t5\n", "id NUMBER(1) NOT NULL, size (\") NUMBER(1) NOT NULL", "1|5");

    let swallowed = Given::new(b"id,title\n1,x\n2,\"a\n3,b\n4,c\"\n5,\"d\ne\"\n");
    let several_lines = swallowed.open(CsvOptions::default()).unwrap().several_lines();
    assert_eq!(several_lines, SeveralLines { rows: 2, first: 3, lines: 3 });
}

#[test]
fn a_file_without_a_header_is_asked_about_and_read_as_it_is_said() {
    let rows = b"101,Goroka,-6.08,2019-03-01\n102,Madang,-5.2,2019-03-02\n";
    check_error(
        rows,
        CsvOptions::default(),
        "rows.csv:1: found \"101,Goroka,-6.08,2019-03-01\" where the names of columns are expected, and 3 of 3 are values as \
         those below them; say --no-header or --names A,B,... if it is a row, --header if these are the names",
    );
    let with = |header| Given::new(rows).open(CsvOptions { header, ..CsvOptions::default() });
    let file = with(Header::Missing).unwrap();
    assert_eq!(file.schema().names(), "column_1, column_2, column_3, column_4");
    assert_eq!(file.row_count(), Some(2));
    let given = Given::new(rows);
    let names = ["id", "place", "lat", "day"].map(String::from).to_vec();
    let file = given.open(CsvOptions { header: Header::Given(names), ..CsvOptions::default() }).unwrap();
    assert_eq!(file.schema().names(), "id, place, lat, day");
    assert_eq!(shown(&file).unwrap(), "101|Goroka|-6.08|2019-03-01\n102|Madang|-5.2|2019-03-02");
    let file = with(Header::Names).unwrap();
    assert_eq!(
        (file.schema().names().as_str(), file.row_count()),
        ("101, Goroka, -6.08, 2019-03-01", Some(1))
    );
    check_error(
        rows,
        CsvOptions { header: Header::Given(vec!["id".to_string()]), ..CsvOptions::default() },
        "rows.csv:1: found 4 fields, and --names has 1; give as many",
    );
    // Given types lead to the same question. A column for each year has its year as its name.
    check_error(
        b"5,x\n6,y\n",
        typed(&["int", "text"]),
        "rows.csv:1: found \"5,x\" where the names of columns are expected, and 1 of 1 are values as those below them; say \
         --no-header or --names A,B,... if it is a row, --header if these are the names",
    );
    check(
        b"land,1990,1991\nx,1,2\n",
        "land VARCHAR2(1) NOT NULL, 1990 NUMBER(1) NOT NULL, 1991 NUMBER(1) NOT NULL",
        "x|1|2",
    );
    check(
        b"k,1,2,3\nx,1,2,3\n",
        "k VARCHAR2(1) NOT NULL, 1 NUMBER(1) NOT NULL, 2 NUMBER(1) NOT NULL, 3 NUMBER(1) NOT NULL",
        "x|1|2|3",
    );
}

#[test]
fn utf_16_without_a_mark_is_named_and_a_second_mark_is_passed_over() {
    let wide = |text: &str, big: bool| -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    };
    for (big, form) in [(false, "UTF-16LE"), (true, "UTF-16BE")] {
        let expected = format!("rows.csv is {form}, expected UTF-8; convert it: iconv -f {form} -t UTF-8");
        check_error(&wide("id,name\n1,x\n", big), CsvOptions::default(), &expected);
    }
    check(
        b"\xEF\xBB\xBF\xEF\xBB\xBFid,b\n1,\xEF\xBB\xBF\n",
        "id NUMBER(1) NOT NULL, b VARCHAR2(3) NOT NULL",
        "1|\u{feff}",
    );
    check(b"a\0b\n1\n", "a\0b NUMBER(1) NOT NULL", "1");
}

#[test]
fn a_delimiter_at_the_end_of_rows_is_named() {
    check_error(
        b"a,b\n1,2,\n",
        CsvOptions::default(),
        "rows.csv:2: found 3 fields, expected 2 as in the first row; nothing stands behind the last delimiter: take it out, \
         or have the first row end in one too",
    );
}

#[test]
fn a_form_of_dates_that_no_column_has_is_refused() {
    let with = |text: &str, form: &str| {
        let given = Given::new(text.as_bytes());
        let date_form = Some(DateForm::parse(form).unwrap());
        let opened = given.open(CsvOptions { date_form, ..CsvOptions::default() });
        opened.map(|_| String::new()).unwrap_or_else(|error| given.text(error))
    };
    assert_eq!(
        with("a,d\n1,31/12/2020\n", "MM/DD/YYYY"),
        "rows.csv: no column has dates written MM/DD/YYYY (d has \"31/12/2020\" on line 2); correct --date-format or leave it out"
    );
    assert_eq!(
        with("a\n1\n", "YYYY-MM-DD"),
        "rows.csv: no column has dates written YYYY-MM-DD; correct --date-format or leave it out"
    );
    assert_eq!(
        with("d\n2020-12-31\n", "DD/MM/YYYY"),
        "rows.csv: no column has dates written DD/MM/YYYY (d is written YYYY-MM-DD); correct --date-format or leave it out"
    );
    assert_eq!(with("d\n31/12/2020\n", "DD/MM/YYYY"), "");
    assert_eq!(with("d\n", "DD/MM/YYYY"), "");
}

#[test]
fn null_has_the_texts_the_caller_names() {
    let given = Given::new(b"a,b\n1,NA\n\\N,2\nNA,\n");
    let null_text = vec!["NA".to_owned(), "\\N".to_owned()];
    let file = given.open(CsvOptions { null_text, ..CsvOptions::default() }).unwrap();
    assert_eq!(schema_of(&file), "a NUMBER(1), b NUMBER(1)");
    assert_eq!(file.findings()[0].null_count, 2);
    assert_eq!(shown(&file).unwrap(), "1|NULL\nNULL|2\nNULL|NULL");
}

#[test]
fn an_empty_line_is_a_row_of_one_column_and_none_of_several() {
    check(b"a\n1\n\n3\n", "a NUMBER(1)", "1\nNULL\n3");
    check(b"\n\na\r\nx\r\n\r\n", "a VARCHAR2(1)", "x\nNULL");
    for types in [&[][..], &["NUMBER", "NUMBER"]] {
        let given = Given::new(b"a,b\n1,2\n\n3,4\n\n\n");
        let file = given.open(typed(types)).unwrap();
        assert_eq!(shown(&file).unwrap(), "1|2\n3|4");
        assert_eq!(file.skipped_lines(), 3, "{types:?}");
    }
}

#[test]
fn names_are_made_usable() {
    let given = Given::new(b"id, id ,,ID,id_2,\"a b\"\n1,2,3,4,5,6\n");
    let file = given.open(CsvOptions::default()).unwrap();
    assert_eq!(file.schema().names(), "id, id_2, column_3, ID_3, id_2_2, a b");
    assert_eq!(file.findings()[3].header, "ID");
    assert!(Schema::new(file.schema().columns.clone()).is_ok());
}

#[test]
fn a_header_alone_is_a_table_without_rows() {
    check(b"a,b", "a VARCHAR2(1), b VARCHAR2(1)", "");
}

#[test]
fn given_types_need_no_first_pass_and_may_name_columns() {
    let given = Given::new(b"id,zip,day\n1,007,2024-01-31\n");
    let file = given.open(typed(&["int", "varchar2(5)", "date"])).unwrap();
    assert_eq!(file.row_count_hint(), None);
    assert_eq!(file.findings()[1].basis, ColumnBasis::Given);
    assert_eq!(schema_of(&file), "id NUMBER(38), zip VARCHAR2(5), day DATE");
    assert_eq!(shown(&file).unwrap(), "1|007|2024-01-31");

    let file = given.open(typed(&["ZIP:int"])).unwrap();
    assert_eq!(file.row_count_hint(), Some(1));
    assert_eq!(schema_of(&file), "id NUMBER(1) NOT NULL, zip NUMBER(38), day DATE NOT NULL");
    assert_eq!(shown(&file).unwrap(), "1|7|2024-01-31");
}

#[test]
fn types_that_fit_no_column_are_errors() {
    let file = b"id,zip\n1,2\n";
    check_error(
        file,
        typed(&["price:int"]),
        "rows.csv: a type is given for column \"price\", expected one of id, zip; correct the name",
    );
    check_error(
        file,
        typed(&["int", "int", "date"]),
        "rows.csv: the type DATE is given for column 3, but the header has 2 columns; take it out",
    );
    check_error(
        file,
        typed(&["int", "id:date"]),
        "rows.csv: column id is given two types, NUMBER(38) and DATE; keep one",
    );
}

#[test]
fn values_that_do_not_fit_their_type_are_errors() {
    let error = |types: &[&str], value: &str, expect: &str| {
        let text = format!("a,b\n1,x\n\"{value}\",y\n");
        let types: Vec<&str> = types.iter().copied().chain(["b:text"]).collect();
        check_error(text.replace("1,x\n", ",x\n").as_bytes(), typed(&types), expect);
    };
    error(
        &["number"],
        "1,5",
        "rows.csv:3: column a: found \"1,5\", expected NUMBER; write it as -1234.50, without thousands separators, \
         or give the column the type VARCHAR2",
    );
    error(
        &["number"],
        "123456789012345678901234567890123456789",
        "rows.csv:3: column a: found \"123456789012345678901234567890123456789\", expected NUMBER; a NUMBER keeps \
         38 significant digits and does not round; this number has 39: shorten it or give the column the type VARCHAR2",
    );
    error(
        &["number(5,2)"],
        "1.005",
        "rows.csv:3: column a: found \"1.005\", which NUMBER(5,2) cannot hold without rounding; \
         give the column more digits or the type NUMBER",
    );
    error(
        &["date"],
        "31.01.2024",
        "rows.csv:3: column a: found \"31.01.2024\", expected DATE; write it as 2024-01-31 or 2024-01-31 13:45:00, \
         say how it is written with --date-format, or give the column the type VARCHAR2",
    );
    error(
        &["date"],
        "2023-02-29",
        "rows.csv:3: column a: found \"2023-02-29\", expected DATE; there is no day 2023-02-29 in the calendar of the \
         years 1 to 9999: correct it or give the column the type VARCHAR2",
    );
    error(
        &["date"],
        "2023-02-28 10:00:00.5",
        "rows.csv:3: column a: found \"2023-02-28 10:00:00.5\", expected DATE; a DATE keeps no fractional seconds: \
         cut them off or give the column the type VARCHAR2",
    );
    error(
        &["varchar2(3)"],
        "abcd",
        "rows.csv:3: column a: found 4 bytes starting \"abcd\", expected VARCHAR2(3); give the column a longer type",
    );
}

#[test]
fn text_no_column_can_hold_is_an_error() {
    let long = "x".repeat(32_768);
    check_error(
        format!("a\n{long}\n").as_bytes(),
        CsvOptions::default(),
        &format!(
            "rows.csv:2: column a: found 32768 bytes starting \"{}...\", expected VARCHAR2(32767); \
             no column holds more: shorten the value or leave the column out",
            "x".repeat(40)
        ),
    );
    let fits = "x".repeat(32_767);
    check(format!("a\n{fits}\n").as_bytes(), "a VARCHAR2(32767) NOT NULL", &fits);
}

#[test]
fn invalid_utf8_names_the_byte_and_the_cure() {
    let expect = "rows.csv:3: column name: found \"Ren\u{FFFD}\" with the byte 0xe9 in place 4, expected UTF-8; \
                  convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8";
    check_error(b"id,name\n1,x\n2,Ren\xE9\n", CsvOptions::default(), expect);
    check_error(b"id,name\n1,x\n2,Ren\xE9\n", typed(&["int", "text"]), expect);
    // WINDOWS-1252 has no such letter: iconv would reject the file.
    let expect = "rows.csv:2: column name: found \"Ren\u{FFFD}\" with the byte 0x8d in place 4, expected UTF-8; \
                  convert the file, for example: iconv -f MACINTOSH -t UTF-8";
    check_error(b"id,name\n1,Ren\x8D\n", CsvOptions::default(), expect);
    check_error(
        b"id,Pr\xE9s\n1,x\n",
        CsvOptions::default(),
        "rows.csv:1: column 2 of the header: found \"Pr\u{FFFD}s\" with the byte 0xe9 in place 3, expected UTF-8; \
         convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8",
    );
}

#[test]
fn rows_of_another_length_than_the_header_are_errors() {
    check_error(
        b"a,b,c\n1,2,3\n4,5\n",
        CsvOptions::default(),
        "rows.csv:3: found 2 fields, the last \"5\", expected 3 as in the first row; \
         column c is the first without a value: complete the row or take it out",
    );
    check_error(
        b"a,b\n1,2\n4,5,6,7\n",
        CsvOptions::default(),
        "rows.csv:3: found 4 fields, expected 2 as in the first row; the first surplus one is \"6\": \
         put quotes around a value that contains the delimiter",
    );
    check_error(
        b"a,b\n1\n",
        typed(&["int", "int"]),
        "rows.csv:2: found 1 field, the last \"1\", expected 2 as in the first row; \
         column b is the first without a value: complete the row or take it out",
    );
}

#[test]
fn broken_quotes_are_errors() {
    check_error(
        b"a,b\n1,2\n3,\"4\n5,6\n",
        CsvOptions::default(),
        "rows.csv:3: the quote opened on line 3 is not closed by the end of the file; \
         close it, double it if it belongs to the text, or say --quote none if no quote of the file means anything",
    );
    check_error(
        b"a,b\n1,\"say \"hi\" twice\"\n",
        CsvOptions::default(),
        "rows.csv:2: column b: found \"\\\"say \\\"hi\\\" twice\\\"\\n\", expected a delimiter after the closing quote; \
         double each quote that belongs to the text, or say --quote none if no quote of the file means anything",
    );
    let mut endless = b"a,b\n1,\"".to_vec();
    endless.resize(17 * 1024 * 1024, b'x');
    check_error(
        &endless,
        CsvOptions::default(),
        "rows.csv:2: the row is longer than 16 MiB; most likely a quote in it is not closed: close or double it, or say --quote none",
    );
}

#[test]
fn files_without_a_header_are_errors() {
    for bytes in [&b""[..], b"\n\r\n", b"\xEF\xBB\xBF"] {
        check_error(
            bytes,
            CsvOptions::default(),
            "rows.csv is empty; expected a header row with the column names, then rows",
        );
    }
    check_error(
        b"1,2024-01-31\n2,2024-02-01\n",
        CsvOptions::default(),
        "rows.csv:1: found \"1,2024-01-31\", expected a header row with the column names; say --no-header or \
         --names A,B,... if it is a row, --header if these are the names",
    );
    let header = vec!["x"; 256].join(",");
    check_error(
        header.as_bytes(),
        CsvOptions::default(),
        "rows.csv: found 256 columns, expected at most 255; leave some out",
    );
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let given = Given::new(b"");
    let error = CsvFile::open(given.dir.path().join("absent.csv"), CsvOptions::default()).unwrap_err();
    assert_eq!(
        given.text(error),
        "cannot open absent.csv: No such file or directory (os error 2); give a CSV file that may be read"
    );
    let error = CsvFile::open(given.dir.path(), CsvOptions::default()).unwrap_err();
    assert!(error.to_string().contains(" is no plain file: it is read twice"), "{error}");
}

#[test]
fn rows_come_in_batches_once_and_again_after_a_restart() {
    let mut text = String::from("id,name\n");
    for id in 0..60_000 {
        text.push_str(&format!("{id},\"name of {id}\"\n"));
    }
    let given = Given::new(text.as_bytes());
    let file = given.open(CsvOptions::default()).unwrap();
    let take = || {
        let (mut batch, mut rows) = (RowBatch::new(), Vec::new());
        while file.next_batch(&mut batch).unwrap() {
            assert!(batch.byte_count() < 4 * PIECE_BYTES);
            rows.extend(batch.iter().map(<[u8]>::to_vec));
        }
        rows
    };
    let mut shared: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(shared.len(), 60_000);
    assert!(take().is_empty());
    file.restart().unwrap();
    let mut alone = take();
    shared.sort();
    alone.sort();
    assert!(shared == alone);
    std::fs::write(given.path(), "id\n1\n").unwrap();
    assert_eq!(
        given.text(file.restart().unwrap_err()),
        "rows.csv was changed while it was read: it is read twice, and found 1 columns, expected 2 as before; load it \
         again when nothing writes to it"
    );
}

#[test]
fn a_file_that_changes_between_its_passes_is_refused() {
    let rows = |count: u32| (0..count).map(|id| format!("{id},name of {id}\n")).collect::<String>();
    let text = format!("id,name\n{}", rows(60_000));
    let half = format!("id,name\n{}", rows(30_000));
    // Same length, and possibly the same modification time.
    let other = text.replace("name of 59999", "NAME of 59999");
    let cases = [
        (half.as_bytes(), " bytes (CRC-32 "),
        (&text.as_bytes()[..text.len() / 2 + 3], "was changed while it was read: "),
        (format!("{text}60000,late\n").as_bytes(), " bytes (CRC-32 "),
        (other.as_bytes(), " bytes (CRC-32 "),
    ]
    .map(|(now, expected)| (now.to_vec(), expected));
    for (now, expected) in cases {
        let given = Given::new(text.as_bytes());
        let modified = given.path().metadata().unwrap().modified().unwrap();
        let file = given.open(CsvOptions::default()).unwrap();
        std::fs::write(given.path(), &now).unwrap();
        if now.len() == text.len() {
            std::fs::File::options().write(true).open(given.path()).unwrap().set_modified(modified).unwrap();
        }
        let error = given.text(shown(&file).expect_err("it is another file now"));
        assert!(error.contains(expected), "{error}");
        assert!(error.ends_with("; load it again when nothing writes to it"), "{error}");
    }
}

/// A file of many pieces, which threads parse in parallel.
fn long_file(change: impl Fn(u32) -> Option<&'static str>) -> Given {
    const ROWS: u32 = 400_000;
    // The empty line is no row: from here on row n is on line n + 1.
    let mut text = "a,b,c\n\n1.5,2024-01-31,\n".to_string();
    for number in 3..ROWS {
        match change(number) {
            Some(line) => text.push_str(line),
            None => text.push_str(&format!("{number}.5,2024-01-31,\"a, \"\"{number}\"\"\"")),
        }
        text.push('\n');
    }
    assert!(text.len() > 20 * PIECE_BYTES);
    Given::new(text.as_bytes())
}

#[test]
fn types_of_a_long_file_are_those_that_one_thread_finds() {
    let file = long_file(|_| None).open(CsvOptions::default()).unwrap();
    assert_eq!(schema_of(&file), "a NUMBER(7,1) NOT NULL, b DATE NOT NULL, c VARCHAR2(11)");
    assert_eq!((file.row_count(), file.skipped_lines()), (Some(399_998), 1));
    assert_eq!(file.findings()[2].null_count, 1);
    for (line, reason) in [
        ("1.50,2024-01-31,x", "line 300001: \"1.50\" ends in zeros that a number would lose"),
        ("x,2024-01-31,x", "line 300001: \"x\" is not a number, as the values above it are"),
        (
            "2024-01-31,2024-01-31,x",
            "line 300001: \"2024-01-31\" is not a number, as the values above it are",
        ),
    ] {
        // A second bad value in another piece does not change the reason.
        let given = long_file(|number| [300_000, 350_000].contains(&number).then_some(line));
        let file = given.open(CsvOptions::default()).unwrap();
        assert!(schema_of(&file).ends_with(" NOT NULL, b DATE NOT NULL, c VARCHAR2(11)"));
        match &file.findings()[0].basis {
            ColumnBasis::Text { reason: found, .. } => assert_eq!(found.to_string(), reason),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_first_error_of_a_long_file_is_told_in_both_passes() {
    let given = long_file(|number| [300_000, 300_001, 330_000, 399_000].contains(&number).then_some("1,2"));
    let expected = "rows.csv:300001: found 2 fields, the last \"2\", expected 3 as in the first row; \
                    column c is the first without a value: complete the row or take it out";
    assert_eq!(given.text(given.open(CsvOptions::default()).unwrap_err()), expected);
    let file = given.open(typed(&["NUMBER", "DATE", "VARCHAR2(20)"])).unwrap();
    let errors = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| shown(&file).err())).collect();
        let errors = threads.into_iter().filter_map(|thread| thread.join().unwrap());
        errors.map(|error| given.text(error)).collect::<Vec<_>>()
    });
    assert!(!errors.is_empty());
    errors.iter().for_each(|error| assert_eq!(error, expected));
}
