//! Suggestions for a misspelt name.

/// Largest edit distance between a misspelt name and a suggestion. More would suggest any name.
const DISTANCE_MAX: usize = 4;

/// Returns the known name most like a misspelt one: one that contains it, or one that differs in
/// few letters. `None` where no name is like it.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let names = || names.clone();
    let whole =
        names().filter(|other| name.len() >= 3 && other.contains(&name)).min_by_key(|other| other.len());
    let distance = |other: &str| edit_distance(name.as_bytes(), other.as_bytes());
    let alike = || {
        let best = names().min_by_key(|other| distance(other));
        // Few letters are most of a short name.
        best.filter(|best| distance(best) <= DISTANCE_MAX.min(best.len() / 2))
    };
    whole.or_else(alike)
}

/// Computes Levenshtein's distance, row by row.
fn edit_distance(one: &[u8], two: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in two.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_found_and_another_one_is_not() {
        let names = ["large-sort", "large-sort-serial", "redo-direct", "slob", "ctas"];
        let found = |name| nearest(name, names.into_iter());
        assert_eq!(found("larg-sort"), Some("large-sort"));
        assert_eq!(found("serial"), Some("large-sort-serial"));
        assert_eq!(found("SLOBB"), Some("slob"));
        assert_eq!(found("xyz"), None);
        assert_eq!(found(""), None);
    }
}
