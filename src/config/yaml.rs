//! YAML as a tree of nodes that know their place.
//!
//! Only what configuration files need: one document of scalars, lists and
//! mappings. Scalars stay text. Aliases are refused and nesting is bounded,
//! so that no file grows or deepens without end.

use super::place::Place;
use super::{ConfigError, lines};
use saphyr_parser::{Event, Marker, Parser};
use std::sync::Arc;

/// How deep lists and mappings may nest.
const MAX_DEPTH: usize = 16;

/// A node and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its first character.
    pub place: Place,
    /// What it holds.
    pub kind: Kind,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text; empty for a missing value.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their values, in file order.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a scalar.
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            Kind::List(_) | Kind::Mapping(_) => None,
        }
    }

    /// The items of a list; a scalar counts as a list of one.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            Kind::Scalar(_) | Kind::Mapping(_) => std::slice::from_ref(self),
        }
    }

    /// A fault of this node; its text is shown if it is a scalar.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> ConfigError {
        self.place.error(self.scalar().unwrap_or_default(), what)
    }
}

/// Reads the first document of a file; none if there is nothing in it.
///
/// # Errors
/// The first fault: bytes that are no UTF-8 or no YAML, an alias, nesting
/// deeper than 16, a second document.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Option<Node>, ConfigError> {
    let text = lines::decode(file, bytes)?;
    let mut builder = Builder {
        file: file.into(),
        open: Vec::new(),
        root: None,
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let place = builder.place(*error.marker());
            place.error("", format!("no YAML: {}", error.info()))
        })?;
        let place = builder.place(span.start);
        builder.take(event, place)?;
    }
    Ok(builder.root)
}

struct Builder {
    file: Arc<str>,
    /// Lists and mappings that are not closed, outermost first.
    open: Vec<Open>,
    root: Option<Node>,
}

/// A list, or a mapping whose keys and values alternate.
struct Open {
    place: Place,
    is_mapping: bool,
    nodes: Vec<Node>,
}

impl Open {
    fn closed(self) -> Node {
        let kind = if self.is_mapping {
            let mut nodes = self.nodes.into_iter();
            let pairs = std::iter::from_fn(|| Some((nodes.next()?, nodes.next()?)));
            Kind::Mapping(pairs.collect())
        } else {
            Kind::List(self.nodes)
        };
        Node {
            place: self.place,
            kind,
        }
    }
}

impl Builder {
    fn place(&self, marker: Marker) -> Place {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place {
            file: Arc::clone(&self.file),
            line: number(marker.line().max(1)),
            column: number(marker.col().saturating_add(1)),
        }
    }

    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), ConfigError> {
        match event {
            Event::Scalar(text, ..) => {
                let kind = Kind::Scalar(text.into_owned());
                self.put(Node { place, kind })
            }
            Event::SequenceStart(..) => self.begin(place, false),
            Event::MappingStart(..) => self.begin(place, true),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.put(open.closed()),
                None => Ok(()),
            },
            Event::Alias(_) => Err(place.error("", "aliases are not read here")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, is_mapping: bool) -> Result<(), ConfigError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(place.error("", format!("nested deeper than {MAX_DEPTH}")));
        }
        self.open.push(Open {
            place,
            is_mapping,
            nodes: Vec::new(),
        });
        Ok(())
    }

    fn put(&mut self, node: Node) -> Result<(), ConfigError> {
        match self.open.last_mut() {
            Some(open) => open.nodes.push(node),
            None if self.root.is_some() => {
                return Err(node.error("a second document; a file holds one"));
            }
            None => self.root = Some(node),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        parse("f", text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn nodes_keep_their_text_and_place() {
        let root = parse("f", b"a:\n  - 0/0\n  - 'x y'\nb: 010\n")
            .unwrap()
            .unwrap();
        let Kind::Mapping(pairs) = root.kind else {
            panic!("{root:?} is a mapping");
        };
        let items: Vec<_> = pairs[0]
            .1
            .items()
            .iter()
            .map(|n| (n.scalar(), n.place.to_string()))
            .collect();
        assert_eq!(
            items,
            [(Some("0/0"), "f:2:5".into()), (Some("x y"), "f:3:5".into())]
        );
        assert_eq!(pairs[1].1.scalar(), Some("010"));
        assert_eq!(pairs[1].1.items().len(), 1);
    }

    #[test]
    fn a_file_of_comments_holds_nothing() {
        assert_eq!(parse("f", b"# none\n").unwrap(), None);
        assert_eq!(parse("f", b"").unwrap(), None);
    }

    #[test]
    fn what_is_refused_says_where() {
        assert!(error("a: [1, 2\nb: 3").starts_with("f:"));
        assert!(error("a: &x 1\nb: *x").contains("f:2:4: aliases"));
        assert!(error("a\n---\nb").contains("f:3:1: a second document"));
        assert!(error(&"[".repeat(17)).contains("f:1:17: nested deeper than 16"));
        assert!(parse("f", "[".repeat(100_000).as_bytes()).is_err());
        assert!(parse("f", b"a: \xff").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "[-:,#&*!|>'\"%@`{}\\[\\] \n\ta0?~é]{0,80}") {
            if let Ok(Some(root)) = parse("f", text.as_bytes()) {
                prop_assert!(root.place.line >= 1);
            }
        }
    }
}
