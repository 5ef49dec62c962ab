//! Spans that are taken back into use.

use super::machine::Machine;
use super::*;
use crate::cache::invalidation::Presence;
use crate::cache::tier::SpanTier;

#[tokio::test]
async fn a_span_that_was_killed_while_it_returned_is_in_doubt_at_the_next_start() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    let span = first.cache.status().spans[0].uuid.unwrap();
    first.cache.shutdown().await;
    // As `online` leaves it, before the stripes say so themselves.
    let returning = first.cache.state.set_presence(span, Presence::Returning);
    returning.unwrap();
    first.kill();
    let second = machine.start().await;
    assert!(second.cache.read(&key(1)).await.unwrap().suspect);
    second.cache.sync().await;
    second.cache.note_returned();
    let presence = second.cache.state.presence(span).unwrap();
    assert_eq!(presence, Presence::Here);
    second.kill();
    let third = machine.start().await;
    assert!(third.cache.read(&key(1)).await.unwrap().suspect);
}
