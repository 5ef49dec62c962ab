//! The command line: the flags of the ATS tool that published tests use.

use clap::Parser;
use strata::base::clock::MonoTime;

/// Loads a proxy with checking clients and serves as its origin.
#[derive(Debug, Parser)]
#[command(name = "jtest", version, rename_all = "snake_case")]
pub(crate) struct Args {
    /// The proxy's host name or address.
    #[arg(short = 'P', long, default_value = "localhost")]
    pub(crate) proxy_host: String,
    /// The proxy's port.
    #[arg(short = 'p', long, default_value_t = 8080)]
    pub(crate) proxy_port: u16,
    /// The origin's name: it stands in every URL, and is resolved here to
    /// find the address that the origin listens on.
    #[arg(short = 'S', long, default_value = "localhost")]
    pub(crate) server_host: String,
    /// The origin's port; 0 means the proxy's port + 1000.
    #[arg(short = 's', long, default_value_t = 0)]
    pub(crate) server_port: u16,
    /// Clients at work at the same time.
    #[arg(short = 'c', long, default_value_t = 100)]
    pub(crate) clients: u32,
    /// Further requests on a client's connection after its first.
    #[arg(short = 'k', long, default_value_t = 4)]
    pub(crate) keepalive: u32,
    /// Requests the origin takes on one connection; 0 for any number.
    #[arg(short = 'j', long, default_value_t = 4)]
    pub(crate) server_keepalive: u32,
    /// The share of requests that go to the hot set.
    #[arg(short = 'z', long, default_value_t = 0.4)]
    pub(crate) hitrate: f64,
    /// Documents in the hot set.
    #[arg(short = 'Z', long, default_value_t = 1000)]
    pub(crate) hotset: u32,
    /// The seed of the random choice of documents.
    #[arg(short = 'D', long, default_value_t = 0)]
    pub(crate) drand_seed: u64,
    /// Bytes of every document; -1 for sizes that vary by document.
    #[arg(short = 'L', long, default_value_t = -1, allow_negative_numbers = true)]
    pub(crate) docsize: i64,
    /// The share of If-Modified-Since requests that the origin answers 304.
    #[arg(short = 'I', long, default_value_t = 0.5)]
    pub(crate) ims_rate: f64,
    /// Entries of the hash of URLs read from a file; without such a file,
    /// which this tool doesn't read, it has no effect.
    #[arg(short = 'q', long, default_value_t = 1_000_000)]
    pub(crate) url_hash_entries: u64,
    /// Seconds between rows.
    #[arg(short = 'i', long, default_value_t = 1)]
    pub(crate) interval: u64,
    /// Seconds over which the rows average, older ones counting less.
    #[arg(short = 'a', long, default_value_t = 5.0)]
    pub(crate) average_over: f64,
    /// Seconds to run; 0 until interrupted.
    #[arg(short = 't', long, default_value_t = 0)]
    pub(crate) test_time: u64,
    /// Requests to make; 0 for any number.
    #[arg(long, default_value_t = 0)]
    pub(crate) requests: u64,
    /// Ask for each document of the hot set once, in order, and end.
    #[arg(long)]
    pub(crate) sweep: bool,
    /// Clients only; the origin runs elsewhere.
    #[arg(short = 'y', long)]
    pub(crate) client_only: bool,
    /// Origin only.
    #[arg(short = 'Y', long)]
    pub(crate) server_only: bool,
    /// 0 asks in absolute form, 1 in origin form with a Host field.
    #[arg(short = 'H', long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) host_request: u8,
}

impl Args {
    /// The port that the origin listens on.
    pub(crate) fn origin_port(&self) -> u16 {
        match self.server_port {
            0 => self.proxy_port.saturating_add(1000),
            port => port,
        }
    }

    /// Requests to make in all; 0 for any number.
    pub(crate) fn request_limit(&self) -> u64 {
        if self.sweep {
            u64::from(self.hotset)
        } else {
            self.requests
        }
    }

    /// Whether the run has lasted as long as it should.
    pub(crate) fn is_over(&self, now: MonoTime) -> bool {
        self.test_time > 0 && now.as_nanos() >= self.test_time.saturating_mul(1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_command_line_is_taken_whole() {
        let line = "jtest -P proxy -p 8080 -S ts.cn -s 9080 -z 1.0 -D 9080 -k 2 \
                    -c 500 -Z 1000 -q 100000000";
        let args = Args::try_parse_from(line.split_whitespace()).unwrap();
        assert_eq!((args.proxy_port, args.origin_port()), (8080, 9080));
        assert_eq!((args.clients, args.hotset, args.keepalive), (500, 1000, 2));
        assert_eq!(args.url_hash_entries, 100_000_000);
    }

    #[test]
    fn an_origin_without_a_port_listens_a_thousand_above_the_proxy() {
        let args = Args::try_parse_from(["jtest", "-p", "8080"]).unwrap();
        assert_eq!(args.origin_port(), 9080);
    }
}
