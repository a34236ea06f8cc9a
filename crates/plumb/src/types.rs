//! Column lists of the command line: `--types` and the columns of an index.

use crate::failure::Failure;
use plumb_engine::storage::control::NAME_BYTES_MAX;
use plumb_types::ColumnType;

/// `NUMBER,DATE,VARCHAR2(60)` by place, or `price=NUMBER(38,2),day=DATE` by name.
///
/// # Errors
/// When an entry is no type.
pub fn parse_types(text: &str) -> Result<Vec<(Option<String>, ColumnType)>, Failure> {
    let mut types = Vec::new();
    for entry in split_outside(text) {
        let (name, word) = match entry.split_once('=') {
            Some((name, word)) => (Some(name.trim().to_string()), word.trim()),
            None => (None, entry.trim()),
        };
        let column_type = word
            .parse::<ColumnType>()
            .map_err(|error| Failure::usage(format!("--types {entry}: {error}")))?;
        types.push((name, column_type));
    }
    Ok(types)
}

/// `store_id,prod_id desc`: names, each with whether it is descending. A name
/// with a comma or blanks at its ends stands in double quotes.
///
/// # Errors
/// When an entry is empty.
pub fn parse_columns(text: &str) -> Result<Vec<(String, bool)>, Failure> {
    let mut columns = Vec::new();
    for entry in split_outside(text) {
        let entry = entry.trim();
        let (name, descending) = match entry.rsplit_once(char::is_whitespace) {
            Some((name, word)) if word.eq_ignore_ascii_case("desc") => (name.trim(), true),
            Some((name, word)) if word.eq_ignore_ascii_case("asc") => (name.trim(), false),
            _ => (entry, false),
        };
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        if name.is_empty() {
            return Err(Failure::usage(format!(
                "the index columns {text:?} hold an empty name; write them as in store_id,prod_id desc"
            )));
        }
        columns.push((name.to_string(), descending));
    }
    Ok(columns)
}

/// The name of an index that was given none: `SALES_STORE_ID_PROD_ID_IX`, and with a column that
/// descends `SALES_STORE_ID_DESC_IX`. One that is longer than a name may be is cut, and has a hash
/// of all of it before its end, so that two of one beginning differ:
/// `SALES_A_VERY_..._1F2E3D4C_IX`.
#[must_use]
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
    // FNV-1a: the same of the same columns in every version.
    let hash =
        name.bytes().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let end = format!("_{hash:08X}_IX");
    let room = NAME_BYTES_MAX - end.len();
    let fits =
        name.char_indices().map(|(at, letter)| at + letter.len_utf8()).take_while(|behind| *behind <= room);
    format!("{}{end}", &name[..fits.last().unwrap_or(0)])
}

/// Splits at commas that are neither in parentheses nor in double quotes.
fn split_outside(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quoted) = (0_usize, false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
    }
    parts
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
