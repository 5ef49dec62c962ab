//! Method names as access rules write them.

/// Methods that rules may write in any case.
pub const KNOWN: [&str; 11] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PURGE", "PUSH", "PUT", "TRACE",
];

/// The method of this name: a known one in upper case, any other token as
/// written (methods are case-sensitive, RFC 9110 9.1). None for what is no
/// token (RFC 9110 5.6.2).
#[must_use]
pub fn parse(name: &str) -> Option<String> {
    let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name));
    if let Some(known) = known {
        return Some((*known).to_owned());
    }
    let is_token = !name.is_empty() && name.bytes().all(is_token_byte);
    is_token.then(|| name.to_owned())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_rise_to_upper_case_and_others_stay() {
        assert_eq!(parse("purge").as_deref(), Some("PURGE"));
        assert_eq!(parse("Bake").as_deref(), Some("Bake"));
        assert_eq!(parse("GE T"), None);
        assert_eq!(parse(""), None);
    }
}
