//! What a check of the files tells besides their errors: whether the paths of
//! storage.config can be used, and how much was read.

use super::load::{Loaded, Source};
use crate::config::ConfigError;
use crate::config::place::Place;
use crate::config::storage::SpanLine;
use crate::device::{self, OpenError, OpenRequest};
use nix::errno::Errno;
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
    let spans = loaded.storage.spans.iter();
    let sound = spans.filter(|span| !errors.iter().any(|error| is_of_line(error, &span.place)));
    let refusals = sound.filter_map(|span| {
        let request = request(source, span);
        let error = device::check(&request).err()?;
        let by_root = was_root && refused_with(&error, &[Errno::EACCES, Errno::EPERM]);
        // The start makes the state directory before it opens the spans.
        let made = request.path.parent() == Some(&state) && refused_with(&error, &[Errno::ENOENT]);
        (!by_root && !made).then(|| span.place.error(&span.path, error.to_string()))
    });
    refusals.collect()
}

fn is_of_line(error: &ConfigError, place: &Place) -> bool {
    error.line == place.line && error.file == place.file
}

fn request(source: &Source, span: &SpanLine) -> OpenRequest {
    OpenRequest {
        size: span.size,
        ..OpenRequest::at(&source.path(&span.path))
    }
}

fn refused_with(error: &OpenError, any: &[Errno]) -> bool {
    matches!(error, OpenError::Refused { errno, .. } if any.contains(errno))
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
