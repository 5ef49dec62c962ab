//! What the files say of spans, of volumes, and of the hosts that go to these.

use super::{STORAGE_NAME, read_if_there, start_of};
use crate::config::Findings;
use crate::config::hosting::HostingFile;
use crate::config::place::Place;
use crate::config::records::Records;
use crate::config::storage::StorageFile;
use crate::config::volume::VolumeFile;
use crate::mgmt::files::Reader;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn read_storage(
    reader: &Reader,
    records: &Records,
    interim_place: &Place,
    found: &mut Findings,
) -> StorageFile {
    let bytes = reader.read(STORAGE_NAME).unwrap_or_else(|error| {
        found.errors.push(error);
        None
    });
    let is_there = bytes.is_some();
    if !is_there {
        let what = "there is no such file; the cache is in RAM only";
        found.warnings.push(start_of(STORAGE_NAME).error("", what));
    }
    let bytes = bytes.unwrap_or_default();
    let (mut storage, findings) = StorageFile::parse(STORAGE_NAME, &bytes);
    let is_sound = findings.is_usable();
    found.extend(findings);
    if let Some(interim) = &records.cache_interim_storage {
        found.extend(storage.add_interim(interim, interim_place));
    }
    if is_there && is_sound && storage.spans.is_empty() {
        let what = "it names no span; the cache is in RAM only";
        found.warnings.push(start_of(STORAGE_NAME).error("", what));
    }
    storage
}

/// Texts in place of the files of spans and volumes, by the names of these.
#[must_use]
pub fn storage_texts(
    records: &Records,
    storage: Option<&str>,
    volumes: Option<&str>,
) -> BTreeMap<String, Vec<u8>> {
    let storage = storage.map(|text| (STORAGE_NAME.to_owned(), text.into()));
    let volumes = volumes.map(|text| (records.cache_volume_filename.to_string(), text.into()));
    storage.into_iter().chain(volumes).collect()
}

pub(super) fn read_volumes(reader: &Reader, records: &Records, found: &mut Findings) -> VolumeFile {
    let name = &*records.cache_volume_filename;
    let bytes = read_if_there(reader, name, found);
    let (volumes, findings) = VolumeFile::parse(name, &bytes);
    found.extend(findings);
    volumes
}

pub(super) fn read_hosting(
    reader: &Reader,
    records: &Records,
    found: &mut Findings,
) -> HostingFile {
    let name = &*records.cache_hosting_filename;
    let bytes = read_if_there(reader, name, found);
    let (hosting, findings) = HostingFile::parse(name, &bytes);
    found.extend(findings);
    hosting
}

/// The volumes that spans are shared by or given to.
pub(super) fn volume_numbers(storage: &StorageFile, volumes: &VolumeFile) -> BTreeSet<u8> {
    let shared = volumes.volumes.iter().map(|volume| volume.number);
    let own = storage.spans.iter().filter_map(|span| span.volume);
    shared.chain(own).collect()
}
