//! What the files say of TLS, and of who introduces clients.

use super::{Loaded, first_there, place_of, read_if_there, start_of};
use crate::config::place::Place;
use crate::config::ports::{Port, PortList};
use crate::config::records::Records;
use crate::config::sni::{self, SniFile};
use crate::config::ssl_multicert::{self, MulticertFile};
use crate::config::{ConfigError, Findings};
use crate::mgmt::files::Reader;
use crate::proxy::Snapshot;
use crate::proxy::tls::{Ciphers, OriginTls, TlsOptions};
use std::path::Path;
use std::sync::Arc;

/// The record of the authorities that origins may prove themselves by.
const CA_FILE: &str = "proxy.config.ssl.client.CA.cert.filename";

/// The files that are looked for when no record names one.
const SNI_NAMES: [&str; 2] = ["sni.toml", "sni.yaml"];

/// The record of what we prove ourselves by to origins.
const OWN_CERTIFICATE: &str = "proxy.config.ssl.client.cert.filename";

pub(super) fn read_multicert(
    reader: &Reader,
    records: &Records,
    found: &mut Findings,
) -> MulticertFile {
    let name = &*records.ssl_server_multicert_filename;
    let bytes = read_if_there(reader, name, found);
    let (multicert, findings) = ssl_multicert::parse(name, &bytes);
    found.extend(findings);
    multicert
}

/// What holds for names, of the file that the record names; where it names none
/// of its own, sni.toml goes before ATS's sni.yaml.
pub(super) fn read_sni(reader: &Reader, name: &str, found: &mut Findings) -> SniFile {
    let by_default = name == SNI_NAMES[0];
    let names: &[&str] = if by_default { &SNI_NAMES } else { &[name] };
    let Some((name, bytes)) = first_there(reader, names, found) else {
        if !by_default {
            let what = "there is no such file (proxy.config.ssl.servername.filename); \
                        nothing is special to a name";
            found.warnings.push(start_of(name).error("", what));
        }
        return SniFile::default();
    };
    let (file, findings) = sni::parse(name, &bytes);
    found.extend(findings);
    file
}

/// Why ports could not serve whom they are for.
pub(super) fn port_faults(
    ports: &PortList,
    (records, file): (&Records, &MulticertFile),
    place: &Place,
) -> Vec<ConfigError> {
    let any = |wanted: fn(&Port) -> bool| ports.ports.iter().any(wanted);
    let tls = any(|port| port.tls).then(|| tls_fault(records, file, place));
    let introduced = any(|port| port.introduced).then(|| introducer_fault(records, place));
    [tls, introduced].into_iter().flatten().flatten().collect()
}

fn introducer_fault(records: &Records, place: &Place) -> Option<ConfigError> {
    if records.http_proxy_protocol_allowlist.is_some() {
        return None;
    }
    let mut error = place.error("pp", "nobody is believed who introduces a client");
    error.help = Some("set proxy.config.http.proxy_protocol_allowlist".into());
    Some(error)
}

/// Why no client could be served at a port that speaks TLS.
fn tls_fault(records: &Records, file: &MulticertFile, place: &Place) -> Option<ConfigError> {
    let mut error = if file.entries.is_empty() {
        let name = &records.ssl_server_multicert_filename;
        place.error("ssl", format!("there is no certificate in {name}"))
    } else if TlsOptions::from_records(records, Path::new(""))
        .versions
        .is_empty()
    {
        place.error("ssl", "no version of TLS is spoken")
    } else {
        return None;
    };
    error.help = Some(match file.entries.is_empty() {
        true => "name one by ssl_cert_name".into(),
        false => "set proxy.config.ssl.TLSv1_3 to 1".into(),
    });
    Some(error)
}

/// A warning for each record that lists ciphers that are not spoken here.
pub(super) fn cipher_warnings(loaded: &Loaded) -> Vec<ConfigError> {
    let ciphers = Ciphers::from_records(&loaded.records);
    let warnings = ciphers.unknown().map(|(record, names)| {
        let place = place_of(&loaded.running, &loaded.records_file, record);
        place.error(
            "",
            format!("ciphers that are not spoken here are left out: {names}"),
        )
    });
    warnings.collect()
}

/// TLS with origins; its errors are those of the files that its records name,
/// which do not concern what can be as it was before.
pub(super) fn origin_tls(
    loaded: &Loaded,
    before: Option<&Snapshot>,
    found: &mut Findings,
) -> Option<Arc<OriginTls>> {
    let (tls, mut more) = read_origin_tls(loaded);
    let old = before.and_then(|old| kept(old, (&loaded.records, &loaded.sni)));
    let tls = match (more.errors.is_empty(), old) {
        (false, Some(old)) => {
            more.warnings.extend(more.errors.drain(..).map(used_on));
            Some(old)
        }
        _ => tls.map(Arc::new),
    };
    found.extend(more);
    tls
}

/// TLS with origins that was made by the same records and names.
pub(super) fn kept(
    before: &Snapshot,
    (records, names): (&Records, &SniFile),
) -> Option<Arc<OriginTls>> {
    let tls = before.origin.tls.as_ref();
    let is_same = OriginTls::says_the_same(&before.records, records);
    tls.filter(|tls| is_same && tls.is_for(names))
        .map(Arc::clone)
}

/// A fault of files that have been good.
pub(super) fn used_on(mut fault: ConfigError) -> ConfigError {
    fault.what.push_str("; what was read before is used on");
    fault
}

fn read_origin_tls(loaded: &Loaded) -> (Option<OriginTls>, Findings) {
    let mut found = Findings::default();
    let place = |name| place_of(&loaded.running, &loaded.records_file, name);
    match OriginTls::read(&loaded.records, &loaded.dir, &loaded.sni) {
        Ok((tls, errors)) => {
            found.errors.extend(errors);
            if !tls.has_authorities() {
                let what = "the system trusts no authority: no origin of https can prove itself";
                let mut warning = place(CA_FILE).error("", what);
                warning.help = Some(format!("name a file by {CA_FILE}"));
                found.warnings.push(warning);
            }
            (Some(tls), found)
        }
        Err(error) => {
            let error = place(OWN_CERTIFICATE).error("", error.to_string());
            found.errors.push(error);
            (None, found)
        }
    }
}
