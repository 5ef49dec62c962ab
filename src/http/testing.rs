//! What the tests of this floor's modules build messages with.

use ::http::{HeaderMap, HeaderName, HeaderValue};

/// Field lines, name and value.
pub(super) type Lines<'a> = &'a [(&'a str, &'a str)];

/// The fields of a message, in order.
pub(super) fn headers(lines: Lines<'_>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}
