//! Requests whose client chooses the origin: who may, and where to.

use super::origin::AddressGuard;
use super::peer::Peer;
use super::snapshot::Snapshot;
use crate::http::forwarding::X_FORWARDED_FOR;
use crate::http::target::RequestUrl;
use crate::remap::TargetUrl;
use http::header::{FORWARDED, VIA};
use http::{HeaderMap, Method};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Whether the address that a request comes from is not the client's: the
/// request says that another proxy passed it on, or its connection that a
/// balancer made it for somebody.
#[must_use]
pub(super) fn is_relayed(peer: &Peer, headers: &HeaderMap) -> bool {
    let marks = [VIA, FORWARDED, X_FORWARDED_FOR];
    !peer.is_known || marks.iter().any(|name| headers.contains_key(name))
}

/// Judges the address that a forwarded request would connect to.
pub(super) fn guard(
    snapshot: &Arc<Snapshot>,
    own: &Arc<[SocketAddr]>,
    method: &Method,
    port: u16,
) -> AddressGuard {
    let (snapshot, own) = (Arc::clone(snapshot), Arc::clone(own));
    let method = method.clone();
    Rc::new(move |ip| {
        let target = SocketAddr::new(ip, port);
        let refusal = snapshot
            .ip_allow
            .refuses_address(target, method.as_str(), &own);
        refusal.map_or(Ok(()), |why| Err(why.to_string()))
    })
}

/// The address that a URL's host is, if it is one.
pub(super) fn address_of(host: &str) -> Option<IpAddr> {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// The target that a URL itself is.
pub(super) fn target_of(url: &RequestUrl) -> TargetUrl {
    TargetUrl {
        scheme: url.scheme_kind(),
        host: url.host().into(),
        port: url.port(),
        path_and_query: url.path_and_query().to_owned(),
    }
}
