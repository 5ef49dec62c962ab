//! How a server is started.

use crate::config::records::Running;
use crate::mgmt::load::{Environment, PORTS, Source};
use std::path::PathBuf;

/// What a server is started with, besides its files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The configuration directory, absolute.
    pub config_dir: PathBuf,
    /// Variables that override records.
    pub environment: Environment,
    /// Listens on this port of every address instead of the configured ones
    /// (`-p`), as a running value of their record; 0 lets the system choose one
    /// of loopback's, for tests.
    pub port: Option<u16>,
    /// Whether to become `admin.user_id` when started as root. A test in the
    /// same process must not.
    pub change_user: bool,
    /// Whether SIGTERM and SIGINT stop the server.
    pub signals: bool,
}

impl Options {
    /// A server of that directory inside another program: it stays who it is,
    /// and its signals stay the program's.
    #[must_use]
    pub fn in_process(config_dir: impl Into<PathBuf>) -> Self {
        Self {
            config_dir: config_dir.into(),
            ..Self::default()
        }
    }

    pub(super) fn source(&self) -> Source {
        Source {
            dir: self.config_dir.clone(),
            environment: self.environment.clone(),
        }
    }
    /// The running values that the server starts with.
    pub(super) fn running(&self) -> Running {
        let ports = self.port.map(|port| match port {
            0 => "ip-in=127.0.0.1:0".to_owned(),
            port => port.to_string(),
        });
        ports
            .map(|text| (PORTS.to_owned(), text))
            .into_iter()
            .collect()
    }
}
