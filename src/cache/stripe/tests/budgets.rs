//! What is written for what is stored: design budgets, counted.

use super::*;
use crate::cache::format::to_u64;

/// Pages of a directory that is much larger than what a ring block covers.
const PAGES: u32 = 100;
/// Bytes of a head and of its body, as they are stored.
const HEAD: usize = 350;
const BODY: usize = 15_000;
/// Bytes of the stripe.
const STRIPE: u64 = 900 * MIB;

/// Bytes that went to the device, by what for.
#[derive(Debug, Default)]
struct Written {
    log: u64,
    ring: u64,
    syncs: u64,
}

/// Does what the stripe wants done, on a device that takes all and keeps none.
fn work(stripe: &mut Stripe, written: &mut Written) {
    let now = MonoTime::default();
    while let Some(plan) = stripe.poll(now) {
        let bytes = stripe.complete(now, plan.id, Outcome::Done).written;
        match plan.cause {
            Cause::Batch => written.log += bytes,
            Cause::Ring => written.ring += bytes,
            Cause::Pages | Cause::PageTable | Cause::Header => written.syncs += bytes,
            Cause::Flush => {}
        }
    }
}

#[test]
fn the_log_takes_six_percent_more_than_is_stored_and_syncs_and_ring_a_fortieth_of_it() {
    let options = StripeOptions {
        sync_interval: Duration::ZERO,
        ..StripeOptions::default()
    };
    let geometry = Geometry::from_parts(STRIPE, PAGES, 4096).unwrap();
    let mut stripe = Stripe::format(identity(1), geometry, options);
    let mut written = Written::default();
    let (head, body) = ([7; HEAD], [Bytes::from(vec![7; BODY])]);
    let objects = 2 * geometry.log_bytes() / 16_384;
    for n in 0..objects {
        let new = NewFragment {
            key_hash: key(n.into()).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
            kind: FragmentKind::Head,
            meta: &head,
            body: &body,
            keep: &[],
            copy_of: None,
            pinned: false,
        };
        stripe.append(MonoTime::default(), &new).unwrap();
        work(&mut stripe, &mut written);
    }
    let syncs = stripe.header.sync_sequence;
    assert!(syncs > 3, "{syncs} syncs");
    let stored = objects * to_u64(HEAD + BODY);
    let (log, beside) = (written.log, written.ring + written.syncs);
    // The figures of docs/PERFORMANCE.md: a test that fails says them.
    let told = format!(
        "{objects} objects: log {:.4} of what is stored; ring {:.4} and {syncs} syncs {:.4} of the log",
        log as f64 / stored as f64,
        written.ring as f64 / log as f64,
        written.syncs as f64 / log as f64,
    );
    assert!(log * 100 <= stored * 106, "{told}");
    assert!(beside * 1000 <= (log + beside) * 25, "{told}");
}
