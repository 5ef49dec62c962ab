//! Numbers as records.config writes them: what stands at the head of a text,
//! and what follows it.

use super::value::{RecordType, ValueError};
use crate::config::place::shortened;

/// Reads an integer: `0x` hexadecimal or signed decimal, then at most one of
/// K, M, G, T (powers of 1024).
///
/// # Errors
/// [`ValueError::NotANumber`], [`ValueError::TooBig`].
pub(in crate::config) fn int_prefix(text: &str) -> Result<(i64, &str), ValueError> {
    let (negative, unsigned) = split_sign(text);
    let (radix, digits) = match unsigned.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, unsigned),
    };
    let end = digits.find(|c: char| !c.is_digit(radix));
    let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
    if number.is_empty() {
        return Err(ValueError::NotANumber(shortened(text)));
    }
    let (factor, rest) = size_suffix(rest);
    signed(number, radix, negative)
        .and_then(|value| value.checked_mul(factor))
        .map(|value| (value, rest))
        .ok_or_else(|| ValueError::TooBig(shortened(text)))
}

/// Reads a decimal number as C's `atof` does, without its words (`inf`, `nan`).
///
/// # Errors
/// [`ValueError::NotANumber`], [`ValueError::TooBig`].
pub(super) fn float_prefix(text: &str) -> Result<(f64, &str), ValueError> {
    let (number, rest) = text.split_at(float_end(text));
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value, rest)),
        Ok(_) => Err(ValueError::TooBig(shortened(text))),
        Err(_) => Err(ValueError::NotANumber(shortened(text))),
    }
}

/// Parts a text into the number of a type at its head and what follows it; a
/// string is the whole text.
///
/// # Errors
/// [`ValueError::NotANumber`], [`ValueError::TooBig`].
pub(super) fn split_number(kind: RecordType, text: &str) -> Result<(&str, &str), ValueError> {
    let rest = match kind {
        RecordType::Int => int_prefix(text)?.1,
        RecordType::Float => float_prefix(text)?.1,
        RecordType::String => "",
    };
    Ok(text.split_at(text.len() - rest.len()))
}

/// A sign and what follows it.
fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The factor of a size's letter and what follows it.
fn size_suffix(text: &str) -> (i64, &str) {
    let letters = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    letters
        .iter()
        .find_map(|&(letter, power)| Some((1 << power, text.strip_prefix(letter)?)))
        .unwrap_or((1, text))
}

/// Digits with their sign; by way of 128 bits, so that the least number fits.
fn signed(digits: &str, radix: u32, negative: bool) -> Option<i64> {
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Where the decimal number at the head of `text` ends, in bytes.
fn float_end(text: &str) -> usize {
    let mut end = after_digits(text, text.len() - split_sign(text).1.len());
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        end = after_digits(text, end + 1);
    }
    let exponent = text.get(end..).and_then(|t| t.strip_prefix(['e', 'E']));
    let Some(exponent) = exponent else {
        return end;
    };
    let start = text.len() - split_sign(exponent).1.len();
    let stop = after_digits(text, start);
    if stop > start { stop } else { end }
}

/// The end of the digits that begin at byte `start`.
fn after_digits(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    start + rest.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_hexadecimal_or_decimal_with_a_binary_suffix() {
        assert_eq!(int_prefix("0"), Ok((0, "")));
        assert_eq!(int_prefix("-1"), Ok((-1, "")));
        assert_eq!(int_prefix("+7"), Ok((7, "")));
        assert_eq!(int_prefix("0x1F"), Ok((31, "")));
        assert_eq!(int_prefix("64K"), Ok((65_536, "")));
        assert_eq!(int_prefix("2T"), Ok((2 << 40, "")));
        assert_eq!(int_prefix("5KM # x"), Ok((5120, "M # x")));
        assert_eq!(int_prefix("5k"), Ok((5, "k")));
        assert_eq!(int_prefix("1.5"), Ok((1, ".5")));
        assert_eq!(int_prefix("-9223372036854775808"), Ok((i64::MIN, "")));
    }

    #[test]
    fn what_is_no_integer_or_too_big_is_refused() {
        for text in ["", "K", "-", "0x", "abc", "é"] {
            assert_eq!(int_prefix(text), Err(ValueError::NotANumber(text.into())));
        }
        let long = "9".repeat(1 << 20);
        for text in ["9223372036854775808", "8388608T", long.as_str()] {
            assert!(matches!(int_prefix(text), Err(ValueError::TooBig(_))));
        }
    }

    #[test]
    fn floats_have_a_fraction_and_an_exponent() {
        assert_eq!(float_prefix("0.10"), Ok((0.1, "")));
        assert_eq!(float_prefix("-.5e1x"), Ok((-5.0, "x")));
        assert_eq!(float_prefix("2 # two"), Ok((2.0, " # two")));
        assert_eq!(float_prefix("3em"), Ok((3.0, "em")));
        assert_eq!(float_prefix("1."), Ok((1.0, "")));
    }

    #[test]
    fn words_and_infinities_are_no_floats() {
        for text in ["", ".", "-", "e5", "nan", "inf", "é"] {
            assert_eq!(float_prefix(text), Err(ValueError::NotANumber(text.into())));
        }
        assert_eq!(
            float_prefix("1e999"),
            Err(ValueError::TooBig("1e999".into()))
        );
    }
}
