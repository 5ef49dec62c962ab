//! Random responses, requests and times against the model of RFC 9111.

use super::model::{Asked, Control, Expires, Record, Said, Selects};
use super::{obedient, with};
use crate::base::clock::Clock;
use crate::base::prng::Prng;
use crate::proxy::testing::{Answer, Proxy, local};
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

const SEEDS: u64 = 40;
const STEPS: usize = 60;

/// A spelling, and what it comes to.
type Row<T> = (&'static str, fn(&mut T));

/// Of two directives of one name the first counts.
fn first(slot: &mut Option<u64>, secs: u64) {
    slot.get_or_insert(secs);
}

const RESPONSE_DIRECTIVES: &[Row<Control>] = &[
    ("max-age=0", |c| first(&mut c.max_age, 0)),
    ("max-age=10", |c| first(&mut c.max_age, 10)),
    ("Max-Age=\"20\"", |c| first(&mut c.max_age, 20)),
    ("max-age=-1", |c| first(&mut c.max_age, 0)),
    ("max-age=5.5", |c| first(&mut c.max_age, 0)),
    ("max-age =9", |c| first(&mut c.max_age, 0)),
    ("max-age", |c| first(&mut c.max_age, 0)),
    ("max-age=99999999999999999999", |c| {
        first(&mut c.max_age, 1 << 31)
    }),
    ("s-maxage=8", |c| first(&mut c.s_maxage, 8)),
    ("s-maxage=x", |c| first(&mut c.s_maxage, 0)),
    ("no-store", |c| c.no_store = true),
    ("NO-CACHE", |c| c.no_cache = true),
    ("no-cache=\"x-b\"", |_| {}),
    ("private", |c| c.private = true),
    ("private=\"x-b\"", |_| {}),
    ("public", |c| c.public = true),
    ("must-revalidate", |c| c.must_revalidate = true),
    ("proxy-revalidate", |c| c.proxy_revalidate = true),
    ("stale-while-revalidate=6", |c| {
        first(&mut c.while_revalidate, 6)
    }),
    ("stale-if-error=6", |c| first(&mut c.if_error, 6)),
    ("x=\"no-store, max-age=1\"", |_| {}),
    ("immutable", |_| {}),
];

const REQUEST_DIRECTIVES: &[Row<Asked>] = &[
    ("no-cache", |a| a.no_cache = true),
    ("no-store", |a| a.no_store = true),
    ("only-if-cached", |a| a.only_if_cached = true),
    ("max-age=0", |a| first(&mut a.max_age, 0)),
    ("max-age=12", |a| first(&mut a.max_age, 12)),
    ("min-fresh=4", |a| first(&mut a.min_fresh, 4)),
    ("max-stale", |a| a.max_stale = a.max_stale.or(Some(None))),
    ("max-stale=5", |a| {
        a.max_stale = a.max_stale.or(Some(Some(5)))
    }),
    ("max-stale=x", |_| {}),
    ("x", |_| {}),
];

/// Some directives, and what all of them come to.
fn directives<T: Default>(prng: &mut Prng, rows: &[Row<T>]) -> Option<(String, T)> {
    let mut said = T::default();
    let mut words = Vec::new();
    for _ in 0..prng.below(4) {
        let index = usize::try_from(prng.below(rows.len() as u64)).unwrap();
        let (word, take) = rows[index];
        words.push(word);
        take(&mut said);
    }
    (!words.is_empty()).then(|| (words.join(", "), said))
}

fn date(secs: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs))
}

/// Field lines of a response, and what they come to.
fn response(prng: &mut Prng, varies: bool, now: u64) -> (String, Said) {
    let mut lines = String::new();
    let mut line = |name: &str, value: &str| write!(lines, "{name}: {value}\r\n").unwrap();
    let statuses = [200, 200, 200, 203, 404, 302, 299, 500];
    let mut said = Said {
        status: statuses[usize::try_from(prng.below(8)).unwrap()],
        control: None,
        age: 0,
        date: None,
        expires: None,
        modified: None,
        selects: Selects::Nothing,
    };
    if let Some((value, control)) = directives(prng, RESPONSE_DIRECTIVES) {
        line("Cache-Control", &value);
        said.control = Some(control);
    }
    let age = [
        ("", 0),
        ("", 0),
        ("3", 3),
        ("3.5", 0),
        ("-3", 0),
        ("9, 1", 9),
    ];
    let (value, secs) = age[usize::try_from(prng.below(6)).unwrap()];
    if !value.is_empty() {
        line("Age", value);
        said.age = secs;
    }
    match prng.below(6) {
        0 => line("Date", "Thu, 31 Foo 2026"),
        skew @ 1..3 => {
            // Behind our clock, and ahead of it.
            let at = if skew == 1 { now - 4 } else { now + 300 };
            line("Date", &date(at));
            said.date = Some(at);
        }
        _ => {
            line("Date", &date(now));
            said.date = Some(now);
        }
    }
    match prng.below(8) {
        0 => {
            line("Expires", "0");
            said.expires = Some(Expires::Invalid);
        }
        1 => {
            line("Expires", &date(now + 7));
            said.expires = Some(Expires::At(now + 7));
        }
        _ => {}
    }
    if prng.below(3) == 0 {
        line("Last-Modified", &date(now - 150));
        said.modified = Some(now - 150);
    }
    match if varies { prng.below(12) } else { 11 } {
        0 => {
            line("Vary", "X-Nothing, *");
            said.selects = Selects::Everything;
        }
        1..4 => {
            line("Vary", "x-a");
            said.selects = Selects::FieldA;
        }
        _ => {}
    }
    (lines, said)
}

