//! What a start would say of a span, by reading what lies there: nothing is
//! opened for writing, made or locked.

use super::{Judgement, Place, SpanError};
use crate::cache::options::SpanOptions;
use crate::device::{self, OpenRequest, OpenedDevice};

/// Judges a span as [`super::open`] would, for the user in force.
///
/// # Errors
/// Those of [`super::open`], each with its cure; but only the opening can tell
/// whether a device is in use, or fails when it is written.
pub(crate) fn check(options: &SpanOptions) -> Result<(), SpanError> {
    let request = OpenRequest {
        size: options.size,
        ..OpenRequest::at(&options.path)
    };
    device::check(&request)?;
    match device::open_to_read(&request)? {
        Some(opened) => content(&opened, options),
        None => Ok(()),
    }
}

fn content(opened: &OpenedDevice, options: &SpanOptions) -> Result<(), SpanError> {
    let place = Place {
        device: &opened.device,
        path: &options.path,
        cap: options.size,
    };
    match place.judge()? {
        Judgement::Ours(content) => place.checked(content).map(drop),
        Judgement::Blank => place.make(false).map(drop),
        other @ (Judgement::Foreign(_) | Judgement::OtherVersion(_) | Judgement::Unknown) => {
            Err(place.refusal(&other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Intent, open};
    use super::*;
    use std::path::Path;

    /// What a start says, and what is judged beforehand; the file must stay as
    /// it is.
    fn both(path: &Path) -> (Result<(), String>, Result<(), String>) {
        let options = SpanOptions::at(path);
        let before = std::fs::read(path).unwrap();
        let judged = check(&options).map_err(|error| error.to_string());
        assert!(std::fs::read(path).unwrap() == before, "nothing is written");
        let opened = device::open(&OpenRequest::at(path)).unwrap();
        let started = open(&opened, &options, Intent::Use);
        (judged, started.map(drop).map_err(|error| error.to_string()))
    }

    #[test]
    fn what_a_start_would_leave_out_is_refused_in_the_same_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        for (offset, magic, len) in [
            (1080, &b"\x53\xef"[..], 33 << 20),
            (0, b"XFSB", 33 << 20),
            (0, b"a text", 33 << 20),
            ((33 << 20) - 3, b"end", (33 << 20) + 5),
            (0, b"a text", 4096),
            (0, b"", (32 << 20) - 4096),
        ] {
            let mut bytes = vec![0; len];
            bytes[offset..offset + magic.len()].copy_from_slice(magic);
            std::fs::write(&path, &bytes).unwrap();
            let (judged, started) = both(&path);
            assert!(judged.is_err(), "{len} bytes, {magic:?}");
            assert_eq!(judged, started);
        }
    }

    #[test]
    fn a_blank_file_and_a_span_of_ours_in_use_or_not_are_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(33 << 20)
            .unwrap();
        assert_eq!(both(&path), (Ok(()), Ok(())));
        assert_eq!(both(&path), (Ok(()), Ok(())));
        let _in_use = device::open(&OpenRequest::at(&path)).unwrap();
        check(&SpanOptions::at(&path)).unwrap();
    }

    #[test]
    fn a_span_that_was_cut_is_refused_with_both_sizes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(40 << 20).unwrap();
        assert_eq!(both(&path), (Ok(()), Ok(())));
        file.set_len(33 << 20).unwrap();
        let (judged, started) = both(&path);
        assert!(judged.as_ref().is_err_and(|e| e.contains("is a span of")));
        assert_eq!(judged, started);
    }
}
