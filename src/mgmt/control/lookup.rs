//! `cache lookup`: where a URL's copies are, and how fresh.

use super::params::Params;
use super::walk::tier_word;
use super::{Control, cache};
use crate::base::clock::WallTime;
use crate::cache::{Copy, ObjectKind};
use crate::http::stored::StoredHead;
use crate::mgmt::rpc::{Fault, FaultKind};
use crate::proxy::marker::Marker;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

/// Every copy of what a request for the URL, with these fields, selects.
///
/// # Errors
///
/// `Params` for what is no URL or no field line, `NotFound` for a URL that no
/// rule takes.
pub(super) async fn lookup(control: &Control, params: Params<'_>) -> Result<Value, Fault> {
    let fields = fields(&params.texts("fields")?)?;
    let key = cache::key(control, params.text("url")?)?;
    let now = control.clock.wall();
    let copies = control.cache.locate(&key).await;
    let mut rows: Vec<Value> = copies.iter().map(|copy| row(copy, now)).collect();
    let rule = control.snapshot.load().policy.normalize_accept_encoding;
    let mut markers = copies.iter().filter(|copy| copy.kind == ObjectKind::Marker);
    if let Some(marker) = markers.find_map(|copy| Marker::parse(&copy.meta)) {
        let alternate = marker.alternate(&key, &fields, rule);
        let copies = control.cache.locate(&alternate).await;
        rows.extend(copies.iter().map(|copy| row(copy, now)));
    }
    Ok(json!({
        "key": String::from_utf8_lossy(key.text()),
        "hash": format!("{:032x}", key.hash()),
        "copies": rows,
    }))
}

fn fields(lines: &[&str]) -> Result<HeaderMap, Fault> {
    let parsed = lines.iter().map(|line| {
        let field = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        field.ok_or_else(|| {
            let what = format!("{line:?} is no field line, such as Accept-Encoding: gzip");
            Fault::new(FaultKind::Params, what)
        })
    });
    parsed.collect()
}

fn row(copy: &Copy, now: WallTime) -> Value {
    let (span, offset) = copy.place.clone().unzip();
    let mut row = json!({
        "tier": tier_word(copy.tier),
        "span": span,
        "offset": offset,
        "volume": copy.volume,
        "bytes": copy.body_len,
        "fragments": copy.fragments,
        "suspect": copy.suspect,
        "marker": copy.kind == ObjectKind::Marker,
    });
    let head = StoredHead::parse(copy.meta.clone()).ok();
    let head = head.filter(|_| copy.kind == ObjectKind::Object);
    if let Some(head) = head {
        let facts = head.facts();
        row["status"] = head.status().as_u16().into();
        row["state"] = match (copy.suspect || facts.no_cache, facts.is_fresh(now)) {
            (true, _) => "unconfirmed".into(),
            (false, true) => "fresh".into(),
            (false, false) => "stale".into(),
        };
        row["age"] = facts.age(now).into();
        row["lifetime"] = facts.lifetime.secs.into();
        row["fields"] = String::from_utf8_lossy(&head.field_lines()).into();
    }
    row
}