/// Field lines of a request, and what they come to.
fn request(prng: &mut Prng) -> (String, Asked) {
    let mut lines = String::new();
    let mut asked = Asked::default();
    if prng.below(2) == 0
        && let Some((value, said)) = directives(prng, REQUEST_DIRECTIVES)
    {
        write!(lines, "Cache-Control: {value}\r\n").unwrap();
        asked = said;
    }
    if prng.below(6) == 0 {
        lines.push_str("Authorization: Basic x\r\n");
        asked.authorized = true;
    }
    if prng.below(2) == 0 {
        let value = prng.below(2);
        write!(lines, "X-A: {value}\r\n").unwrap();
        asked.field_a = Some(value);
    }
    (lines, asked)
}

/// What the origin did: which response it sent, or that it confirmed one.
#[derive(Clone, Copy, Debug)]
enum Event {
    Sent { id: usize, said: Said, is_get: bool },
    Confirmed { id: usize, said: Said },
}

struct Oracle {
    prng: Prng,
    /// Whether its responses vary.
    varies: bool,
    now: u64,
    sent: usize,
    events: Vec<Event>,
}

impl Oracle {
    /// The origin's answer to a request's head: each response has an ETag that
    /// no other has, and X-Id.
    fn answer(&mut self, head: &str) -> String {
        let (lines, said) = response(&mut self.prng, self.varies, self.now);
        let known = head.to_lowercase();
        let known = known.split("if-none-match: \"e").nth(1);
        let known = known.and_then(|rest| rest.split('"').next()?.parse().ok());
        if let Some(id) = known.filter(|_| self.prng.below(2) == 0) {
            // What selects it, and its Last-Modified, it keeps.
            let kept = |line: &&str| !line.starts_with("Vary") && !line.starts_with("Last");
            let lines: String = lines.split_inclusive("\r\n").filter(kept).collect();
            let said = Said {
                modified: None,
                ..said
            };
            self.events.push(Event::Confirmed { id, said });
            return format!("HTTP/1.1 304 Not Modified\r\nX-Id: {id}\r\n{lines}\r\n");
        }
        self.sent += 1;
        let (id, status) = (self.sent, said.status);
        let is_get = head.starts_with("GET");
        self.events.push(Event::Sent { id, said, is_get });
        let body = if head.starts_with("HEAD") { "" } else { "body" };
        format!(
            "HTTP/1.1 {status} X\r\nX-Id: {id}\r\nETag: \"e{id}\"\r\nContent-Length: 4\r\n{lines}\r\n{body}"
        )
    }
}

/// What the model knows of one URL.
#[derive(Default)]
struct Known {
    records: Vec<Record>,
    /// Whether the last of them is known to be held.
    is_certain: bool,
}

impl Known {
    /// Whether `id` may be the answer, the origin not asked: it may be reused,
    /// and no more recent one may.
    fn may_answer(&self, id: usize, asked: &Asked, now: u64) -> bool {
        let mut suitable = self.records.iter().filter(|r| r.may_answer(asked, now));
        suitable.next_back().is_some_and(|record| record.id == id)
    }

    fn may_stand_in(&self, id: usize, asked: &Asked, now: u64) -> bool {
        let mut records = self.records.iter().filter(|record| record.id == id);
        records.any(|record| record.may_stand_in(asked, now))
    }

    /// Whether nothing but what is stored may answer, as far as caching is for
    /// anything at all.
    fn must_answer(&self, asked: &Asked, now: u64) -> bool {
        let plain = !asked.no_cache && !asked.authorized && !asked.no_store;
        let plain = plain && asked.max_age.is_none() && asked.min_fresh.is_none();
        let last = self.records.last();
        plain
            && self.is_certain
            && last.is_some_and(|r| r.is_fresh(now) && r.may_answer(asked, now))
    }

