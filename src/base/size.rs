//! Byte sizes as operators write them: `32K`, `256M`, `1T`.

/// Bytes in a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;

/// Shows a number of bytes in the largest binary unit that divides it, as
/// operators write it in a configuration file: `256M`, `1500`.
#[must_use]
pub fn show(bytes: u64) -> String {
    let units = [(1 << 40, 'T'), (GIB, 'G'), (MIB, 'M'), (KIB, 'K')];
    for (unit, letter) in units {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{letter}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// `value` rounded up to a multiple of `step`; saturates.
#[must_use]
pub const fn round_up(value: u64, step: u64) -> u64 {
    match value.checked_next_multiple_of(step) {
        Some(rounded) => rounded,
        None => u64::MAX,
    }
}

/// `value` rounded down to a multiple of `step`; `value` itself if `step` is 0.
#[must_use]
pub const fn round_down(value: u64, step: u64) -> u64 {
    if step == 0 {
        value
    } else {
        value - value % step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_show_in_the_largest_unit_that_divides_them() {
        assert_eq!(show(256 * MIB), "256M");
        assert_eq!(show(1536), "1536");
        assert_eq!(show(2 << 40), "2T");
        assert_eq!(show(0), "0");
    }

    #[test]
    fn rounding_keeps_multiples_and_never_overflows() {
        assert_eq!(round_up(4097, 4096), 8192);
        assert_eq!(round_up(4096, 4096), 4096);
        assert_eq!(round_up(u64::MAX, 4096), u64::MAX);
        assert_eq!(round_down(4097, 4096), 4096);
    }
}
