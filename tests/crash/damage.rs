//! Blocks of the spans overwritten at random, while the cache is closed and
//! while it runs: hits are lost, and nothing else.
//!
//! Rounds: 4, or as many as `STRATA_DAMAGE_ROUNDS` says; a failure prints the
//! seed, and `STRATA_DAMAGE_SEED` runs it again.

use crate::{close, number, on_devices, runtime, writer};
use bytes::Bytes;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use strata::base::prng::{Prng, system_u64};
use strata::cache::{Cache, Miss, NewObject, ObjectKind};
use strata::metrics::{Metric, Registry};

/// Keys that are stored.
const KEYS: u64 = 300;
/// Operations of a round, half of them after a damage under way.
const OPERATIONS: u64 = 600;
/// Bytes of a block.
const BLOCK: u64 = 4096;
/// Bytes at a span's start that hold headers, directory and ring.
const HEAD: u64 = 6 << 20;

#[test]
fn random_damage_costs_hits_and_never_a_wrong_or_an_old_byte() {
    let dir = tempfile::tempdir().unwrap();
    damage_and_check(dir.path());
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn random_damage_of_raw_devices_costs_hits_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let devices = on_devices(dir.path());
    damage_and_check(dir.path());
    drop(devices);
}

fn damage_and_check(dir: &Path) {
    let seed = number("STRATA_DAMAGE_SEED").unwrap_or_else(system_u64);
    let rounds = number("STRATA_DAMAGE_ROUNDS").unwrap_or(4);
    let mut prng = Prng::seeded(seed);
    let mut newest = HashMap::new();
    let runtime = runtime();
    for round in 0..rounds {
        let registry = Registry::new();
        let cache = writer::open_any(dir, round + 2, &registry);
        let worked = runtime.block_on(async {
            cache.loaded().await;
            let mut faults = check(&cache, &newest).await?;
            work(&cache, &mut prng, &mut newest).await;
            cache.sync().await;
            damage(dir, &mut prng);
            faults += check(&cache, &newest).await?;
            work(&cache, &mut prng, &mut newest).await;
            faults += check(&cache, &newest).await?;
            let counted = registry.get(Metric::CacheReadInvalid);
            if counted < faults {
                return Err(format!("{faults} faults, {counted} counted"));
            }
            if round % 2 == 0 {
                cache.shutdown().await;
            }
            Ok::<(), String>(())
        });
        assert_eq!(worked, Ok(()), "STRATA_DAMAGE_SEED={seed}, round {round}");
        if round % 2 == 1 {
            // What was in a buffer is lost by a sudden end.
            runtime.block_on(cache.sync());
        }
        close(cache, dir);
        damage(dir, &mut prng);
    }
}

/// Stores and purges; afterwards `newest` says what a key may have.
async fn work(cache: &Arc<Cache>, prng: &mut Prng, newest: &mut HashMap<u64, u64>) {
    for _ in 0..OPERATIONS / 2 {
        let (key, version) = (prng.below(KEYS), prng.next_u64());
        newest.remove(&key);
        if prng.below(10) == 0 {
            cache.purge(&writer::url(key)).await.unwrap();
        } else if store(cache, key, version).is_some() {
            newest.insert(key, version);
        } else {
            cache.remove(&writer::url(key));
        }
    }
}

fn store(cache: &Arc<Cache>, key: u64, version: u64) -> Option<()> {
    let object = NewObject {
        key: writer::url(key),
        kind: ObjectKind::Object,
        meta: Bytes::copy_from_slice(&version.to_le_bytes()),
        body_len: None,
        epoch: cache.epoch(),
    };
    let mut writer = cache.writer(object).ok()?;
    writer.push(&writer::body(key, version)).ok()?;
    writer.commit().ok()
}

/// Every hit is the newest version, whole; one that is suspect may be old.
/// Gives how many reads found something damaged.
async fn check(cache: &Cache, newest: &HashMap<u64, u64>) -> Result<u64, String> {
    let mut faults = 0;
    for key in 0..KEYS {
        let mut hit = match cache.read(&writer::url(key)).await {
            Ok(hit) => hit,
            Err(miss) => {
                faults += u64::from(miss == Miss::ReadError);
                continue;
            }
        };
        let version = u64::from_le_bytes(hit.meta.as_ref().try_into().unwrap());
        if !hit.suspect && newest.get(&key) != Some(&version) {
            let newest = newest.get(&key);
            return Err(format!("key {key} has {version}, not {newest:?}"));
        }
        let (mut found, mut whole) = (Vec::new(), true);
        loop {
            match hit.body.next().await {
                Ok(Some(piece)) => found.extend_from_slice(&piece),
                Ok(None) => break,
                Err(_) => {
                    (whole, faults) = (false, faults + 1);
                    break;
                }
            }
        }
        let body = writer::body(key, version);
        if !body.starts_with(&found) || whole && found.len() != body.len() {
            return Err(format!("key {key}, version {version}: wrong bytes"));
        }
    }
    Ok(faults)
}

/// Overwrites blocks of every span: some among its first, where directory and
/// headers lie, some anywhere.
fn damage(dir: &Path, prng: &mut Prng) {
    for span in writer::SPANS {
        let mut file = File::options().write(true).open(dir.join(span)).unwrap();
        let end = file.seek(SeekFrom::End(0)).unwrap();
        for turn in 0..12 {
            let reach = if turn % 3 == 0 { HEAD } else { end };
            let block = 2 + prng.below(reach / BLOCK - 2);
            let words = (0..BLOCK / 8).flat_map(|_| prng.next_u64().to_le_bytes());
            let bytes: Vec<u8> = words.collect();
            file.write_all_at(&bytes, block * BLOCK).unwrap();
        }
        // A device's own pages would hide it from direct reads.
        file.sync_all().unwrap();
    }
}
