//! The methods of the control socket, each one call of the library.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `config.reload` | | `generation`, what holds `now` and `at_restart`, `warnings` |
//! | `config.get` | `names` | `values`: name, value, source and update of each |
//! | `config.match` | `pattern` | the same of all that match |
//! | `config.set` | `name`, `value`, `persist` | `effect`: `now` or `restart` |
//! | `config.status` | | what is loaded, since when, what waits |
//! | `config.verify` | | `files`, how many `records`, `rules` and `spans`, all on one line as `text`, and `warnings` |
//! | `value.get` | `name` | `value` of a record or metric |
//! | `value.match` | `pattern` | `values` of records and metrics |
//! | `metric.get` | `names` | `values`: name and value of each |
//! | `metric.match` | `pattern` | the same of all that match |
//! | `metric.zero` | `names`; none is all | nothing |
//! | `storage.list` | | `spans`, each with its state and its stripes, and `ram` |
//! | `storage.offline` | `spans` | nothing |
//! | `storage.online` | `spans` | `spans`, each with its `state`: `loading` until it has been read |
//! | `storage.init` | `span`, `force` | `next`: the command to use it by |
//! | `storage.plan` | texts in place of files: `storage`, `volumes` | the `spans` and stripes that a restart would have, what is `kept` and `dropped`; `partial` where a directory is still being read, `suspect` where something is used after revalidation only |
//! | `storage.scan` | `span`, `from`, `rate` | what a part was found to be, and where to go on as `next` |
//! | `cache.clear` | `volume`; none is all | `volume` |
//! | `cache.list` | `prefix`, `volume`, `from`, `rate` | `objects`, and where to go on as `next` |
//! | `cache.lookup` | `url`, `fields` of the request | `key`, `hash`, and the `copies` there are |
//! | `cache.purge` | `urls` | `purged`: url, key and whether it was `found` |
//! | `server.status` | | phase, reasons for not being ready, process, ports |
//! | `server.stop` | | nothing; the server then drains and exits |
//! | `server.drain` | | the phase |
//!
//! A span is named by its path, its `id=` or its UUID. What goes over all that is
//! stored is asked for part by part, `from` being the `next` of the part before;
//! `rate` is how many bytes a second are read at most.
//!
//! A configuration that is refused is told by the error's `data.errors`, each
//! with file, line, column and, as `text`, all of it on one line.

mod cache;
mod config;
mod lookup;
mod metric;
mod params;
mod plan;
mod process;
mod storage;
mod walk;

pub use plan::plan_answer;

use super::admin::Readiness;
use super::life::Life;
use super::rpc::{Call, Fault, FaultKind};
use super::settings::Settings;
use super::socket::Handler;
use crate::base::clock::{Clock, WallTime};
use crate::cache::Cache;
use crate::metrics::{Collector, Metric, Scrape};
use crate::proxy::Snapshot;
use arc_swap::ArcSwap;
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
    /// Whether it began as root, and gave that up.
    pub was_root: bool,
}

/// Everything that calls act on.
pub struct Control {
    /// The metrics.
    pub collector: Arc<Collector>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The configuration.
    pub settings: Settings,
    /// What requests are judged by.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// The cache.
    pub cache: Arc<Cache>,
    /// The server's phase.
    pub life: Arc<Life>,
    /// What does not change.
    pub facts: Facts,
    /// Judges readiness when asked.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
}

impl Handler for Control {
    async fn call(&self, call: &Call) -> Result<Value, Fault> {
        let cells = self.collector.gauges();
        cells.add(Metric::StrataControlRequests, 1);
        let outcome = self.dispatch(call).await;
        if let Err(fault) = &outcome {
            cells.add(Metric::StrataControlErrors, 1);
            tracing::debug!(method = call.method, %fault, "control call refused");
        }
        outcome
    }
}

impl Control {
    async fn dispatch(&self, call: &Call) -> Result<Value, Fault> {
        match call.method.split_once('.') {
            Some(("storage", action)) => self.storage(action, call).await,
            Some(("cache", action)) => self.cache(action, call).await,
            Some(("config", action)) => self.config(action, call),
            Some(("value", action)) => self.value(action, call),
            Some(("metric", action)) => self.metric(action, call),
            Some(("server", action)) => self.server(action, call),
            _ => Err(no_method(call)),
        }
    }

    async fn cache(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        let params = |names: &[&str]| Params::of(call, names);
        match action {
            "purge" => cache::purge(self, &params(&["urls"])?.some_texts("urls")?).await,
            "lookup" => lookup::lookup(self, params(&["url", "fields"])?).await,
            "list" => walk::list(self, params(&["prefix", "volume", "from", "rate"])?).await,
            "clear" => cache::clear(self, params(&["volume"])?.number("volume")?).await,
            _ => Err(no_method(call)),
        }
    }

    fn config(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        let params = |names: &[&str]| Params::of(call, names);
        match action {
            "reload" => params(&[]).and_then(|_| config::reload(self)),
            "verify" => params(&[]).and_then(|_| config::verify(self)),
            "status" => params(&[]).map(|_| config::status(self)),
            "get" => config::get(self, &params(&["names"])?.some_texts("names")?),
            "match" => config::matching(self, params(&["pattern"])?),
            "set" => config::set(self, params(&["name", "value", "persist"])?),
            _ => Err(no_method(call)),
        }
    }

    fn value(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        match action {
            "get" => config::value(self, Params::of(call, &["name"])?.text("name")?),
            "match" => config::matching_values(self, Params::of(call, &["pattern"])?),
            _ => Err(no_method(call)),
        }
    }

    async fn storage(&self, action: &str, call: &Call) -> Result<Value, Fault> {
        let params = |names: &[&str]| Params::of(call, names);
        match action {
            "list" => {
                params(&[])?;
                storage::list(self).await
            }
            "offline" => storage::offline(self, &params(&["spans"])?.some_texts("spans")?).await,
            "online" => storage::online(self, &params(&["spans"])?.some_texts("spans")?).await,
            "scan" => walk::scan(self, params(&["span", "from", "rate"])?).await,
            "plan" => plan::plan(self, params(&["storage", "volumes"])?).await,
            "init" => storage::init(self, params(&["span", "force"])?).await,
            _ => Err(no_method(call)),
        }
    }

    /// Shows the number of the configuration in force, and whether part of it
    /// waits for a restart.
    pub fn publish_generation(&self) {
        let status = self.settings.status();
        let gauges = self.collector.gauges();
        gauges.set(Metric::StrataGeneration, status.generation);
        let waits = u64::from(!status.at_restart.is_empty());
        gauges.set(Metric::RestartRequired, waits);
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
            "drain" => {
                Params::of(call, &[])?;
                process::drain(self)
            }
            _ => Err(no_method(call)),
        }
    }
}

fn no_method(call: &Call) -> Fault {
    let what = format!("there is no method {:?}", call.method);
    Fault::new(FaultKind::Method, what)
}
