//! Fills without HTTP: who waits for whom, and who is woken by what.

use super::*;
use crate::base::clock::MonoTime;
use crate::cache::CacheKey;
use std::time::Duration;

type Table = FillTable<&'static str>;

const NOW: MonoTime = MonoTime::from_nanos(0);

fn key() -> CacheKey {
    CacheKey::of_url("http://a/")
}

fn writer(table: &Arc<Table>) -> FillWriter<&'static str> {
    let Claim::Writer(writer) = table.claim(&key(), NOW) else {
        panic!("somebody else writes");
    };
    writer
}

fn follower(table: &Arc<Table>) -> FillReader<&'static str> {
    let Claim::Follower(reader) = table.claim(&key(), NOW) else {
        panic!("nobody writes");
    };
    reader
}

fn window(bytes: u64) -> Arc<Table> {
    FillTable::new(FillLimits {
        window: bytes,
        ..FillLimits::default()
    })
}

fn failure() -> Failure {
    Failure {
        outcome: Outcome::OriginClosed,
        answer: Answer::OriginClosed,
        status: None,
        detail: "gone".into(),
    }
}

async fn rest(reader: &mut FillReader<&'static str>) -> (Vec<u8>, Next) {
    let mut all = Vec::new();
    loop {
        match reader.next().await {
            Next::Data(data) => all.extend_from_slice(&data),
            end @ (Next::End | Next::Behind(_) | Next::Failed(_)) => return (all, end),
        }
    }
}

#[tokio::test]
async fn a_follower_reads_what_came_before_and_after_it() {
    let table = window(100);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"ab")).await;
    let mut late = follower(&table);
    body.push(Bytes::from_static(b"cd")).await;
    body.done();
    assert_eq!(rest(&mut own).await, (b"abcd".to_vec(), Next::End));
    assert!(matches!(late.head().await, HeadEvent::Head(head) if *head == "head"));
    assert_eq!(rest(&mut late).await, (b"abcd".to_vec(), Next::End));
    assert!(table.is_empty());
}

#[tokio::test]
async fn a_follower_that_read_ahead_of_the_window_gets_no_byte_twice() {
    let table = window(100);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"abcd")).await;
    // It had six bytes from the store, which had them first.
    own.resume(6);
    assert_eq!(own.now(), None);
    body.push(Bytes::from_static(b"efgh")).await;
    body.done();
    assert_eq!(rest(&mut own).await, (b"gh".to_vec(), Next::End));
}

#[tokio::test]
async fn followers_on_other_threads_are_woken_by_the_head() {
    let table = window(100);
    let writer = writer(&table);
    let followers: Vec<_> = (0..4)
        .map(|_| {
            let mut reader = follower(&table);
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                runtime.unwrap().block_on(async move {
                    assert!(matches!(reader.head().await, HeadEvent::Head(_)));
                    rest(&mut reader).await
                })
            })
        })
        .collect();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"xyz")).await;
    body.done();
    for thread in followers {
        assert_eq!(thread.join().unwrap(), (b"xyz".to_vec(), Next::End));
    }
}

#[tokio::test]
async fn a_writer_that_vanishes_before_the_head_wakes_everybody() {
    let table = window(100);
    let writer = writer(&table);
    let mut reader = follower(&table);
    drop(writer);
    let HeadEvent::Failed(failure) = reader.head().await else {
        panic!("not woken by a failure");
    };
    assert!(failure.is_abandoned());
    assert!(matches!(table.claim(&key(), NOW), Claim::Writer(_)));
}

#[tokio::test]
async fn a_writer_that_vanishes_in_the_body_never_ends_it_cleanly() {
    let table = window(100);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"ab")).await;
    drop(body);
    let (data, end) = rest(&mut own).await;
    assert_eq!(data, b"ab");
    assert!(matches!(end, Next::Failed(_)));
}

#[tokio::test]
async fn a_failure_reaches_each_follower_with_its_reason() {
    let table = window(100);
    let writer = writer(&table);
    let mut reader = follower(&table);
    writer.fail(failure());
    assert!(matches!(reader.head().await, HeadEvent::Failed(f) if f == failure()));
}

#[tokio::test]
async fn uncacheable_releases_all_and_is_remembered_for_a_while() {
    let table = window(100);
    let writer = writer(&table);
    let mut readers = [follower(&table), follower(&table)];
    writer.uncacheable(NOW);
    for reader in &mut readers {
        assert!(matches!(reader.head().await, HeadEvent::Uncacheable));
    }
    assert!(matches!(table.claim(&key(), NOW), Claim::Remembered));
    let later = NOW.plus(table.limits().memory + Duration::from_secs(1));
    assert!(matches!(table.claim(&key(), later), Claim::Writer(_)));
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let table: Arc<Table> = FillTable::new(FillLimits {
        remembered: 640,
        ..FillLimits::default()
    });
    for n in 0..10_000 {
        table.remember(&CacheKey::of_url(format!("http://a/{n}")), NOW);
    }
    let held: usize = table.remembered_len();
    assert!(held <= 640, "{held}");
}

