//! The valid name that a mistyped one is closest to.

/// Names longer than this are not compared: a config file may hold a line of
/// a megabyte.
const LONGEST: usize = 128;

/// The name among `valid` that differs least from `name`, if it differs in no
/// more than a third of its letters (two in a short one). Case does not count.
#[must_use]
pub fn nearest<'v>(name: &str, valid: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
    if name.len() > LONGEST {
        return None;
    }
    let bound = name.len().div_ceil(2).min(2).max(name.len() / 3);
    valid
        .into_iter()
        .map(|candidate| (edits(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(edits, _)| *edits <= bound)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?` for the nearest of `valid`.
#[must_use]
pub fn did_you_mean<'v>(name: &str, valid: impl IntoIterator<Item = &'v str>) -> Option<String> {
    nearest(name, valid).map(|found| format!("did you mean {found}?"))
}

/// Insertions, deletions and replacements that turn `from` into `to`.
fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, a) in from.iter().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(to) {
            let replaced = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_the_single_letter_steps() {
        assert_eq!(edits(b"", b"map"), 3);
        assert_eq!(edits(b"map", b""), 3);
        assert_eq!(edits(b"mpa", b"map"), 2);
        assert_eq!(edits(b"kitten", b"sitting"), 3);
        assert_eq!(edits(b"MAP", b"map"), 0);
    }

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["map", "redirect", "reverse_map"];
        assert_eq!(nearest("mpa", names), Some("map"));
        assert_eq!(nearest("redirct", names), Some("redirect"));
        assert_eq!(nearest("revers_map", names), Some("reverse_map"));
        assert_eq!(nearest("tunnel", names), None);
        assert_eq!(nearest(&"r".repeat(1 << 20), names), None);
    }
}
