//! What tools ask: where a key is, what is stored, whether it is whole.
//!
//! A walk goes over directories in parts, each of bounded length, so that it
//! keeps nothing between two of them and whoever asks sets the pace.

use super::Cache;
use crate::cache::CacheKey;
use crate::cache::format::object::{HeadKind, ObjectContent};
use crate::cache::invalidation::Subject;
use crate::cache::object::{ObjectKind, Stored};
use crate::cache::tier::Tier;
use crate::cache::volume::{LiveStripe, Located, Surveyed};
use bytes::Bytes;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// A part of a walk ends at so many bytes read, or buckets looked at.
const PART_BYTES: u64 = 8 << 20;
const PART_BUCKETS: u64 = 1 << 14;

/// A copy of an object, and where it is.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Where it is.
    pub tier: Tier,
    /// The path of its span as configured, and where its head lies there, in
    /// bytes from the span's start; `None` in RAM.
    pub place: Option<(PathBuf, u64)>,
    /// The volume that it lies in; `None` in RAM.
    pub volume: Option<u32>,
    /// True when it is used after revalidation only.
    pub suspect: bool,
    /// Object or marker.
    pub kind: ObjectKind,
    /// The head as it was stored.
    pub meta: Bytes,
    /// Bytes of the whole body.
    pub body_len: u64,
    /// Fragments that hold the body, 0 when it lies beside the head.
    pub fragments: u64,
}

/// Where a walk goes on. As text, what [`FromStr`] takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkAt {
    stripe: u128,
    bucket: u64,
}

impl fmt::Display for WalkAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}:{}", self.stripe, self.bucket)
    }
}

impl FromStr for WalkAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once(':').and_then(|(stripe, bucket)| {
            Some(Self {
                stripe: u128::from_str_radix(stripe, 16).ok()?,
                bucket: bucket.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| format!("{text:?} is no place of a walk"))
    }
}

/// A part of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPart {
    /// Where the next part begins; `None` after the last.
    pub next: Option<WalkAt>,
    /// Buckets that have been looked at, this part's included.
    pub done: u64,
    /// Buckets in all.
    pub of: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Fragments that are whole.
    pub whole: u64,
    /// Fragments that were damaged, and are dropped.
    pub damaged: u64,
    /// Fragments that the device did not give.
    pub unread: u64,
}

/// A stored object, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key's text.
    pub key: Bytes,
    /// Its tier.
    pub tier: Tier,
    /// Its volume.
    pub volume: u32,
    /// Bytes of the body.
    pub body_len: u64,
    /// Object or marker.
    pub kind: ObjectKind,
    /// True when it is used after revalidation only.
    pub suspect: bool,
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPart {
    /// Where the next part begins; `None` after the last.
    pub next: Option<WalkAt>,
    /// Bytes that were read.
    pub bytes: u64,
    /// The objects of this part.
    pub objects: Vec<Listed>,
}

/// Which entries a walk reads.
#[derive(Clone, Copy, Debug)]
struct Walk<'a> {
    /// On this span only.
    span: Option<&'a Path>,
    /// Of this volume only.
    volume: Option<u32>,
    heads_only: bool,
}

impl Cache {
    /// Every copy under a key that is not dead: in RAM, on the fast tier, on
    /// the capacity tier. Counts in no metric; on a span it is one that was
    /// read, and kept when the cursor comes.
    pub async fn locate(&self, key: &CacheKey) -> Vec<Copy> {
        let ram = self
            .ram
            .peek(key.hash())
            .filter(|stored| stored.key == *key);
        let mut copies: Vec<Copy> = ram.iter().map(|stored| in_ram(stored)).collect();
        for stripe in self.volume.holders(key).iter() {
            let accept = |located: Located| {
                let place = located.place;
                Some((Stored::from_fragment(located, key, stripe)?, place))
            };
            let Ok((stored, place)) = stripe.find(key.hash(), accept).await else {
                continue;
            };
            if !self.rules.kills_held(&stored.subject(), place.suspect) {
                copies.push(Copy {
                    tier: stripe.tier(),
                    place: Some((stripe.path().to_owned(), stripe.on_span(&place))),
                    volume: Some(stripe.volume),
                    suspect: place.suspect,
                    ..in_ram(&stored)
                });
            }
        }
        copies
    }

