//! Requests in the shapes that recorded traces have, made from a seed.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes and ranks are drawn as floats, far below 2^53"
)]

use strata::base::prng::Prng;

/// Bytes of an object where all are alike.
const ALIKE_BYTES: u64 = 15_000;
/// Bounds of a CDN's objects, in bytes.
const CDN_BYTES: (f64, f64) = (200.0, 64.0 * 1024.0 * 1024.0);

/// A trace: which object each request asks for, and how large each one is.
pub(crate) struct Trace {
    /// What the rows call it.
    pub(crate) name: &'static str,
    /// Objects, by index into `bytes`.
    pub(crate) requests: Vec<u32>,
    /// Bytes of each object.
    pub(crate) bytes: Vec<u64>,
}

impl Trace {
    /// Bytes of all objects that are asked for at least once.
    pub(crate) fn footprint(&self) -> u64 {
        let mut asked = vec![false; self.bytes.len()];
        for object in &self.requests {
            asked[*object as usize] = true;
        }
        let asked = self.bytes.iter().zip(asked).filter(|(_, asked)| *asked);
        asked.map(|(bytes, _)| bytes).sum()
    }

    /// Whether all objects have one size.
    pub(crate) fn is_uniform(&self) -> bool {
        self.bytes.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// How large a trace is.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// Objects of the catalogue.
    pub(crate) objects: u32,
    /// Requests for them.
    pub(crate) requests: u32,
}

/// Ranks drawn with the weight `1 / rank^alpha`, the first rank being 0.
struct Zipf {
    /// The share of the ranks up to each one.
    upto: Vec<f64>,
}

impl Zipf {
    fn new(ranks: u32, alpha: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=ranks).map(|rank| f64::from(rank).powf(-alpha));
        let mut upto: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        for share in &mut upto {
            *share /= sum;
        }
        Self { upto }
    }

    fn draw(&self, prng: &mut Prng) -> u32 {
        let share = prng.fraction();
        let rank = self.upto.partition_point(|upto| *upto <= share);
        rank.min(self.upto.len() - 1) as u32
    }
}

/// A trace of objects that are all alike.
pub(crate) fn alike(name: &'static str, objects: u32, requests: Vec<u32>) -> Trace {
    Trace {
        name,
        requests,
        bytes: vec![ALIKE_BYTES; objects as usize],
    }
}

/// Independent requests, skewed.
pub(crate) fn zipf(name: &'static str, alpha: f64, scale: Scale) -> Trace {
    let mut prng = Prng::seeded(1);
    let zipf = Zipf::new(scale.objects, alpha);
    let requests = (0..scale.requests).map(|_| zipf.draw(&mut prng));
    alike(name, scale.objects, requests.collect())
}

/// Readers as in Zipf 0.9, and a crawler that walks the catalogue in order:
/// three requests of ten, in bursts of a fiftieth of the catalogue.
pub(crate) fn scan(scale: Scale) -> Trace {
    let mut prng = Prng::seeded(2);
    let zipf = Zipf::new(scale.objects, 0.9);
    let burst = scale.objects / 50;
    let (mut at, mut requests) = (0, Vec::new());
    while requests.len() < scale.requests as usize {
        requests.extend((0..burst * 7 / 3).map(|_| zipf.draw(&mut prng)));
        requests.extend((0..burst).map(|n| (at + n) % scale.objects));
        at += burst;
    }
    alike("scan", scale.objects, requests)
}

/// Zipf 0.9 whose hottest hundredth is other objects at each twentieth of the
/// trace.
pub(crate) fn shifting(scale: Scale) -> Trace {
    let mut prng = Prng::seeded(3);
    let zipf = Zipf::new(scale.objects, 0.9);
    let (phase, step) = (scale.requests / 20, scale.objects / 100);
    let requests = (0..scale.requests)
        .map(|n| (zipf.draw(&mut prng) + n / phase * step) % scale.objects)
        .collect();
    alike("shifting", scale.objects, requests)
}

/// News: new objects all the time, and the requests go to the latest, by Zipf
/// 0.9 over their age.
pub(crate) fn news(scale: Scale) -> Trace {
    let mut prng = Prng::seeded(5);
    let zipf = Zipf::new(scale.objects, 0.9);
    let each = scale.requests / scale.objects;
    let requests = (0..scale.requests)
        .map(|n| (n / each + scale.objects - zipf.draw(&mut prng)) % scale.objects)
        .collect();
    alike("news", scale.objects, requests)
}

/// What a CDN's edge sees: Zipf 0.9, sizes over five decades, each sixth
/// request for an object that nobody asks for again, and a catalogue that is
/// renewed by a thousandth at each thousandth of the trace.
pub(crate) fn cdn(scale: Scale) -> Trace {
    let mut prng = Prng::seeded(4);
    let zipf = Zipf::new(scale.objects, 0.9);
    let mut bytes: Vec<u64> = (0..scale.objects).map(|_| cdn_bytes(&mut prng)).collect();
    let mut catalogue: Vec<u32> = (0..scale.objects).collect();
    let mut fresh = |prng: &mut Prng| {
        bytes.push(cdn_bytes(prng));
        bytes.len() as u32 - 1
    };
    let mut requests = Vec::new();
    for n in 0..scale.requests {
        if n % (scale.requests / 1000) == 0 {
            for _ in 0..scale.objects / 1000 {
                let rank = prng.below(scale.objects.into()) as usize;
                catalogue[rank] = fresh(&mut prng);
            }
        }
        requests.push(match n % 6 {
            0 => fresh(&mut prng),
            _ => catalogue[zipf.draw(&mut prng) as usize],
        });
    }
    Trace {
        name: "cdn",
        requests,
        bytes,
    }
}

/// Log-normal about a median of 12 KB, which gives a mean near 60 KB.
fn cdn_bytes(prng: &mut Prng) -> u64 {
    let normal: f64 = (0..12).map(|_| prng.fraction()).sum::<f64>() - 6.0;
    let (least, most) = CDN_BYTES;
    (12_000.0 * (1.8 * normal).exp()).clamp(least, most) as u64
}
