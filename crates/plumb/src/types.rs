//! Column lists of the command line: `--types` and the columns of an index.

use crate::failure::Failure;
use plumb_engine::storage::control::NAME_BYTES_MAX;
use plumb_types::ColumnType;

/// Parses `NUMBER,DATE,VARCHAR2(60)` by place, or `price=NUMBER(38,2),day=DATE` by name.
pub fn parse_types(text: &str) -> Result<Vec<(Option<String>, ColumnType)>, Failure> {
    let mut types = Vec::new();
    for Entry { name, rest } in entries("--types", text, Holds::Types)? {
        // No type has the sign, and an unquoted name may.
        let (name, word) = match (name, rest.rsplit_once('=')) {
            (None, None) => (None, rest.trim()),
            (None, Some((name, word))) => (Some(name.trim().to_string()), word.trim()),
            (Some(name), Some((between, word))) if between.trim().is_empty() => (Some(name), word.trim()),
            (Some(name), _) => {
                return Err(Failure::usage(format!(
                    "--types: expected =TYPE behind the name {name:?}, found {rest:?}"
                )));
            }
        };
        let column_type = word.parse::<ColumnType>().map_err(|error| {
            let of = name.as_ref().map_or(String::new(), |name| format!("{name}="));
            Failure::usage(format!("--types {of}{word}: {error}"))
        })?;
        types.push((name, column_type));
    }
    Ok(types)
}

/// Parses `store_id,prod_id desc`: names, with true for descending ones. Fails if an entry is
/// empty, or a quoted name is followed by something other than a direction.
pub fn parse_columns(text: &str) -> Result<Vec<(String, bool)>, Failure> {
    let mut columns = Vec::new();
    for Entry { name, rest } in entries("columns", text, Holds::Names)? {
        let rest = rest.trim();
        let direction = |word: &str| {
            let words = [("desc", true), ("asc", false)];
            words
                .into_iter()
                .find_map(|(known, descends)| word.eq_ignore_ascii_case(known).then_some(descends))
        };
        let column = match name {
            Some(name) if rest.is_empty() => (name, false),
            Some(name) => match direction(rest) {
                Some(descends) => (name, descends),
                None => {
                    return Err(Failure::usage(format!(
                        "the columns {text:?}: expected asc, desc or a comma behind the name {name:?}, found {rest:?}"
                    )));
                }
            },
            None => match rest.rsplit_once(char::is_whitespace).map(|(name, word)| (name, direction(word))) {
                Some((name, Some(descends))) => (name.trim().to_string(), descends),
                _ => (rest.to_string(), false),
            },
        };
        if column.0.is_empty() {
            return Err(Failure::usage(format!(
                "the columns {text:?} hold an empty name; write them as in store_id,prod_id desc"
            )));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Parses `id,"price, EUR"`: names, possibly quoted. Fails if one is empty, or
/// text follows a quoted one.
pub fn parse_names(text: &str) -> Result<Vec<String>, Failure> {
    let name = |Entry { name, rest }: Entry| match (name, rest.trim()) {
        (Some(name), "") if !name.is_empty() => Ok(name),
        (None, rest) if !rest.is_empty() => Ok(rest.to_string()),
        (_, rest) => Err(Failure::usage(format!(
            "--names {text}: found {rest:?}, expected names with commas between them, as in id,\"price, EUR\""
        ))),
    };
    entries("--names", text, Holds::Names)?.into_iter().map(name).collect()
}

/// Returns the default name of an index: `SALES_STORE_ID_PROD_ID_IX`, and for a descending column
/// `SALES_STORE_ID_DESC_IX`. A name that is too long is cut and gets a hash of the whole, so that
/// names of one beginning differ: `SALES_A_VERY_..._1F2E3D4C_IX`.
pub fn index_name(table: &str, columns: &[(String, bool)]) -> String {
    let words =
        std::iter::once(table).chain(columns.iter().flat_map(|(name, descending)| {
            std::iter::once(name.as_str()).chain(descending.then_some("DESC"))
        }));
    let plain = |word: &str| {
        let letters = word.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' });
        letters.collect::<String>().to_uppercase()
    };
    let name = words.map(plain).chain(["IX".to_string()]).collect::<Vec<_>>().join("_");
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    // FNV-1a, because it gives the same hash in every version.
    let hash =
        name.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let end = format!("_{hash:08X}_IX");
    let room = NAME_BYTES_MAX - end.len();
    let fits =
        name.char_indices().map(|(at, letter)| at + letter.len_utf8()).take_while(|behind| *behind <= room);
    format!("{}{end}", &name[..fits.last().unwrap_or(0)])
}

/// An entry of a list of columns: a quoted name, and the text after it.
struct Entry {
    name: Option<String>,
    rest: String,
}

/// The content of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Types have commas in parentheses.
    Types,
    /// A parenthesis is a letter of a name.
    Names,
}

/// Splits a list at its commas. Quotes count at the start of an entry, doubled within the
/// name; elsewhere they are letters.
fn entries(what: &str, text: &str, holds: Holds) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    let mut left = text.trim_start();
    loop {
        let (name, behind) = match left.strip_prefix('"') {
            Some(quoted) => {
                let open = || {
                    Failure::usage(format!(
                        "{what} {text}: a quote is not closed; a quote within a name is doubled"
                    ))
                };
                let (name, behind) = quoted_name(quoted).ok_or_else(open)?;
                (Some(name), behind)
            }
            None => (None, left),
        };
        let end = end_of_entry(behind, holds);
        entries.push(Entry { name, rest: behind[..end].to_string() });
        match behind.get(end + 1..) {
            Some(next) => left = next.trim_start(),
            None => return Ok(entries),
        }
    }
}

/// Parses a name up to its closing quote; returns it with the text after.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut left = text;
    loop {
        let (before, behind) = left.split_once('"')?;
        name.push_str(before);
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                left = more;
            }
            None => return Some((name, behind)),
        }
    }
}

