//! All certificates that are served, and who gets which.

use super::certificate::{Certificate, CertificateError, Contents};
use super::options::Directories;
use crate::config::ssl_multicert::{
    CertificateFiles, Destination, Entry, MulticertFile, TicketRule,
};
use crate::config::{ConfigError, Findings};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, available_parallelism};

/// Certificates of one name or address, the one to be taken first in front.
type Candidates = Vec<Candidate>;

/// A certificate as an entry has it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) certificate: Arc<Certificate>,
    pub(super) tickets: TicketRule,
}

/// The certificates of a configuration.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    by_name: HashMap<String, Candidates>,
    /// By what follows `*.`.
    by_wildcard: HashMap<String, Candidates>,
    by_address: HashMap<(IpAddr, Option<u16>), Candidates>,
    default: Candidates,
    /// Each by its files.
    held: HashMap<CertificateFiles, Arc<Certificate>>,
    /// What is wrong: errors of those that are missing, or not of now, and
    /// warnings of those that are served without their staple.
    pub(super) found: Findings,
}

impl Certificates {
    /// The certificates of the file. One that `before` has of the same contents
    /// is taken from there, and so is one whose files are faulty now: a fault
    /// concerns no other certificate. A staple that is not one for the
    /// certificate at second `now` of 1970 is left out.
    pub(super) fn load(
        file: &MulticertFile,
        (directories, now): (&Directories, u64),
        before: &Self,
    ) -> Self {
        let mut loaded = Self::default();
        let all = file.entries.iter().flat_map(|entry| &entry.certificates);
        let renewed = before.renewed(all.collect(), (directories, now));
        for entry in &file.entries {
            let mut candidates = Vec::new();
            for files in &entry.certificates {
                match renewed.get(files) {
                    Some(Ok(certificate)) => {
                        let unfit = staple_fault(entry, files, certificate);
                        loaded.found.warnings.extend(unfit);
                        candidates.push(loaded.hold(files, Arc::clone(certificate)));
                    }
                    Some(Err(error)) => {
                        let old = before.held.get(files).map(Arc::clone);
                        loaded
                            .found
                            .errors
                            .push(fault(entry, files, error, old.is_some()));
                        candidates.extend(old.map(|old| loaded.hold(files, old)));
                    }
                    // All were asked for.
                    None => {}
                }
            }
            candidates.sort_by_key(|certificate| certificate.is_rsa());
            let candidates = candidates.into_iter().map(|certificate| Candidate {
                certificate,
                tickets: entry.tickets,
            });
            loaded.serve(entry.destination, &candidates.collect());
        }
        loaded
    }

    /// What each of the files hold now, by all processors: an RSA key alone takes
    /// a millisecond to be judged.
    fn renewed<'f>(
        &self,
        files: HashSet<&'f CertificateFiles>,
        at: (&Directories, u64),
    ) -> HashMap<&'f CertificateFiles, Result<Arc<Certificate>, CertificateError>> {
        let files: Vec<_> = files.into_iter().collect();
        let threads = available_parallelism().map_or(1, NonZero::get);
        let share = files.len().div_ceil(threads).max(1);
        let read = |share: &[&'f CertificateFiles]| -> Vec<_> {
            let share = share.iter();
            share.map(|files| (*files, self.read(files, at))).collect()
        };
        thread::scope(|scope| {
            let shares = files.chunks(share);
            let running: Vec<_> = shares
                .map(|share| scope.spawn(move || read(share)))
                .collect();
            let done = running.into_iter().map(|thread| {
                let done = thread.join();
                done.unwrap_or_else(|panic| resume_unwind(panic))
            });
            done.flatten().collect()
        })
    }

    /// What the files hold now: the certificate held already, if it is that.
    fn read(
        &self,
        files: &CertificateFiles,
        (directories, now): (&Directories, u64),
    ) -> Result<Arc<Certificate>, CertificateError> {
        let contents = Contents::read(files, directories)?;
        let digest = contents.digest();
        let held = self.held.get(files);
        let held = held.filter(|held| held.digest == digest && !held.is_overdue(now));
        match held {
            Some(same) => Ok(Arc::clone(same)),
            None => Certificate::parse(&contents, now).map(Arc::new),
        }
    }

    fn hold(
        &mut self,
        files: &CertificateFiles,
        certificate: Arc<Certificate>,
    ) -> Arc<Certificate> {
        self.held.insert(files.clone(), Arc::clone(&certificate));
        certificate
    }

    /// Offers certificates to who asks for their names, and to the destination.
    fn serve(&mut self, destination: Destination, candidates: &Candidates) {
        for candidate in candidates {
            for name in &candidate.certificate.names {
                let (map, name) = match name.strip_prefix("*.") {
                    Some(parent) => (&mut self.by_wildcard, parent),
                    None => (&mut self.by_name, name.as_str()),
                };
                map.entry(name.to_owned())
                    .or_default()
                    .push(candidate.clone());
            }
        }
        let more = candidates.iter().cloned();
        match destination {
            Destination::Names => {}
            Destination::Address(ip, port) => {
                self.by_address.entry((ip, port)).or_default().extend(more);
            }
            Destination::Any => self.default.extend(more),
        }
    }

    /// Those for a client that asks for `name` of `local`, best first: of the
    /// name, of a wildcard, of the address and port, of the address, of all.
    pub(super) fn candidates(
        &self,
        name: Option<&str>,
        local: SocketAddr,
    ) -> impl Iterator<Item = &Candidate> {
        let name = name.map(str::to_ascii_lowercase);
        let parent = name.as_deref().and_then(|name| name.split_once('.'));
        let exact = name.as_deref().and_then(|name| self.by_name.get(name));
        let wildcard = parent.and_then(|(_, parent)| self.by_wildcard.get(parent));
        let at = self.by_address.get(&(local.ip(), Some(local.port())));
        let on = self.by_address.get(&(local.ip(), None));
        let lists = [exact, wildcard, at, on, Some(&self.default)];
        lists.into_iter().flatten().flatten()
    }

    /// All that is wrong.
    pub(super) fn faults(&self) -> impl Iterator<Item = &ConfigError> {
        self.found.errors.iter().chain(&self.found.warnings)
    }

    /// Each certificate with its files.
    pub(super) fn held(&self) -> impl Iterator<Item = (&CertificateFiles, &Arc<Certificate>)> {
        self.held.iter()
    }
}

/// What is wrong with the staple of a certificate that is served.
fn staple_fault(
    entry: &Entry,
    files: &CertificateFiles,
    certificate: &Certificate,
) -> Option<ConfigError> {
    let (file, fault) = certificate.staple_fault.as_ref()?;
    let name = files.staple.as_deref().unwrap_or_default();
    let what = format!(
        "{} is not stapled: {fault}; the certificate is served without",
        file.display()
    );
    Some(entry.place.error(name, what))
}

fn fault(
    entry: &Entry,
    files: &CertificateFiles,
    error: &CertificateError,
    has_old: bool,
) -> ConfigError {
    let instead = match has_old {
        true => "the one read before is served on",
        false => "it is not served",
    };
    entry
        .place
        .error(&files.certificate, format!("{error}; {instead}"))
}
