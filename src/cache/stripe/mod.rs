//! One cyclic log with its directory, without I/O, clock or threads: plans go
//! out, completions come in.
//!
//! # Driving it
//!
//! ```text
//! Stripe::format(identity, geometry, options)    -> Stripe      a new one; its headers are its first plans
//! Recovery::new(RecoveryStart)                   -> Recovery    an old one:
//!   recovery.step()                              -> Step::Read{offset, length} | Step::Done
//!   recovery.complete(Result<&[u8], Outcome>)                   the answer to the last read
//!   recovery.finish()                            -> Result<(Stripe, RecoveryReport), NotRecovered>
//! stripe.directory()                             -> Arc<Directory>   shared with readers, no lock
//!
//! directory.lookup(key hash)                     -> Matches     up to 16 places, no allocation
//! directory.is_buffered(&place)                  -> bool        then: stripe.buffered(&place) -> Option<Bytes>
//!                                                               else: read place.length bytes at place.offset
//! directory.verify(&place, key hash, Bytes)      -> Result<Fragment, FragmentError>
//!                                                   OtherKey: go on to the next match; anything else: a miss
//! directory.mark_read(key hash, &place)                         sets `referenced`
//!
//! stripe.append(now, NewFragment{..})            -> Result<Appended, Refused>
//! stripe.free(now, key hash, Which)              -> Freed       all | these entries only
//! stripe.poll(now)                               -> Option<Plan>     call until None; run each
//! stripe.complete(now, plan id, Outcome)         -> Completion
//! stripe.deadline()                              -> Option<MonoTime> when to poll next if nothing happens
//! stripe.flush(now) / stripe.sync(now) / stripe.close(now)      ask; stripe.is_idle() says when it is done
//! ```
//!
//! The driver keeps a `Mutex<Stripe>`, held for memory work only, and hands
//! the `Arc<Directory>` to all readers. After any `append`, `free`, `flush` or
//! `complete` it polls. Offsets are in bytes from the stripe's start.

mod geometry;
mod options;
mod plan;

pub use geometry::{Geometry, GeometryError, MAX_STRIPE_BYTES, MIN_LOG_BYTES};
pub use options::{StripeIdentity, StripeOptions};
pub use plan::{Action, Appended, Cause, Completion, Freed, Outcome, Plan, PlanId, Refused};