    fn learn(&mut self, event: &Event, (asked, answered): (Asked, Option<usize>), now: u64) {
        match event {
            Event::Sent {
                id,
                said,
                is_get: true,
            } => {
                let stands_in = |record: &Record| record.may_stand_in(&asked, now);
                let stood_in = said.status == 500 && self.records.iter().any(stands_in);
                let record = Record {
                    id: *id,
                    said: *said,
                    asked,
                    received: now,
                };
                if record.may_be_stored() && (!stood_in || answered == Some(*id)) {
                    self.records.push(record);
                    self.is_certain = said.selects == Selects::Nothing;
                }
            }
            // What is held may have been found stale by it.
            Event::Sent { .. } => self.is_certain = false,
            Event::Confirmed { id, said } => {
                let mut records = self.records.iter_mut();
                if let Some(record) = records.find(|record| record.id == *id) {
                    record.renew(said, &asked, now);
                }
            }
        }
    }
}

struct Run {
    proxy: Proxy,
    oracle: Rc<RefCell<Oracle>>,
    known: Known,
    prng: Prng,
    hits: usize,
    refusals: usize,
}

impl Run {
    async fn start(seed: u64) -> Self {
        let oracle = Rc::new(RefCell::new(Oracle {
            prng: Prng::seeded(seed),
            varies: seed.is_multiple_of(2),
            now: 0,
            sent: 0,
            events: Vec::new(),
        }));
        let answering = Rc::clone(&oracle);
        let script = move |head: &str, _| answering.borrow_mut().answer(head);
        let (proxy, _) = with(obedient(), script).await;
        Self {
            proxy,
            oracle,
            known: Known::default(),
            prng: Prng::seeded(!seed),
            hits: 0,
            refusals: 0,
        }
    }

    async fn step(&mut self) -> Result<(), String> {
        self.proxy.world.advance(self.prng.below(6));
        let now = self.proxy.world.clock.wall().as_secs();
        self.oracle.borrow_mut().now = now;
        let (fields, asked) = request(&mut self.prng);
        let method = match self.prng.below(12) {
            0 => "POST",
            1 => "HEAD",
            _ => "GET",
        };
        let answer = self.proxy.ask(method, "/a", &fields).await;
        while !self.proxy.world.shared.fills.is_empty() {
            tokio::task::yield_now().await;
        }
        let events = std::mem::take(&mut self.oracle.borrow_mut().events);
        let judged = self.judge(method, &asked, (&answer, &events), now);
        let answered = answer.field("x-id").parse().ok();
        for event in &events {
            self.known.learn(event, (asked, answered), now);
        }
        if method == "POST" && answer.status < 400 {
            self.known.records.clear();
        }
        let id = answer.field("x-id");
        let known = &self.known.records;
        let told = |why| {
            format!("{why}: {method} {fields:?} got {id} {answer:?} after {events:?} of {known:?}")
        };
        judged.map_err(told)
    }

    fn judge(
        &mut self,
        method: &str,
        asked: &Asked,
        (answer, events): (&Answer, &[Event]),
        now: u64,
    ) -> Result<(), &'static str> {
        if method == "POST" {
            return Ok(());
        }
        if answer.status == 504 {
            self.refusals += 1;
            let right = asked.only_if_cached && events.is_empty();
            let had = self.known.must_answer(asked, now);
            return (right && !had).then_some(()).ok_or("refused");
        }
        let id: usize = answer.field("x-id").parse().unwrap();
        if self.known.must_answer(asked, now) && !events.is_empty() {
            return Err("asked for what is fresh");
        }
        let is_new = |event: &Event| match event {
            Event::Sent { id: sent, .. } | Event::Confirmed { id: sent, .. } => *sent == id,
        };
        if events.iter().any(is_new) {
            return Ok(());
        }
        let failed =
            |event: &Event| matches!(event, Event::Sent { said, .. } if said.status == 500);
        let stands_in = events.iter().any(failed) && self.known.may_stand_in(id, asked, now);
        if !stands_in && !self.known.may_answer(id, asked, now) {
            return Err("must not be served");
        }
        self.hits += 1;
        let records = self.known.records.iter();
        let age = records
            .filter(|r| r.id == id)
            .map(|r| r.age(now))
            .next_back();
        (answer.field("age").parse().ok() == age)
            .then_some(())
            .ok_or("another age")
    }
}

#[tokio::test]
async fn nothing_is_served_that_the_model_of_rfc_9111_forbids() {
    let (mut hits, mut refusals) = (0, 0);
    for seed in 0..SEEDS {
        local(async {
            let mut run = Run::start(seed).await;
            for step in 0..STEPS {
                let judged = run.step().await;
                assert!(judged.is_ok(), "seed {seed}, step {step}: {judged:?}");
            }
            hits += run.hits;
            refusals += run.refusals;
        })
        .await;
    }
    assert!(
        hits > 200 && refusals > 10,
        "{hits} hits, {refusals} refusals"
    );
}