    /// Verifies the fragments of a span, or of all, from `from` on, for a
    /// while; what is damaged is dropped.
    pub async fn scan(&self, span: Option<&Path>, from: Option<WalkAt>) -> ScanPart {
        let walk = Walk {
            span,
            volume: None,
            heads_only: false,
        };
        let mut part = ScanPart::default();
        let stripes = self.walked_stripes(&walk);
        let mut count = |_: &Arc<LiveStripe>, found: Surveyed| match found {
            Surveyed::Whole { .. } => part.whole += 1,
            Surveyed::Damaged => part.damaged += 1,
            Surveyed::Unread => part.unread += 1,
            Surveyed::Gone => {}
        };
        let (next, bytes) = walk_on(&stripes, walk, from, &mut count).await;
        part.of = stripes.iter().map(|stripe| stripe.bucket_count()).sum();
        part.done = next.map_or(part.of, |next| before(&stripes, next));
        ScanPart {
            next,
            bytes,
            ..part
        }
    }

    /// The objects on the spans whose key's text begins with `prefix`, from
    /// `from` on, for a while; of one volume, or of all.
    pub async fn list(&self, prefix: &[u8], volume: Option<u32>, from: Option<WalkAt>) -> ListPart {
        let walk = Walk {
            span: None,
            volume,
            heads_only: true,
        };
        let mut objects = Vec::new();
        let stripes = self.walked_stripes(&walk);
        let mut take = |stripe: &Arc<LiveStripe>, found: Surveyed| {
            let listed = self.listed(stripe, &found);
            objects.extend(listed.filter(|object| object.key.starts_with(prefix)));
        };
        let (next, bytes) = walk_on(&stripes, walk, from, &mut take).await;
        ListPart {
            next,
            bytes,
            objects,
        }
    }

    /// The stripes that a walk goes over, in the order of their UUIDs, so that
    /// one that comes or goes meanwhile does not turn it round.
    fn walked_stripes(&self, walk: &Walk<'_>) -> Vec<Arc<LiveStripe>> {
        let mut stripes = self.volume.stripes();
        stripes.retain(|stripe| walk.span.is_none_or(|span| span == stripe.path()));
        stripes.retain(|stripe| walk.volume.is_none_or(|volume| volume == stripe.volume));
        stripes.sort_by_key(|stripe| stripe.uuid);
        stripes
    }

    fn listed(&self, stripe: &LiveStripe, found: &Surveyed) -> Option<Listed> {
        let Surveyed::Whole {
            key,
            fragment,
            suspect,
        } = found
        else {
            return None;
        };
        let content = ObjectContent::decode(&fragment.meta).ok()?;
        let subject = Subject {
            key: *key,
            epoch: content.epoch,
            volume: Some(stripe.volume),
        };
        let alive = !self.rules.kills_held(&subject, *suspect);
        alive.then(|| Listed {
            key: content.key.clone(),
            tier: stripe.tier(),
            volume: stripe.volume,
            body_len: content.body_length,
            kind: match content.kind {
                HeadKind::Object => ObjectKind::Object,
                HeadKind::Marker => ObjectKind::Marker,
            },
            suspect: *suspect,
        })
    }
}

fn in_ram(stored: &Stored) -> Copy {
    let body = stored.fragments.as_ref();
    Copy {
        tier: Tier::Ram,
        place: None,
        volume: None,
        suspect: false,
        kind: stored.kind,
        meta: stored.meta.clone(),
        body_len: stored.body_len,
        fragments: body.map_or(0, |body| body.count(stored.body_len)),
    }
}

/// Goes on from `from`; where the next part begins, and the bytes read.
async fn walk_on(
    stripes: &[Arc<LiveStripe>],
    walk: Walk<'_>,
    from: Option<WalkAt>,
    visit: &mut impl FnMut(&Arc<LiveStripe>, Surveyed),
) -> (Option<WalkAt>, u64) {
    let (mut bytes, mut buckets) = (0, 0);
    let first = from.map_or(0, |from| from.stripe);
    for stripe in stripes.iter().filter(|stripe| stripe.uuid >= first) {
        let here = from.filter(|from| from.stripe == stripe.uuid);
        for bucket in here.map_or(0, |from| from.bucket)..stripe.bucket_count() {
            if bytes >= PART_BYTES || buckets >= PART_BUCKETS {
                let stripe = stripe.uuid;
                return (Some(WalkAt { stripe, bucket }), bytes);
            }
            buckets += 1;
            stripe.bucket_known(bucket).await;
            for walked in stripe.walk(bucket) {
                if walked.place.entry.is_head() || !walk.heads_only {
                    bytes += u64::from(walked.place.length);
                    visit(stripe, stripe.survey(&walked).await);
                }
            }
        }
    }
    (None, bytes)
}

/// Buckets before the place where a walk goes on.
fn before(stripes: &[Arc<LiveStripe>], at: WalkAt) -> u64 {
    let whole = stripes.iter().filter(|stripe| stripe.uuid < at.stripe);
    whole.map(|stripe| stripe.bucket_count()).sum::<u64>() + at.bucket
}
