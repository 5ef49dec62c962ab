//! Times as cache.config writes them: `90`, `90s`, `1d2h30m15s`.

/// Units, longest first, and the seconds in each.
const UNITS: [(char, u64); 5] = [
    ('w', 604_800),
    ('d', 86_400),
    ('h', 3600),
    ('m', 60),
    ('s', 1),
];

/// The seconds that a text tells; `None` for what is no such text, or more
/// than 64 bits hold.
pub(super) fn seconds(text: &str) -> Option<u64> {
    if let Ok(plain) = text.parse() {
        return text
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(plain);
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, tail) = rest.split_at(end);
        let letter = tail.chars().next()?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == letter)?;
        let part = digits.parse::<u64>().ok()?.checked_mul(*unit)?;
        total = total.checked_add(part)?;
        rest = tail.get(1..)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_seconds_or_parts_with_units() {
        let rows = [
            ("0", Some(0)),
            ("90", Some(90)),
            ("90s", Some(90)),
            ("1d2h30m15s", Some(95_415)),
            ("2w", Some(1_209_600)),
            ("1h1h", Some(7200)),
            ("", None),
            ("d", None),
            ("1", Some(1)),
            ("+1", None),
            ("-1", None),
            ("1d2", None),
            ("1x", None),
            ("1é", None),
            ("1 d", None),
            ("99999999999999999999", None),
            ("99999999999999999w", None),
        ];
        for (text, expected) in rows {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
