//! The façade over file spans: leaving, returning, clearing.

use super::machine::copy_files;
use super::*;
use crate::cache::check::{SpanCheck, SpanFound, check_spans};
use crate::cache::inspect::{SpanOutcome, SpanState};
use crate::cache::options::SpanOptions;
use crate::cache::plan::{Holding, plan_storage};
use crate::cache::tier::SpanTier;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn spans(dir: &Path) -> [PathBuf; 2] {
    [dir.join("one"), dir.join("two")]
}

fn options(dir: &Path, clear: bool) -> CacheOptions {
    let span = |path: PathBuf| SpanOptions {
        size: Some(40 << 20),
        tier: Some(SpanTier::Capacity),
        ..SpanOptions::at(path)
    };
    CacheOptions {
        spans: spans(dir).map(span).to_vec(),
        state_dir: Some(dir.to_owned()),
        ram: RamOptions {
            cutoff: 1,
            ..RamOptions::default()
        },
        threads_per_disk: 2,
        clear,
        ..CacheOptions::default()
    }
}

async fn start(dir: &Path, clear: bool) -> (Arc<Cache>, Vec<SpanReport>) {
    let options = options(dir, clear);
    let clock = Arc::new(ManualClock::default());
    let (cache, reports) = Cache::open(options, clock, &Registry::new());
    cache.loaded().await;
    (cache, reports)
}

/// Stops the cache and waits until its files are free.
async fn stop(cache: Arc<Cache>, dir: &Path) {
    cache.shutdown().await;
    drop(Arc::try_unwrap(cache).unwrap());
    for path in spans(dir) {
        std::fs::File::open(path).unwrap().lock().unwrap();
    }
}

#[tokio::test]
async fn a_span_that_is_taken_out_of_use_lets_its_device_go() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = spans(dir.path());
    let (cache, _) = start(dir.path(), false).await;
    let is_free = |path: &Path| std::fs::File::open(path).unwrap().try_lock().is_ok();
    assert!(!is_free(&one));
    cache.offline(&one).await.unwrap();
    let (send, freed) = std::sync::mpsc::channel();
    let path = one.clone();
    std::thread::spawn(move || {
        std::fs::File::open(path).unwrap().lock().unwrap();
        send.send(())
    });
    let freed = freed.recv_timeout(Duration::from_secs(30));
    freed.expect("its file is locked by nobody any more");
    assert!(!is_free(&other));
    while cache.online(&one).is_err() {
        // The thread above lets its lock go.
        std::thread::yield_now();
    }
    assert!(!is_free(&one));
    stop(cache, dir.path()).await;
}

#[tokio::test]
async fn a_span_that_was_away_while_the_site_changed_is_never_believed_alone() {
    let dir = tempfile::tempdir().unwrap();
    let [one, _] = spans(dir.path());
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        store(&cache, &key(n), b"old").unwrap();
    }
    cache.offline(&one).await.unwrap();
    assert!(matches!(
        cache.status().spans[0].state,
        SpanState::Offline { .. }
    ));
    for n in 0..30 {
        store(&cache, &key(n), b"new").unwrap();
    }
    cache.remove(&key(40));
    loop {
        // Its file is free as soon as the last of its threads has ended.
        match cache.online(&one) {
            Ok(_) => break,
            Err(error) => assert!(error.to_string().contains("in use"), "{error}"),
        }
    }
    cache.loaded().await;
    let mut suspects = 0;
    for n in 0..60 {
        let Ok(hit) = cache.read(&key(n)).await else {
            continue;
        };
        suspects += usize::from(hit.suspect);
        if n < 30 {
            assert_eq!(body(&hit), b"new", "{n}");
        }
        assert!(n != 40 || hit.suspect);
    }
    assert!(suspects > 5, "{suspects}");
    stop(cache, dir.path()).await;
}

