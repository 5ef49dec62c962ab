//! The files this repository ships load without a word.

use std::fs;
use std::path::Path;

use strata::config::Findings;
use strata::config::connect_ports::ConnectPorts;
use strata::config::place::Place;
use strata::config::ports::PortList;
use strata::config::records::{Records, RecordsFile, Running};
use strata::config::storage::{StorageFile, Tier};

/// Records and spans of a directory, from the root.
fn load(dir: &str) -> (Records, StorageFile) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let read = |name| fs::read(dir.join(name)).unwrap();
    let (file, found) = RecordsFile::parse("records.config", &read("records.config"));
    assert_eq!(found, Findings::default());
    let (records, found) = Records::resolve(&|_| None, &Running::new(), &file);
    assert_eq!(found, Findings::default());
    let (storage, found) = StorageFile::parse("storage.config", &read("storage.config"));
    assert_eq!(found, Findings::default());
    (records, storage)
}

#[test]
fn the_shipped_default_listens_on_8080_and_keeps_a_file_span() {
    let (records, storage) = load(".");
    assert_eq!(&*records.http_server_ports, "8080");
    assert_eq!(records.url_remap_remap_required, 1);
    assert_eq!(storage.spans[0].size, Some(256 << 20));
}

#[test]
fn packages_differ_from_the_shipped_default_in_user_and_state_and_have_no_span() {
    let (shipped, _) = load(".");
    let (packaged, storage) = load("etc/package");
    let differing: Vec<_> = packaged
        .differences(&shipped)
        .map(|spec| spec.name)
        .collect();
    let expected = ["proxy.config.admin.user_id", "proxy.config.local_state_dir"];
    assert_eq!(differing, expected);
    assert_eq!(&*packaged.admin_user_id, "strata");
    assert_eq!(&*packaged.local_state_dir, "/var/lib/strata");
    assert_eq!(storage.spans, []);
}

#[test]
fn the_seed_scenario_s_values_hold_with_comments_after_them() {
    let (records, storage) = load("etc/seed");
    assert_eq!(records.cache_ram_cache_cutoff, 40);
    assert_eq!(records.cache_ram_cache_size, 67_108_864);
    assert_eq!(records.reverse_proxy_enabled, 1);
    assert_eq!(records.url_remap_pristine_host_hdr, 0);
    assert_eq!(storage.spans[0].tier, Some(Tier::Fast));
}

#[test]
fn the_defaults_of_the_table_are_lists_that_can_be_read() {
    let records = Records::default();
    let place = Place {
        file: "default".into(),
        line: 1,
        column: 1,
    };
    let (_, ports) = PortList::parse(&records.http_server_ports, &place);
    let (_, connect) = ConnectPorts::parse(&records.http_connect_ports, &place);
    assert_eq!((ports, connect), (Findings::default(), Findings::default()));
}