#[tokio::test]
async fn the_writer_waits_for_the_fastest_follower_only() {
    let table = window(4);
    let writer = writer(&table);
    let mut fast = writer.reader();
    let body = writer.head("head");
    let mut slow = follower(&table);
    for _ in 0..8 {
        body.push(Bytes::from_static(b"ab")).await;
        assert_eq!(fast.next().await, Next::Data(Bytes::from_static(b"ab")));
    }
    body.done();
    assert_eq!(fast.next().await, Next::End);
    assert_eq!(slow.next().await, Next::Behind(12));
}

#[tokio::test]
async fn the_writer_is_held_back_by_its_only_follower() {
    let table = window(4);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"ab")).await;
    body.push(Bytes::from_static(b"cd")).await;
    let full = tokio::time::timeout(
        Duration::from_millis(20),
        body.push(Bytes::from_static(b"ef")),
    );
    assert!(full.await.is_err(), "the window was full");
    assert_eq!(own.now(), Some(Next::Data(Bytes::from_static(b"ab"))));
    body.push(Bytes::from_static(b"ef")).await;
    body.done();
    assert_eq!(rest(&mut own).await, (b"cdef".to_vec(), Next::End));
}

#[tokio::test]
async fn a_writer_that_outruns_its_followers_holds_no_more_than_the_window() {
    let table = window(4);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    for piece in [b"ab", b"cd", b"ef", b"gh"] {
        body.outrun(&Bytes::from_static(piece));
    }
    assert_eq!(own.next().await, Next::Behind(4));
    own.resume(4);
    body.done();
    assert_eq!(rest(&mut own).await, (b"efgh".to_vec(), Next::End));
}

#[tokio::test]
async fn a_table_is_deserted_when_nobody_follows_any_of_its_fills() {
    let table = window(4);
    table.deserted().await;
    let writer = writer(&table);
    table.deserted().await;
    let own = writer.reader();
    let waits = tokio::time::timeout(Duration::from_millis(10), table.deserted());
    assert!(waits.await.is_err(), "somebody follows");
    drop(own);
    table.deserted().await;
}

#[tokio::test]
async fn one_that_fell_behind_holds_nothing_when_the_others_leave() {
    let table = window(4);
    let writer = writer(&table);
    let mut fast = writer.reader();
    let body = writer.head("head");
    let mut slow = follower(&table);
    for _ in 0..4 {
        body.push(Bytes::from_static(b"ab")).await;
        assert_eq!(fast.next().await, Next::Data(Bytes::from_static(b"ab")));
    }
    drop(fast);
    for _ in 0..4 {
        body.push(Bytes::from_static(b"ab")).await;
    }
    body.done();
    assert_eq!(slow.next().await, Next::Behind(12));
}

#[tokio::test]
async fn one_that_fell_behind_is_told_at_once_and_comes_back() {
    let table = window(4);
    let writer = writer(&table);
    let mut fast = writer.reader();
    let body = writer.head("head");
    let mut slow = follower(&table);
    for piece in [b"ab", b"cd", b"ef"] {
        body.push(Bytes::from_static(piece)).await;
        fast.next().await;
    }
    assert_eq!(slow.next().await, Next::Behind(2));
    slow.resume(2);
    assert_eq!(slow.next().await, Next::Data(Bytes::from_static(b"cd")));
    body.done();
    assert_eq!(rest(&mut slow).await, (b"ef".to_vec(), Next::End));
}

#[tokio::test]
async fn the_fetch_learns_that_the_last_of_its_clients_left() {
    let table = window(4);
    let writer = writer(&table);
    let (own, other) = (writer.reader(), follower(&table));
    let watch = writer.watch();
    drop(own);
    let waits = tokio::time::timeout(Duration::from_millis(10), watch.deserted());
    assert!(waits.await.is_err(), "somebody follows");
    drop(other);
    watch.deserted().await;
}

#[tokio::test]
async fn a_chunk_beyond_the_window_still_reaches_its_reader() {
    let table = window(4);
    let writer = writer(&table);
    let mut own = writer.reader();
    let body = writer.head("head");
    body.push(Bytes::from_static(b"0123456789")).await;
    assert_eq!(
        own.next().await,
        Next::Data(Bytes::from_static(b"0123456789"))
    );
    body.push(Bytes::from_static(b"0123456789")).await;
    body.done();
    assert_eq!(rest(&mut own).await, (b"0123456789".to_vec(), Next::End));
}

#[tokio::test]
async fn a_writer_whose_followers_left_goes_on_alone() {
    let table = window(4);
    let writer = writer(&table);
    let own = writer.reader();
    let body = writer.head("head");
    drop(own);
    for _ in 0..10 {
        body.push(Bytes::from_static(b"abcd")).await;
    }
    assert_eq!((body.followers(), body.total()), (0, 40));
    body.done();
}