#[tokio::test]
async fn files_keep_their_objects_over_a_stop_and_lose_them_by_clear() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        store(&cache, &key(n), b"kept").unwrap();
    }
    stop(cache, dir.path()).await;
    let (cache, reports) = start(dir.path(), false).await;
    for report in &reports {
        let kept = SpanOutcome::Used {
            tier: SpanTier::Capacity,
            bytes: 40 << 20,
            formatted: false,
        };
        assert_eq!(report.outcome, kept);
    }
    for n in 0..60 {
        assert_eq!(body(&cache.read(&key(n)).await.unwrap()), b"kept");
    }
    stop(cache, dir.path()).await;
    let (cache, _) = start(dir.path(), true).await;
    for n in 0..60 {
        assert_eq!(cache.read(&key(n)).await.unwrap_err(), Miss::Absent);
    }
    stop(cache, dir.path()).await;
}

#[tokio::test]
async fn a_span_that_tells_of_lost_runs_kills_what_the_others_hold_even_if_it_comes_late() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = spans(dir.path());
    let [aside, older] = ["aside", "older"].map(|name| dir.path().join(name));
    let state = dir.path().join("cache-state");
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        store(&cache, &key(n), b"old").unwrap();
    }
    stop(cache, dir.path()).await;
    std::fs::create_dir(&older).unwrap();
    copy_files(&state, &older);
    // A run of the first span alone, which the state will not know.
    let swap = |taken: &Path, back: Option<&Path>| {
        if let Some(back) = back {
            std::fs::rename(&aside, back).unwrap();
        }
        std::fs::rename(taken, &aside).unwrap();
        // What is not ours is refused.
        std::fs::write(taken, vec![b'x'; 2 << 20]).unwrap();
    };
    swap(&two, None);
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        cache.purge(&key(n)).await.unwrap();
    }
    stop(cache, dir.path()).await;
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&older, &state).unwrap();
    swap(&one, Some(&two));
    let (cache, _) = start(dir.path(), false).await;
    let mut kept = 0;
    for n in 0..60 {
        kept += usize::from(cache.read(&key(n)).await.is_ok());
    }
    assert!(kept > 10, "nobody there tells of that run: {kept}");
    std::fs::rename(&aside, &one).unwrap();
    cache.online(&one).unwrap();
    cache.loaded().await;
    for n in 0..60 {
        assert!(cache.read(&key(n)).await.is_err(), "{n}");
    }
    store(&cache, &key(1), b"new").unwrap();
    stop(cache, dir.path()).await;
    let (cache, _) = start(dir.path(), false).await;
    assert_eq!(body(&cache.read(&key(1)).await.unwrap()), b"new");
    stop(cache, dir.path()).await;
}

fn kept(options: &CacheOptions) -> Holding {
    plan_storage(options).iter().map(|s| s.sums().0).sum()
}

#[tokio::test]
async fn a_plan_promises_nothing_of_any_span_once_one_tells_of_a_lost_run() {
    let dir = tempfile::tempdir().unwrap();
    let [_, two] = spans(dir.path());
    let [aside, older] = ["aside", "older"].map(|name| dir.path().join(name));
    let state = dir.path().join("cache-state");
    let options = options(dir.path(), false);
    let (cache, _) = start(dir.path(), false).await;
    (0..60).for_each(|n| store(&cache, &key(n), b"kept").unwrap());
    stop(cache, dir.path()).await;
    std::fs::create_dir(&older).unwrap();
    copy_files(&state, &older);
    // A run that the second span missed.
    std::fs::rename(&two, &aside).unwrap();
    std::fs::write(&two, vec![b'x'; 2 << 20]).unwrap();
    let (cache, _) = start(dir.path(), false).await;
    stop(cache, dir.path()).await;
    std::fs::rename(&aside, &two).unwrap();
    assert_eq!(
        (kept(&options).objects, kept(&options).is_suspect),
        (60, true)
    );
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&older, &state).unwrap();
    assert_eq!(kept(&options).objects, 0);
    assert!(check_spans(&options).all(|check| !check.is_sound()));
}

