//! The methods of the control socket, each one call of the library.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `metric.get` | `names` | `values`: name and value of each |
//! | `metric.match` | `pattern` | the same of all that match |
//! | `metric.zero` | `names`; none is all | nothing |
//! | `server.status` | | phase, reasons for not being ready, process, ports |
//! | `server.stop` | | nothing; the server then drains and exits |
//! | `server.drain` | `undo` | the phase |

mod metric;
mod params;
mod process;

use super::admin::Readiness;
use super::life::Life;
use super::rpc::{Call, Fault, FaultKind};
use super::socket::Handler;
use crate::base::clock::{Clock, WallTime};
use crate::metrics::{Collector, Metric, Scrape};
use params::Params;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// What does not change while the server runs.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When it started.
    pub started: WallTime,
    /// Where clients connect.
    pub ports: Vec<SocketAddr>,
    /// Where the admin listener is, if there is one.
    pub admin: Option<SocketAddr>,
}

/// Everything that calls act on.
pub struct Control {
    /// The metrics.
    pub collector: Arc<Collector>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The server's phase.
    pub life: Arc<Life>,
    /// What does not change.
    pub facts: Facts,
    /// Judges readiness when asked.
    pub readiness: Box<dyn Fn() -> Readiness>,
}

impl Handler for Control {
    async fn call(&self, call: &Call) -> Result<Value, Fault> {
        let cells = self.collector.gauges();
        cells.add(Metric::StrataControlRequests, 1);
        let outcome = self.dispatch(call);
        if let Err(fault) = &outcome {
            cells.add(Metric::StrataControlErrors, 1);
            tracing::debug!(method = call.method, %fault, "control call refused");
        }
        outcome
    }
}

impl Control {
    fn dispatch(&self, call: &Call) -> Result<Value, Fault> {
        match call.method.split_once('.') {
            Some(("metric", action)) => self.metric(action, call),
            Some(("server", action)) => self.server(action, call),
            _ => Err(no_method(call)),
        }
    }

    fn scrape(&self) -> Scrape {
        self.collector.scrape(self.clock.mono())
    }

    fn metric(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        match action {
            "get" => {
                let names = Params::of(call, &["names"])?.some_texts("names")?;
                metric::get(&self.scrape(), &names)
            }
            "match" => {
                let pattern = Params::of(call, &["pattern"])?.pattern()?;
                Ok(json!({ "values": metric::matching(&self.scrape(), &pattern) }))
            }
            "zero" => {
                let names = Params::of(call, &["names"])?.texts("names")?;
                metric::zero(self.collector.registry(), &names)
            }
            _ => Err(no_method(call)),
        }
    }

    fn server(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        match action {
            "status" => {
                Params::of(call, &[])?;
                Ok(process::status(self))
            }
            "stop" => {
                Params::of(call, &[])?;
                self.life.stop();
                Ok(json!({}))
            }
            "drain" => process::drain(self, Params::of(call, &["undo"])?.flag("undo")?),
            _ => Err(no_method(call)),
        }
    }
}

fn no_method(call: &Call) -> Fault {
    let what = format!("there is no method {:?}", call.method);
    Fault::new(FaultKind::Method, what)
}