/// Returns the place of the comma that ends an entry, or the end of the text.
fn end_of_entry(text: &str, holds: Holds) -> usize {
    let mut depth = 0_usize;
    for (place, letter) in text.char_indices() {
        match letter {
            // A parenthesis in a name does not close one of a type.
            '=' => depth = 0,
            '(' if holds == Holds::Types => depth += 1,
            ')' if holds == Holds::Types => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return place,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_may_hold_commas_and_go_by_place_or_name() {
        let types = parse_types("NUMBER(38,2), day=DATE").expect("valid");
        let shown: Vec<String> = types.iter().map(|(name, kind)| format!("{name:?} {kind}")).collect();
        assert_eq!(shown, ["None NUMBER(38,2)", "Some(\"day\") DATE"]);
        assert!(parse_types("NUMBER,BLOB").is_err());
        let odd = r#""price, EUR"=NUMBER(38,2), weight (kg=NUMBER(5,1),a=b=DATE,"5"" pipe" = VARCHAR2(9),"x=y"=DATE"#;
        let types = parse_types(odd).expect("valid");
        let shown: Vec<String> = types.iter().map(|(name, kind)| format!("{name:?} {kind}")).collect();
        assert_eq!(
            shown,
            [
                "Some(\"price, EUR\") NUMBER(38,2)",
                "Some(\"weight (kg\") NUMBER(5,1)",
                "Some(\"a=b\") DATE",
                "Some(\"5\\\" pipe\") VARCHAR2(9)",
                "Some(\"x=y\") DATE",
            ]
        );
        let refused = |text| parse_types(text).expect_err(text).message;
        assert_eq!(
            refused("\"a NUMBER"),
            "--types \"a NUMBER: a quote is not closed; a quote within a name is doubled"
        );
        assert_eq!(refused("\"a\"NUMBER"), "--types: expected =TYPE behind the name \"a\", found \"NUMBER\"");
    }

    #[test]
    fn names_are_quoted_where_they_have_commas_quotes_or_directions() {
        let columns = parse_columns("\"Sort desc\",5\" pipe,weight (kg,\"two\nlines\" DESC").expect("valid");
        let expected =
            [("Sort desc", false), ("5\" pipe", false), ("weight (kg", false), ("two\nlines", true)];
        assert_eq!(columns, expected.map(|(name, descending)| (name.to_string(), descending)));
        assert!(parse_columns("\"a\" up").is_err());
        assert_eq!(parse_names("id, \"price, EUR\",x y").expect("valid"), ["id", "price, EUR", "x y"]);
        assert!(parse_names("a,,b").is_err());
    }

    #[test]
    fn index_columns_take_a_direction_each() {
        let columns = parse_columns("store_id, prod_id DESC,\"a,b\" asc,unit price").expect("valid");
        let expected = [("store_id", false), ("prod_id", true), ("a,b", false), ("unit price", false)];
        assert_eq!(columns, expected.map(|(name, descending)| (name.to_string(), descending)));
        assert!(parse_columns("a,,b").is_err());
        assert_eq!(index_name("t", &columns), "T_STORE_ID_PROD_ID_DESC_A_B_UNIT_PRICE_IX");
        let long = |last: &str| index_name("t", &[("ü".repeat(100), false), (last.to_string(), false)]);
        assert!(long("a").len() <= NAME_BYTES_MAX && long("a").ends_with("_IX"), "{}", long("a"));
        assert_ne!(long("a"), long("b"));
    }
}
