//! Requests through the cache, against scripted origins.

mod busy;
mod coalescing;
mod conditions;
mod freshness;
mod heads;
mod model;
mod races;
mod random;
mod storing;
mod vary;
mod writes;

use crate::config::records::Records;
use crate::proxy::testing::{Origin, Proxy, Script, World};

/// A proxy with default records in front of an origin that answers as `script`
/// says.
async fn proxy<T: Into<Script>>(script: impl Fn(&str, usize) -> T + 'static) -> (Proxy, Origin) {
    with(Records::default(), script).await
}

async fn with<T: Into<Script>>(
    records: Records,
    script: impl Fn(&str, usize) -> T + 'static,
) -> (Proxy, Origin) {
    let origin = Origin::start(script).await;
    (Proxy::new(&World::new(records), origin.port), origin)
}

/// Records in which client directives count.
fn obedient() -> Records {
    Records {
        http_cache_ignore_client_no_cache: 0,
        http_cache_ignore_client_cc_max_age: 0,
        ..Records::default()
    }
}
