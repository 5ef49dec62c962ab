//! storage.config: `PATH [SIZE] [id=NAME] [volume=N] [tier=fast|capacity]`, a
//! span a line.
//!
//! A path that ends in `/`, or names a directory, is one; whoever opens the
//! spans knows what is there, and refuses what only that can tell (a file or
//! directory without a size, two names of one device). Any fault refuses the
//! file. A word that begins with `#` begins a comment.

use std::fmt;
use std::path::Path;

use super::fault::{Fault, once, volume_number};
use super::lines::{Line, Word, decode, lines};
use super::list::items;
use super::nearest::did_you_mean;
use super::place::{Place, shortened};
use super::records::int_prefix;
use super::{ConfigError, Findings};
use crate::base::size::{MIB, show};

/// The least size of a span, in bytes.
pub const SPAN_BYTES_MIN: u64 = 32 * MIB;

/// Spans of a file: each is compared with those before.
const SPANS_MAX: usize = 1024;

/// Fast spans that ATS 4.2 takes by `proxy.config.cache.interim.storage`.
const INTERIM_MAX: usize = 8;

/// Which tier a span belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// SSD, NVMe.
    Fast,
    /// Disks.
    Capacity,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Capacity => "capacity",
        })
    }
}

/// One span, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanLine {
    /// The path as written: a device, a partition, a file or a directory. A
    /// relative one is relative to the directory of the configuration.
    pub path: String,
    /// Bytes to use; `None` is all of it.
    pub size: Option<u64>,
    /// The name that the span goes by.
    pub id: Option<String>,
    /// The volume that has the span for itself, 1 to 255.
    pub volume: Option<u8>,
    /// `None` leaves it to what the device says of itself.
    pub tier: Option<Tier>,
    /// Where the path stands.
    pub place: Place,
}

impl SpanLine {
    fn new(path: &str, place: Place) -> Self {
        Self {
            path: path.into(),
            size: None,
            id: None,
            volume: None,
            tier: None,
            place,
        }
    }
}

/// The configured spans, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageFile {
    /// In the order of the lines, those of the interim record last.
    pub spans: Vec<SpanLine>,
}

impl StorageFile {
    /// Reads a file of this name.
    #[must_use]
    pub fn parse(file: &str, bytes: &[u8]) -> (Self, Findings) {
        let mut storage = Self::default();
        let mut found = Findings::default();
        match decode(file, bytes) {
            Ok(text) => {
                let mut lines = lines(file, text).filter(|line| !line.is_blank());
                for line in lines.by_ref().take(SPANS_MAX) {
                    let span = span(&line, &mut found);
                    storage.add(span, &mut found);
                }
                found
                    .errors
                    .extend(lines.next().map(|line| too_many(&line)));
            }
            Err(error) => found.errors.push(error),
        }
        (storage, found)
    }

    /// Adds the value of `proxy.config.cache.interim.storage`, which begins at
    /// `place`: paths of fast spans.
    pub fn add_interim(&mut self, value: &str, place: &Place) -> Findings {
        let mut found = Findings::default();
        let paths = items(value, place);
        if paths.len() > INTERIM_MAX {
            let what = format!("{} fast spans, more than {INTERIM_MAX}", paths.len());
            let mut error = place.error("", what);
            error.help = Some("list them in storage.config with tier=fast".into());
            found.errors.push(error);
        }
        for path in paths {
            let mut span = SpanLine::new(path.text, path.place);
            span.tier = Some(Tier::Fast);
            self.add(span, &mut found);
        }
        found
    }

    /// Adds a span, unless it is there.
    fn add(&mut self, span: SpanLine, found: &mut Findings) {
        let same_path = |other: &&SpanLine| bare(&other.path) == bare(&span.path);
        let same_id = |other: &&SpanLine| span.id.is_some() && other.id == span.id;
        if let Some(first) = self.spans.iter().find(same_path) {
            found.errors.push(twice(&span, &span.path, first));
        } else if let Some(first) = self.spans.iter().find(same_id) {
            let id = span.id.as_deref().unwrap_or_default();
            found.errors.push(twice(&span, &format!("id={id}"), first));
        }
        self.spans.push(span);
    }
}

/// A path to compare by: `a//b/`, `a/b` and `./a/b` are one.
fn bare(path: &str) -> &Path {
    let path = Path::new(path);
    path.strip_prefix(".").unwrap_or(path)
}

