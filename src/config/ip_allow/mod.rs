//! `ip_allow.config` (4.2) and `ip_allow.yaml` (9.x): who may use the proxy,
//! by which methods, and which addresses it may be sent to.

mod value;

pub use value::{Direction, IpAllowFile, IpAllowRule, Methods};
