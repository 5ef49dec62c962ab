//! 2,000 certificates: time to load them, to look at them again, and memory
//! after many renewals. `cargo bench --bench certificates` prints a row for
//! certificates of ECDSA and one of RSA, which share a few keys, since new ones
//! take a minute to find.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize, SerialNumber};
use std::fs;
use std::path::Path;
use strata::base::clock::{Clock, SystemClock};
use strata::config::Findings;
use strata::config::records::Records;
use strata::config::ssl_multicert::{self, MulticertFile};
use strata::proxy::tls::{TlsOptions, TlsServer};
use tikv_jemallocator::Jemalloc;

/// As the server has it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const COUNT: usize = 2000;
/// Keys that they share.
const KEYS: usize = 10;
const RELOADS: usize = 20;

/// Writes every certificate anew, each under a name of its own.
fn issue(dir: &Path, keys: &[KeyPair], serials: &mut impl Iterator<Item = u64>) {
    for (number, key) in (0..COUNT).zip(keys.iter().cycle()) {
        let names = vec![format!("h{number}.example"), format!("*.h{number}.example")];
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = serials.next().map(SerialNumber::from);
        let certificate = params.self_signed(key).unwrap();
        let pem = certificate.pem() + &key.serialize_pem();
        fs::write(dir.join(format!("{number}.pem")), pem).unwrap();
    }
}

fn multicert() -> MulticertFile {
    let lines = (0..COUNT).map(|number| format!("ssl_cert_name={number}.pem\n"));
    let text: String = lines.collect();
    let (file, found) = ssl_multicert::parse("ssl_multicert.config", text.as_bytes());
    assert_eq!(found, Findings::default());
    file
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// Milliseconds that a load of the file takes.
fn load(clock: &SystemClock, tls: &TlsServer, file: &MulticertFile) -> u128 {
    let begin = clock.mono();
    assert_eq!(tls.load(file), Findings::default());
    clock.mono().since(begin).as_millis()
}

fn median(mut all: Vec<u128>) -> u128 {
    all.sort_unstable();
    all[all.len() / 2]
}

fn measure(kind: &str, keys: &[KeyPair]) {
    let clock = SystemClock::default();
    let dir = tempfile::tempdir().unwrap();
    let file = multicert();
    let mut serials = 1..;
    issue(dir.path(), keys, &mut serials);
    let options = TlsOptions::from_records(&Records::default(), dir.path());
    let tls = TlsServer::new(options).unwrap();
    let first = load(&clock, &tls, &file);
    let (mut same, mut renewed) = (Vec::new(), Vec::new());
    let mut resident = Vec::new();
    for _ in 0..RELOADS {
        same.push(load(&clock, &tls, &file));
        issue(dir.path(), keys, &mut serials);
        renewed.push(load(&clock, &tls, &file));
        resident.push(resident_kib());
    }
    println!(
        "{kind}: {COUNT} certificates, load {first} ms, again {} ms, all renewed {} ms; \
         resident {} KiB, after {} renewals {} KiB",
        median(same),
        median(renewed),
        // The first ones find what the allocator keeps.
        resident[3],
        RELOADS - 4,
        resident[RELOADS - 1],
    );
}

fn main() {
    let ecdsa: Vec<_> = (0..KEYS).map(|_| KeyPair::generate().unwrap()).collect();
    measure("ECDSA", &ecdsa);
    let rsa = (0..KEYS).map(|_| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048));
    let rsa: Vec<_> = rsa.map(Result::unwrap).collect();
    measure("RSA", &rsa);
}