fn twice(span: &SpanLine, token: &str, first: &SpanLine) -> ConfigError {
    let what = format!(
        "already in line {} of {}",
        first.place.line, first.place.file
    );
    let mut error = span.place.error(token, what);
    error.help = Some("each span has one line, and an id of its own".into());
    error
}

fn too_many(line: &Line<'_>) -> ConfigError {
    let what = format!("more than {SPANS_MAX} spans");
    line.place(1).error("", what)
}

/// Reads a line that is not blank.
fn span(line: &Line<'_>, found: &mut Findings) -> SpanLine {
    let mut words = line.words().take_while(|word| !word.text.starts_with('#'));
    let path = words.next().unwrap_or(Word {
        text: "",
        column: 1,
    });
    let mut span = SpanLine::new(path.text, line.place(path.column));
    if path.text.contains('=') && !path.text.contains('/') {
        let mut error = span
            .place
            .error(path.text, "an option where the path belongs");
        error.help = Some("a line begins with the span's path".into());
        found.errors.push(error);
    }
    for word in words {
        if let Err(fault) = option(&mut span, word.text) {
            found.errors.push(fault.of(line, &word));
        }
    }
    span
}

/// A word after the path.
fn option(span: &mut SpanLine, word: &str) -> Result<(), Fault> {
    match word.split_once('=') {
        None if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            once("a size", &mut span.size, size(word)?)
        }
        Some(("id", name)) => once("id=", &mut span.id, id(name)?),
        Some(("volume", number)) => once("volume=", &mut span.volume, volume_number(number)?),
        Some(("tier", name)) => once("tier=", &mut span.tier, tier(name)?),
        _ => Err(unknown(word)),
    }
}

fn unknown(word: &str) -> Fault {
    let key = word.split('=').next().unwrap_or(word);
    let near = did_you_mean(key, ["id", "volume", "tier"]);
    Fault {
        what: "unknown option".into(),
        help: near.or_else(|| Some("one of SIZE, id=, volume=, tier=".into())),
    }
}

fn size(text: &str) -> Result<u64, Fault> {
    let help = "give bytes, with K, M, G or T as powers of 1024: 256M";
    let bytes = match int_prefix(text) {
        Ok((bytes, "")) => bytes,
        Ok(_) => return Err(Fault::new("not a size", help)),
        Err(error) => return Err(Fault::new(error.to_string(), help)),
    };
    let bytes = u64::try_from(bytes).map_err(|_| Fault::new("a size below 0", help))?;
    if bytes < SPAN_BYTES_MIN {
        let what = format!("{} is too small for a span", show(bytes));
        return Err(Fault::new(
            what,
            &format!("at least {}", show(SPAN_BYTES_MIN)),
        ));
    }
    Ok(bytes)
}

fn id(name: &str) -> Result<String, Fault> {
    if name.is_empty() {
        return Err(Fault::new("an empty id", "name the span: id=ssd1"));
    }
    Ok(name.into())
}

