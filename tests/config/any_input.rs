//! No bytes make a parser panic, and no text is damaged by a rewrite.

use proptest::prelude::*;
use strata::config::Findings;
use strata::config::connect_ports::ConnectPorts;
use strata::config::place::Place;
use strata::config::ports::PortList;
use strata::config::records::{RECORDS, RecordType, RecordsFile, set_in_text, settings};
use strata::config::storage::{SPAN_BYTES_MIN, StorageFile, Tier};

const NAME: &str = "proxy.config.cache.ram_cache_cutoff";

/// Pieces of records.config, whole and broken, and any characters.
fn piece() -> impl Strategy<Value = String> {
    let name = (0..RECORDS.len()).prop_map(|at| RECORDS[at].name.to_owned());
    prop_oneof![
        Just("CONFIG".to_owned()),
        Just("LOCAL".to_owned()),
        name,
        Just(NAME.to_owned()),
        Just("proxy.config.http.share_server_sessions".to_owned()),
        Just("INT".to_owned()),
        Just("FLOAT".to_owned()),
        Just("STRING".to_owned()),
        Just("NULL".to_owned()),
        "[-+]?(0x)?[0-9]{0,25}[KMGTe.]?[0-9]{0,4}",
        "[ \t\r\n#/:,=\\[\\]\u{feff}]{1,4}",
        "\\PC{0,6}",
        any::<String>(),
    ]
}

/// Pieces with blanks and line ends between.
fn text() -> impl Strategy<Value = String> {
    let blank = prop_oneof![Just(" "), Just("\t"), Just("\n"), Just("\r\n"), Just("")];
    proptest::collection::vec((piece(), blank), 0..30).prop_map(|pieces| {
        pieces
            .iter()
            .flat_map(|(piece, blank)| [piece, *blank])
            .collect()
    })
}

/// Tokens of port lists and of storage.config.
fn list() -> impl Strategy<Value = String> {
    let token = "(ip-in|ip-out|fd|proto|ipv6|ssl|id|volume|tier|/dev/sdb|\\*|#)?[-=:, \\[\\]é]{0,2}[0-9]{0,12}[KMGT]?";
    proptest::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

fn place() -> Place {
    Place {
        file: "f".into(),
        line: 1,
        column: u32::MAX - 3,
    }
}

/// Whether every finding stands on a line of the text.
fn stand_in(found: &Findings, text: &[u8]) -> bool {
    let last = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    let within = |line| (1..=last).contains(&usize::try_from(line).unwrap());
    let mut all = found.errors.iter().chain(&found.warnings);
    all.all(|fault| within(fault.line) && fault.column >= 1)
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let (_, records) = RecordsFile::parse("f", &bytes);
        let (_, storage) = StorageFile::parse("f", &bytes);
        prop_assert!(stand_in(&records, &bytes) && stand_in(&storage, &bytes));
        if std::str::from_utf8(&bytes).is_err() {
            prop_assert_eq!((records.errors.len(), storage.errors.len()), (1, 1));
        }
    }

    #[test]
    fn any_text_like_a_file_is_read_with_places_inside_it(text in text()) {
        let (_, found) = RecordsFile::parse("f", text.as_bytes());
        prop_assert!(stand_in(&found, text.as_bytes()));
    }

    #[test]
    fn any_list_is_read_or_refused(text in list(), other: String) {
        for value in [text, other] {
            let (ports, _) = PortList::parse(&value, &place());
            prop_assert!(!ports.ports.is_empty());
            let (connect, _) = ConnectPorts::parse(&value, &place());
            prop_assert!(!connect.allow(0));
            let (storage, found) = StorageFile::parse("f", value.as_bytes());
            prop_assert!(stand_in(&found, value.as_bytes()));
            prop_assert!(storage.spans.iter().all(|span| span.size.is_none_or(|s| s >= SPAN_BYTES_MIN)));
            let mut interim = StorageFile::default();
            let found = interim.add_interim(&value, &place());
            prop_assert!(interim.spans.iter().all(|span| span.tier == Some(Tier::Fast)));
            prop_assert!(found.warnings.is_empty());
        }
    }

    #[test]
    fn any_value_is_taken_or_refused(at in 0..RECORDS.len(), text in piece()) {
        let spec = &RECORDS[at];
        if let Ok(set) = settings(spec.name, &text) {
            prop_assert_eq!(set.len(), 1);
            prop_assert_eq!(set[0].1.kind(), spec.kind);
        }
    }

    #[test]
    fn a_rewritten_text_reads_back_and_differs_in_one_line(text in text(), value: u32) {
        let value = value.to_string();
        let new = set_in_text(&text, NAME, RecordType::Int, &value);
        let (before, _) = RecordsFile::parse("f", text.as_bytes());
        let (mut after, _) = RecordsFile::parse("f", new.as_bytes());
        let set = after.records.remove(NAME);
        prop_assert_eq!(set.map(|record| record.value.to_string()), Some(value));
        let others = before.records.iter().filter(|(name, _)| **name != NAME);
        prop_assert_eq!(others.collect::<Vec<_>>(), after.records.iter().collect::<Vec<_>>());
        let kept = text.lines().zip(new.lines()).filter(|(old, new)| old != new).count();
        prop_assert!(kept <= 1);
    }
}
