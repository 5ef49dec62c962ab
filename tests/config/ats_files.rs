//! The files that ATS ships load, and say by name what has no effect here.

use std::collections::BTreeMap;

use strata::config::Findings;
use strata::config::connect_ports::ConnectPorts;
use strata::config::place::Place;
use strata::config::ports::PortList;
use strata::config::records::{Honour, RECORDS, Records, RecordsFile, Running, alias, find};
use strata::config::storage::{SpanLine, StorageFile};

const OF_4_2_3: &str = include_str!("../golden/ats/records-4.2.3.config");
const OF_9_2: &str = include_str!("../golden/ats/records-9.2.config");
const STORAGE_9_2: &str = include_str!("../golden/ats/storage-9.2.config");

fn load(text: &str) -> (RecordsFile, Findings) {
    RecordsFile::parse("records.config", text.as_bytes())
}

fn values(file: &RecordsFile) -> Records {
    let (records, found) = Records::resolve(&|_| None, &Running::new(), file);
    assert_eq!(found, Findings::default());
    records
}

/// Name and value of each line that sets something.
fn settings(text: &str) -> BTreeMap<&str, String> {
    let lines = text.lines().filter(|line| !line.trim().starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let name = words.next()?;
            Some((name, words.skip(1).collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

/// The names that the warnings name.
fn warned(found: &Findings) -> Vec<&str> {
    let names = found.warnings.iter().map(|warning| &warning.what);
    names
        .filter_map(|what| what.split_whitespace().next())
        .collect()
}

/// Whether a line of this name and value must be warned about.
fn has_no_effect(name: &str, value: &str) -> bool {
    match find(name) {
        Some(spec) => {
            let default = spec.default_value();
            spec.honour == Honour::Ignored && spec.read(value).unwrap() != default
        }
        None => alias(name).is_none(),
    }
}

fn every_line_without_effect_is_named(text: &str) {
    let (_, found) = load(text);
    assert_eq!(found.errors, []);
    let warned = warned(&found);
    for (name, value) in settings(text) {
        if has_no_effect(name, &value) {
            assert!(warned.contains(&name), "{name} is not warned about");
        }
    }
    for warning in &found.warnings {
        assert!(!warning.what.contains("is unknown"), "{warning}");
        assert!(!warning.what.contains("skipped"), "{warning}");
    }
}

#[test]
fn each_file_loads_and_names_what_has_no_effect() {
    every_line_without_effect_is_named(OF_4_2_3);
    every_line_without_effect_is_named(OF_9_2);
}

#[test]
fn every_line_for_a_record_holds() {
    for text in [OF_4_2_3, OF_9_2] {
        let (file, _) = load(text);
        let records = values(&file);
        let mut checked = 0;
        for (name, value) in settings(text) {
            let Some(spec) = find(name) else { continue };
            assert_eq!(
                records.get(name),
                Some(spec.read(&value).unwrap()),
                "{name}"
            );
            checked += 1;
        }
        assert!(checked > 50, "{checked} of {} records", RECORDS.len());
    }
}

#[test]
fn old_names_of_4_2_3_set_the_records_that_took_their_place() {
    let (file, _) = load(OF_4_2_3);
    let records = values(&file);
    assert_eq!(records.http_insert_client_ip, 1);
    assert_eq!(&*records.http_server_session_sharing_pool, "thread");
    assert_eq!(&*records.http_server_session_sharing_match, "both");
    assert_eq!(records.http_normalize_ae, 0);
    assert_eq!(records.http_per_server_connection_max, 0);
    assert_eq!(&*records.ssl_client_verify_server_policy, "DISABLED");
}

#[test]
fn the_port_lists_of_each_file_are_read() {
    for (text, ports) in [(OF_4_2_3, 1), (OF_9_2, 2)] {
        let (file, _) = load(text);
        let records = values(&file);
        let place = Place {
            file: "records.config".into(),
            line: 1,
            column: 1,
        };
        let (list, found) = PortList::parse(&records.http_server_ports, &place);
        assert_eq!((list.ports.len(), found), (ports, Findings::default()));
        let (connect, found) = ConnectPorts::parse(&records.http_connect_ports, &place);
        assert_eq!(found, Findings::default());
        assert!(connect.allow(443) && !connect.allow(25));
    }
}

#[test]
fn the_storage_config_of_9_2_is_one_directory() {
    let (storage, found) = StorageFile::parse("storage.config", STORAGE_9_2.as_bytes());
    assert_eq!(found, Findings::default());
    let spans: Vec<_> = storage
        .spans
        .iter()
        .map(|span: &SpanLine| (&*span.path, span.size))
        .collect();
    assert_eq!(spans, [("/var/cache/trafficserver", Some(256 << 20))]);
}
