//! Whether the fill that a request waited for is its own too, and where it goes
//! if not.

use super::ask::Asking;
use super::job::{Conditions, FillHead};
use super::lookup::is_acceptable;
use super::{Cached, Step};
use crate::cache::CacheKey;
use crate::http::reuse;
use crate::proxy::client::ClientWrite;
use crate::proxy::marker;
use std::rc::Rc;

impl Cached<'_> {
    /// The response under way is not for this request. Another alternate of it
    /// is fetched once for all who want that, anything else by each for himself.
    pub(super) async fn turned_away<W: ClientWrite>(
        &mut self,
        head: &FillHead,
        mut asking: Asking,
        reply: &mut W,
    ) -> Step {
        if reply.is_head() && asking.held.is_none() {
            return Step::Pass(asking.plan.passing());
        }
        match self.other_alternate(head, &mut asking) {
            Some(key) => self.take_part(&key, asking, reply).await,
            None => self.alone(asking, Conditions::Strip, reply).await,
        }
    }

    /// The key of the alternate that this request selects, where the fill is
    /// another's; once, for alternates may be told apart in turns by this and by
    /// that.
    fn other_alternate(&mut self, head: &FillHead, asking: &mut Asking) -> Option<CacheKey> {
        if self.selects(head) || std::mem::replace(&mut self.diverted, true) {
            return None;
        }
        // The same marker, so that it leads to both when both are stored.
        let job = Rc::get_mut(&mut asking.job)?;
        job.marker.clone_from(&head.marker);
        let rule = self.routed.policy.normalize_accept_encoding;
        let marker = head.marker.as_ref()?;
        Some(marker.alternate(&job.key, &self.routed.head.headers, rule))
    }

    /// Whether this request selects the alternate under way (Vary).
    fn selects(&self, head: &FillHead) -> bool {
        let rule = self.routed.policy.normalize_accept_encoding;
        let selected = marker::selected(&head.fields, &self.routed.head.headers, rule);
        selected == head.selected
    }

    /// Whether the response under way would be a reuse for this request too
    /// (RFC 9111 4).
    pub(super) fn may_share(&self, head: &FillHead) -> bool {
        let policy = &self.routed.policy;
        let now = self.ctx.shared.clock.wall();
        self.selects(head)
            && is_acceptable(self.routed, &head.head)
            && reuse::judge(&head.head.facts(), &self.asked, policy, now).serves()
    }
}