#[tokio::test]
async fn a_plan_refuses_the_copy_of_a_span_as_a_start_does() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = spans(dir.path());
    let (cache, _) = start(dir.path(), false).await;
    stop(cache, dir.path()).await;
    std::fs::copy(one, two).unwrap();
    let plans = plan_storage(&options(dir.path(), false));
    let (cache, reports) = start(dir.path(), false).await;
    stop(cache, dir.path()).await;
    assert_eq!(plans[0].refused, None);
    let SpanOutcome::Refused(why) = &reports[1].outcome else {
        panic!("the copy was taken");
    };
    assert_eq!(plans[1].refused.as_ref(), Some(why));
}

#[tokio::test]
async fn a_plan_promises_after_revalidation_only_what_is_kept_offline() {
    let dir = tempfile::tempdir().unwrap();
    let [one, _] = spans(dir.path());
    let (cache, _) = start(dir.path(), false).await;
    (0..60).for_each(|n| store(&cache, &key(n), b"kept").unwrap());
    cache.offline(&one).await.unwrap();
    stop(cache, dir.path()).await;
    let plans = plan_storage(&options(dir.path(), false));
    let suspect: Vec<bool> = plans.iter().map(|s| s.sums().0.is_suspect).collect();
    assert_eq!(suspect, [true, false]);
}

#[tokio::test]
async fn a_plan_and_a_check_promise_what_a_start_with_this_state_would_use() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        store(&cache, &key(n), b"kept").unwrap();
    }
    stop(cache, dir.path()).await;
    let options = options(dir.path(), false);
    let kept = || kept(&options);
    let is_sound = || check_spans(&options).all(|check| check.is_sound());
    let all = kept();
    assert_eq!((all.objects, all.is_suspect, is_sound()), (60, false, true));
    // A start that the spans missed.
    let missed = State::open(Some(dir.path()), 0).unwrap();
    missed.note_present(std::iter::empty()).unwrap();
    drop(missed);
    let all = kept();
    assert_eq!((all.objects, all.is_suspect), (60, true));
    let told: Vec<String> = check_spans(&options)
        .map(|c: SpanCheck| c.to_string())
        .collect();
    assert!(told[0].contains("after revalidation only"), "{told:?}");
    std::fs::remove_dir_all(dir.path().join("cache-state")).unwrap();
    assert_eq!((kept().objects, is_sound()), (0, false));
}

#[tokio::test]
async fn a_plan_and_a_check_keep_nothing_that_was_purged_and_not_yet_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, _) = start(dir.path(), false).await;
    for n in 0..60 {
        store(&cache, &key(n), b"kept").unwrap();
    }
    stop(cache, dir.path()).await;
    let options = options(dir.path(), false);
    let before = kept(&options);
    // A purge that a kill left: the state knows of it, no span does.
    let state = State::open(Some(dir.path()), 0).unwrap();
    for n in 0..5 {
        let epoch = state.epoch + 1;
        state.begin_purges(&[(key(n).hash(), epoch)]).unwrap();
    }
    // One that is older than what it names, and one of nothing.
    state.begin_purges(&[(key(6).hash(), 0)]).unwrap();
    state
        .begin_purges(&[(key(600).hash(), u64::MAX / 4)])
        .unwrap();
    drop(state);
    let after = kept(&options);
    assert_eq!((before.objects, after.objects), (60, 55));
    assert_eq!(before.bytes - after.bytes, before.bytes / 60 * 5);
    let told: Vec<SpanCheck> = check_spans(&options).collect();
    let (mut whole, mut purged) = (0, 0);
    for check in &told {
        let SpanFound::Span { stripes, .. } = &check.found else {
            panic!("{check}");
        };
        whole += stripes.iter().map(|s| s.fragments.whole).sum::<u64>();
        purged += stripes.iter().map(|s| s.fragments.purged).sum::<u64>();
    }
    assert_eq!((whole, purged), (55, 5), "{told:?}");
}