fn tier(name: &str) -> Result<Tier, Fault> {
    match name {
        "fast" => Ok(Tier::Fast),
        "capacity" => Ok(Tier::Capacity),
        _ => Err(Fault {
            what: format!("unknown tier \"{}\"", shortened(name)),
            help: did_you_mean(name, ["fast", "capacity"])
                .or_else(|| Some("fast (SSD) or capacity (disk)".into())),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (StorageFile, Findings) {
        StorageFile::parse("storage.config", text.as_bytes())
    }

    fn of_tier(storage: &StorageFile, tier: Tier) -> usize {
        let spans = storage.spans.iter();
        spans.filter(|span| span.tier == Some(tier)).count()
    }

    fn errors(text: &str) -> Vec<String> {
        let (_, found) = parse(text);
        found.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_span_has_a_path_and_options_in_any_order() {
        let text = "# spans\n/dev/sdb tier=fast\n\t/dev/disk/by-id/x volume=2 1T id=d1 # big\r\nvar/cache.span 256M\n/var/cache/ats/ 67108864 tier=capacity";
        let (storage, found) = parse(text);
        assert_eq!(found, Findings::default());
        let spans: Vec<_> = storage
            .spans
            .iter()
            .map(|s| (s.path.as_str(), s.size, s.id.as_deref(), s.volume, s.tier))
            .collect();
        assert_eq!(
            spans,
            [
                ("/dev/sdb", None, None, None, Some(Tier::Fast)),
                (
                    "/dev/disk/by-id/x",
                    Some(1 << 40),
                    Some("d1"),
                    Some(2),
                    None
                ),
                ("var/cache.span", Some(256 * MIB), None, None, None),
                (
                    "/var/cache/ats/",
                    Some(64 * MIB),
                    None,
                    None,
                    Some(Tier::Capacity)
                ),
            ]
        );
        assert_eq!(storage.spans[1].place.to_string(), "storage.config:3:2");
        assert_eq!(of_tier(&storage, Tier::Fast), 1);
    }

    #[test]
    fn a_file_without_spans_is_no_fault() {
        for text in ["", "# nothing\n", "\u{feff}\r\n"] {
            assert_eq!(parse(text), (StorageFile::default(), Findings::default()));
        }
    }

    #[test]
    fn every_fault_is_named_with_its_place_and_cure() {
        assert_eq!(
            errors(
                "a 31M\nb 1k\nc -5\nd 99999999T\ne tyer=fast\nf tier=ssd\ng volume=0 volume=256\nh id=\ni 64M 64M\nid=x 64M\nj fastt"
            ),
            [
                "storage.config:1:3: 31M is too small for a span (at \"31M\"); at least 32M",
                "storage.config:2:3: not a size (at \"1k\"); give bytes, with K, M, G or T as powers of 1024: 256M",
                "storage.config:3:3: a size below 0 (at \"-5\"); give bytes, with K, M, G or T as powers of 1024: 256M",
                "storage.config:4:3: 99999999T is too big a number (at \"99999999T\"); give bytes, with K, M, G or T as powers of 1024: 256M",
                "storage.config:5:3: unknown option (at \"tyer=fast\"); did you mean tier?",
                "storage.config:6:3: unknown tier \"ssd\" (at \"tier=ssd\"); fast (SSD) or capacity (disk)",
                "storage.config:7:3: no number of a volume (at \"volume=0\"); volumes are 1 to 255",
                "storage.config:7:12: no number of a volume (at \"volume=256\"); volumes are 1 to 255",
                "storage.config:8:3: an empty id (at \"id=\"); name the span: id=ssd1",
                "storage.config:9:7: a size is given twice (at \"64M\"); give it once",
                "storage.config:10:1: an option where the path belongs (at \"id=x\"); a line begins with the span's path",
                "storage.config:11:3: unknown option (at \"fastt\"); one of SIZE, id=, volume=, tier=",
            ]
        );
    }

    #[test]
    fn the_least_size_is_taken() {
        assert_eq!(errors("a 32M\nb 33554432"), [""; 0]);
        assert_eq!(errors("a 33554431").len(), 1);
    }

    #[test]
    fn a_span_or_id_that_is_listed_twice_is_an_error() {
        for second in [
            "/dev/sdb",
            "/dev//sdb",
            "/dev/sdb/ 64M",
            "/dev/./sdb volume=1",
        ] {
            let errors = errors(&format!("/dev/sdb\n{second}"));
            assert_eq!(errors.len(), 1, "{second}");
            assert!(errors[0].contains("already in line 1 of storage.config"));
        }
        assert_eq!(errors("./a 64M\na 64M").len(), 1);
        assert_eq!(errors("/dev/sdb id=x\n/dev/sdc id=x").len(), 1);
        assert_eq!(errors("/dev/sdb\n/dev/sdc\n/dev/sdb1"), [""; 0]);
    }

    #[test]
    fn the_interim_record_of_4_2_adds_fast_spans() {
        let place = Place {
            file: "records.config".into(),
            line: 4,
            column: 50,
        };
        let (mut storage, _) = parse("/dev/sda");
        let found = storage.add_interim("/dev/sdb /dev/sdc", &place);
        assert_eq!(found, Findings::default());
        assert_eq!(of_tier(&storage, Tier::Fast), 2);
        assert_eq!(storage.spans[2].place.column, 59);
        let found = storage.add_interim("/dev/sda", &place);
        assert_eq!(
            found.errors[0].to_string(),
            "records.config:4:50: already in line 1 of storage.config (at \"/dev/sda\"); \
             each span has one line, and an id of its own"
        );
        let nine = "/1 /2 /3 /4 /5 /6 /7 /8 /9";
        let found = StorageFile::default().add_interim(nine, &place);
        assert_eq!(found.errors.len(), 1);
    }

    #[test]
    fn spans_without_end_are_an_error() {
        let lines = |count| {
            (0..count)
                .map(|n| format!("/dev/sd{n} id={n}\n"))
                .collect::<String>()
        };
        assert_eq!(errors(&lines(SPANS_MAX)), [""; 0]);
        assert_eq!(
            errors(&lines(SPANS_MAX + 2)),
            ["storage.config:1025:1: more than 1024 spans"]
        );
    }
}
