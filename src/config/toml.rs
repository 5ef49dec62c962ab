//! TOML as the tree of nodes that YAML is read into.
//!
//! Numbers, booleans and dates become text: what a value means is up to who
//! asks for it.

use super::place::Place;
use super::yaml::{Kind, Node};
use super::{ConfigError, lines};
use std::ops::Range;
use std::sync::Arc;
use toml_edit::{Document, Item, Key, TableLike, Value};

/// Reads a file; a file of comments is a mapping of nothing.
///
/// # Errors
/// The first fault: bytes that are no UTF-8 or no TOML, such as a key that
/// stands twice, or nesting without end.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Node, ConfigError> {
    let text = lines::decode(file, bytes)?;
    let text = Text {
        file: file.into(),
        text,
    };
    let document = Document::parse(text.text).map_err(|error| {
        let place = text.place(error.span());
        place.error("", format!("no TOML: {}", error.message()))
    })?;
    Ok(text.mapping(document.as_table(), text.place(Some(0..0))))
}

/// The text that places are counted in.
struct Text<'a> {
    file: Arc<str>,
    text: &'a str,
}

impl Text<'_> {
    /// Where a range of bytes begins; the file's first character for none.
    fn place(&self, span: Option<Range<usize>>) -> Place {
        let start = span.map_or(0, |span| span.start);
        let before = self.text.get(..start).unwrap_or_default();
        let last = before.rsplit('\n').next().unwrap_or_default();
        let counted = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        Place {
            file: Arc::clone(&self.file),
            line: counted(before.matches('\n').count()),
            column: counted(last.chars().count()),
        }
    }

    fn mapping(&self, table: &dyn TableLike, place: Place) -> Node {
        let pairs = table.iter().map(|(name, item)| {
            let at = self.place(table.key(name).and_then(Key::span));
            (scalar(at.clone(), name), self.item(item, at))
        });
        let kind = Kind::Mapping(pairs.collect());
        Node { place, kind }
    }

    /// The node of what a key that stands at `key` has.
    fn item(&self, item: &Item, key: Place) -> Node {
        match item {
            Item::None => scalar(key, ""),
            Item::Value(value) => self.value(value),
            Item::Table(table) => self.mapping(table, key),
            Item::ArrayOfTables(tables) => {
                let tables = tables
                    .iter()
                    .map(|table| self.mapping(table, self.place(table.span())));
                let kind = Kind::List(tables.collect());
                Node { place: key, kind }
            }
        }
    }

    fn value(&self, value: &Value) -> Node {
        let place = self.place(value.span());
        match value {
            Value::String(text) => scalar(place, text.value()),
            Value::Integer(number) => scalar(place, &number.value().to_string()),
            Value::Float(number) => scalar(place, &number.value().to_string()),
            Value::Boolean(flag) => scalar(place, &flag.value().to_string()),
            Value::Datetime(date) => scalar(place, &date.value().to_string()),
            Value::InlineTable(table) => self.mapping(table, place),
            Value::Array(values) => {
                let values = values.iter().map(|value| self.value(value));
                let kind = Kind::List(values.collect());
                Node { place, kind }
            }
        }
    }
}

fn scalar(place: Place, text: &str) -> Node {
    let kind = Kind::Scalar(text.to_owned());
    Node { place, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree in one line, each scalar with its place.
    fn shown(node: &Node) -> String {
        match &node.kind {
            Kind::Scalar(text) => {
                let Place { line, column, .. } = node.place;
                format!("{text}@{line}:{column}")
            }
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(shown).collect();
                format!("[{}]", items.join(" "))
            }
            Kind::Mapping(pairs) => {
                let pair = |(key, value): &(Node, Node)| format!("{}={}", shown(key), shown(value));
                let pairs: Vec<_> = pairs.iter().map(pair).collect();
                format!("{{{}}}", pairs.join(" "))
            }
        }
    }

    #[test]
    fn tables_lists_and_values_keep_their_order_and_their_places() {
        let text = "# comment\nz = \"é\"\n[[a]]\nb = [1, true]\n[[a]]\nc = { d = 2.5 }\n";
        let node = parse("f", text.as_bytes()).unwrap();
        let expected = "{z@2:1=é@2:5 a@3:3=[{b@4:1=[1@4:6 true@4:9]} {c@6:1={d@6:7=2.5@6:11}}]}";
        assert_eq!(shown(&node), expected);
        assert_eq!(shown(&parse("f", b"# nothing\n").unwrap()), "{}");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        let said = |bytes: &[u8]| parse("f", bytes).unwrap_err().to_string();
        assert!(said(b"a = 1\na = 2\n").starts_with("f:2:1: no TOML: "));
        assert!(said(b"a = 1\n b = \n").starts_with("f:2:"));
        assert!(said(b"a = \"\xff\"").starts_with("f:1:6: "));
        said(format!("a = {}", "[".repeat(100_000)).as_bytes());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "[-:,#\"'=.{}\\[\\] \n\ta0?~é]{0,80}") {
            if let Ok(root) = parse("f", text.as_bytes()) {
                prop_assert_eq!(root.place.line, 1);
            }
        }
    }
}
