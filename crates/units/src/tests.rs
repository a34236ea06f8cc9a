//! Sizes, times, counts and paths: parsed and printed.

use crate::*;

#[test]
fn sizes_parse_as_an_administrator_writes_them() {
    for (text, bytes) in [
        ("64K", 65_536),
        ("5T", 5 << 40),
        ("5120G", 5 << 40),
        ("1.5G", 3 << 29),
        ("1P", 1 << 50),
        ("512", 512),
        ("8kb", 8192),
        ("1 MiB", 1 << 20),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    for text in ["", "K", "-1", "1.5", "1X", "9999999P", "1..5K", "0x10"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
}

#[test]
fn counts_use_decimal_multiples() {
    assert_eq!(parse_count("10M"), Ok(10_000_000));
    assert_eq!(parse_count("2.5K"), Ok(2_500));
    assert_eq!(parse_count("1_000"), Ok(1_000));
}

#[test]
fn values_print_with_three_figures() {
    for (shown, expected) in [
        (Bytes(512).to_string(), "512 B"),
        (Bytes(1 << 20).to_string(), "1.00 MB"),
        (Bytes(450 << 20).to_string(), "450 MB"),
        (Bytes(1_023 << 20).to_string(), "1.00 GB"),
        (Rate(1.24 * Bytes::G as f64).to_string(), "1.24 GB/s"),
        (Nanos(160_000).to_string(), "160 us"),
        (Nanos(1_240_000_000).to_string(), "1.24 s"),
        (RowCount(10_000_000).to_string(), "10,000,000"),
        (Bytes(65_536).as_setting(), "64K"),
        (Bytes(1_000).as_setting(), "1000"),
    ] {
        assert_eq!(shown, expected);
    }
}

#[test]
fn row_ids_keep_their_parts_and_their_order() {
    let at =
        |file, block, slot| RowId::new(BlockAddress { file: FileId(file), block: BlockNumber(block) }, slot);
    let row = at(1023, u32::MAX, 65_535);
    assert_eq!(row.address().file, FileId(1023));
    assert_eq!(row.address().block, BlockNumber(u32::MAX));
    assert_eq!(row.slot(), 65_535);
    assert!(at(1, 2, 9) < at(1, 3, 0));
    assert!(at(1, u32::MAX, 0) < at(2, 0, 0));
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    assert_eq!(visible("Zürich 東京"), "Zürich 東京");
    assert_eq!(visible("a\x1b[31mb\n\u{9b}\x7f"), "a\\u001b[31mb\\u000a\\u009b\\u007f");
    assert_eq!(visible_lines("a\tb\r\n\x07"), "a\tb\\u000d\n\\u0007");
    assert_eq!(visible(&visible("\x1b")), visible("\x1b"), "twice is once");
    for turned in (0x202A..=0x202E).chain(0x2066..=0x2069).chain([0x200E, 0x200F, 0x61C]) {
        let text = format!("a{}b", char::from_u32(turned).expect("a letter"));
        let shown = format!("a\\u{turned:04x}b");
        assert_eq!(visible(&text), shown);
        assert_eq!(visible_lines(&text), shown);
    }
    assert_eq!(visible("\u{200D}\u{202F}\u{2065}"), "\u{200D}\u{202F}\u{2065}", "these turn nothing");
}

#[test]
fn a_path_of_any_bytes_comes_back_from_its_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    assert_eq!(path_text(Path::new("/u01/Zürich")), "/u01/Zürich");
    for bytes in [&b"/a\xff\x1b\xc3/b"[..], b"\\x41\\", b"a\\xff", b"\xe6\x9d\xb1", b""] {
        let path = Path::new(OsStr::from_bytes(bytes));
        assert_eq!(path_of_text(&path_text(path)), path, "{bytes:?}");
    }
    assert_eq!(path_text(Path::new(OsStr::from_bytes(b"x\xff"))), "x\\xff");
    assert_eq!(path_of_text("\\y\\xgg\\x4"), Path::new("\\y\\xgg\\x4"));
}

#[test]
fn what_a_message_quotes_is_cut_at_a_letter() {
    assert_eq!(cut("Zürich", 6), "Zürich");
    assert_eq!(cut("Zürich", 2), "Zü.. (7 bytes)");
    assert!(cut(&"\0".repeat(1 << 20), 16).len() < 100);
}

#[test]
fn a_range_says_no_more_than_it_bounds() {
    assert_eq!(range_text(3, 3), "3");
    assert_eq!(range_text(-1, 64), "-1 to 64");
    assert_eq!(range_text(1, i128::from(u64::MAX)), "at least 1");
}
