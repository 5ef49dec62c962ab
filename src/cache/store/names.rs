//! Which span an operator means: by its path, its `id=`, or its UUID.

use super::admin::SpanCommandError;
use crate::cache::options::SpanOptions;
use std::fmt;
use std::path::{Path, PathBuf};

/// A span as an operator names it.
#[derive(Clone, Debug)]
pub struct SpanName {
    /// What was written: a path, an `id=`, or 32 hexadecimal digits.
    pub text: String,
    /// The path that it would be.
    pub path: PathBuf,
}

impl SpanName {
    /// The UUID that it would be, with or without dashes.
    fn uuid(&self) -> Option<u128> {
        let digits = self.text.replace('-', "");
        let whole = digits.len() == 32;
        whole.then(|| u128::from_str_radix(&digits, 16).ok())?
    }
}

/// What a configured span is called.
#[derive(Clone, Debug)]
pub(super) struct Called {
    path: PathBuf,
    id: Option<String>,
    uuid: Option<u128>,
}

impl Called {
    /// By its configuration, and the UUID that it was found to have.
    pub(super) fn new(span: &SpanOptions, uuid: Option<u128>) -> Self {
        Self {
            path: span.path.clone(),
            id: span.id.clone(),
            uuid,
        }
    }

    fn is(&self, name: &SpanName) -> bool {
        self.path == name.path
            || self.id.as_ref() == Some(&name.text)
            || (self.uuid.is_some() && self.uuid == name.uuid())
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(id) = &self.id {
            write!(f, " id={id}")?;
        }
        match self.uuid {
            Some(uuid) => write!(f, " uuid={uuid:032x}"),
            None => Ok(()),
        }
    }
}

/// The path of the one span that is called so.
///
/// # Errors
/// `Unknown` for none and `Ambiguous` for several, with what there is.
pub(super) fn find(spans: &[Called], name: &SpanName) -> Result<PathBuf, SpanCommandError> {
    let found: Vec<&Called> = spans.iter().filter(|span| span.is(name)).collect();
    let text = name.text.clone();
    match *found {
        [span] => Ok(span.path.clone()),
        [] => Err(SpanCommandError::Unknown {
            name: text,
            known: listed(spans),
        }),
        [..] => Err(SpanCommandError::Ambiguous {
            name: text,
            known: listed(found),
        }),
    }
}

/// That no span is configured at the path.
pub(super) fn unknown(spans: &[Called], path: &Path) -> SpanCommandError {
    SpanCommandError::Unknown {
        name: path.display().to_string(),
        known: listed(spans),
    }
}

fn listed<'a>(spans: impl IntoIterator<Item = &'a Called>) -> String {
    let spans: Vec<String> = spans.into_iter().map(Called::to_string).collect();
    if spans.is_empty() {
        return "no span".to_owned();
    }
    spans.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;

    fn called(path: &str, id: Option<&str>, uuid: Option<u128>) -> Called {
        let mut options = SpanOptions::at(path);
        options.id = id.map(str::to_owned);
        Called::new(&options, uuid)
    }

    fn spans() -> [Called; 3] {
        [
            called("/c/one", Some("a"), Some(UUID)),
            called("/c/two", Some("three"), Some(5)),
            called("/c/three", None, None),
        ]
    }

    fn look_up(text: &str) -> Result<PathBuf, String> {
        let name = SpanName {
            text: text.to_owned(),
            path: PathBuf::from("/c").join(text),
        };
        find(&spans(), &name).map_err(|error| error.to_string())
    }

    #[test]
    fn a_span_is_known_by_path_id_and_uuid() {
        for name in [
            "one",
            "/c/one",
            "a",
            "0123456789abcdef0123456789abcdef",
            "01234567-89AB-CDEF-0123-456789abcdef",
        ] {
            assert_eq!(look_up(name), Ok("/c/one".into()), "{name}");
        }
    }

    #[test]
    fn what_no_span_is_called_is_answered_by_all_of_them() {
        for name in ["four", "", "0123456789abcdef", "A"] {
            let error = look_up(name).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "{name}: not a span of storage.config; there is \
                     /c/one id=a uuid=0123456789abcdef0123456789abcdef, \
                     /c/two id=three uuid=00000000000000000000000000000005, /c/three"
                )
            );
        }
        let name = SpanName {
            text: "x".into(),
            path: "/x".into(),
        };
        let alone = find(&[], &name).unwrap_err().to_string();
        assert!(alone.ends_with("there is no span"), "{alone}");
    }

    #[test]
    fn a_name_of_two_spans_is_answered_by_these() {
        let error = look_up("three").unwrap_err();
        assert_eq!(
            error,
            "three: more than one span is called so; name it by its path: \
             /c/two id=three uuid=00000000000000000000000000000005, /c/three"
        );
    }
}
