//! What a check of the files tells besides their errors: whether the spans of
//! storage.config can be used, and how much was read.

use super::load::{Loaded, Source};
use crate::cache::{self, SpanError, SpanOptions};
use crate::config::ConfigError;
use crate::config::place::Place;
use crate::config::storage::SpanLine;
use crate::device::{self, Identity, OpenError};
use nix::errno::Errno;
use std::collections::HashMap;
use std::fmt;

/// What a start would say of the spans, judged without changing anything, but
/// for those whose lines are among the `errors` already. After root was given up (`was_root`) rights are not judged: the next
/// start opens as root.
#[must_use]
pub fn spans(
    source: &Source,
    loaded: &Loaded,
    errors: &[ConfigError],
    was_root: bool,
) -> Vec<ConfigError> {
    let state = source.path(&*loaded.records.local_state_dir);
    let lines = &loaded.storage.spans;
    let sound = |span: &&SpanLine| !errors.iter().any(|error| is_of_line(error, &span.place));
    let mut found: Vec<_> = doubles(source, lines).collect();
    for span in lines.iter().filter(sound) {
        let options = options(source, span);
        let refusal = cache::check_span(&options).err();
        // The start makes the state directory before it opens the spans.
        let is_in_state = options.path.parent() == Some(&state);
        let excused = |error: &SpanError| {
            was_root && refused_with(error, &[Errno::EACCES, Errno::EPERM])
                || is_in_state && refused_with(error, &[Errno::ENOENT])
        };
        let refusal = refusal.filter(|error| !excused(error));
        found.extend(refusal.map(|error| span.place.error(&span.path, error.to_string())));
    }
    found
}

/// Lines that name a device which a line above them has, by another name.
fn doubles<'s>(source: &Source, lines: &'s [SpanLine]) -> impl Iterator<Item = ConfigError> + 's {
    let mut known: HashMap<Identity, &SpanLine> = HashMap::new();
    let named = lines
        .iter()
        .filter_map(|span| Some((span, device::identity(&source.path(&span.path))?)));
    let named: Vec<_> = named.collect();
    named.into_iter().filter_map(move |(span, identity)| {
        let first = *known.entry(identity).or_insert(span);
        (first.path != span.path).then(|| double(span, first))
    })
}

fn double(span: &SpanLine, first: &SpanLine) -> ConfigError {
    let Place { file, line, .. } = &first.place;
    let what = format!("the same device as {} in line {line} of {file}", first.path);
    let mut error = span.place.error(&span.path, what);
    error.help = Some("each span has one line".to_owned());
    error
}

fn is_of_line(error: &ConfigError, place: &Place) -> bool {
    error.line == place.line && error.file == place.file
}

fn options(source: &Source, span: &SpanLine) -> SpanOptions {
    SpanOptions {
        size: span.size,
        ..SpanOptions::at(source.path(&span.path))
    }
}

fn refused_with(error: &SpanError, any: &[Errno]) -> bool {
    matches!(error, SpanError::Open(OpenError::Refused { errno, .. }) if any.contains(errno))
}

/// How much was read; its text is one line for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The files, by the names that messages show.
    pub files: Vec<String>,
    /// Records that records.config sets.
    pub records: usize,
    /// Rules of remap.config.
    pub rules: usize,
    /// Spans of storage.config.
    pub spans: usize,
    /// Warnings.
    pub warnings: usize,
}

impl Checked {
    /// What was read into `loaded`, with that many warnings.
    #[must_use]
    pub fn of(loaded: &Loaded, warnings: usize) -> Self {
        Self {
            files: loaded.digests.keys().cloned().collect(),
            records: loaded.records_file.records.len(),
            rules: loaded.remap.rules.len(),
            spans: loaded.storage.spans.len(),
            warnings,
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.join(", ");
        write!(f, "{files}: no errors, {}", count(self.warnings, "warning"))?;
        let counted = [
            count(self.records, "record"),
            count(self.rules, "rule"),
            count(self.spans, "span"),
        ];
        write!(f, "; {}", counted.join(", "))
    }
}

fn count(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records::Running;
    use crate::mgmt::load::load;

    fn source(storage: &str) -> (tempfile::TempDir, Source) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("remap.config"), "map http://a/ http://b/\n").unwrap();
        std::fs::write(dir.path().join("storage.config"), storage).unwrap();
        let source = Source {
            dir: dir.path().to_owned(),
            ..Source::default()
        };
        (dir, source)
    }

    #[test]
    fn every_span_that_a_start_would_leave_out_is_named_where_it_stands() {
        let text =
            "good 64M\nvar/span 64M\nnone\n\n  /dev/nosuch 64M tier=fast\nremap.config/d/ 64M\n";
        let (_dir, source) = source(text);
        let loaded = load(&source, &Running::new()).unwrap();
        let found = spans(&source, &loaded, &[], false);
        let places: Vec<_> = found.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(3, 1), (5, 3), (6, 1)]);
        let texts: Vec<_> = found.iter().map(|e| e.what.as_str()).collect();
        assert!(texts[0].contains("SIZE"), "{texts:?}");
        assert!(texts[1].contains("no such device"), "{texts:?}");
        assert!(texts[2].contains("ENOTDIR"), "{texts:?}");
    }

    #[test]
    fn a_span_is_judged_by_what_lies_there_and_by_its_other_names() {
        let (dir, source) = source("text\nfs\nlink\nnew 64M\nsub/../new 64M\n");
        let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes);
        let mut image = vec![0; 33 << 20];
        image[1080..1082].copy_from_slice(b"\x53\xef");
        write("fs", &image).unwrap();
        write("text", b"notes").unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("fs", dir.path().join("link")).unwrap();
        let loaded = load(&source, &Running::new()).unwrap();
        let mut found = spans(&source, &loaded, &[], false);
        found.sort_by_key(|error| error.line);
        let texts: Vec<_> = found.iter().map(|e| (e.line, e.what.as_str())).collect();
        assert!(
            texts[0].0 == 1 && texts[0].1.contains("a span needs"),
            "{texts:?}"
        );
        assert!(
            texts[1].0 == 2 && texts[1].1.contains("an ext2 file system"),
            "{texts:?}"
        );
        let doubled: Vec<_> = texts
            .iter()
            .filter(|t| t.1.starts_with("the same device"))
            .collect();
        assert_eq!(
            doubled,
            [
                &(3, "the same device as fs in line 2 of storage.config"),
                &(5, "the same device as new in line 4 of storage.config"),
            ]
        );
    }

    #[test]
    fn what_was_read_is_counted_on_one_line() {
        let (_dir, source) = source("good 64M\n");
        let loaded = load(&source, &Running::new()).unwrap();
        let said = Checked::of(&loaded, 2).to_string();
        assert_eq!(
            said,
            "remap.config, storage.config: no errors, 2 warnings; 0 records, 1 rule, 1 span"
        );
    }
}
