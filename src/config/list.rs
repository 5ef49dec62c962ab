//! A record's value that is a list: items between blanks or commas.

use super::place::Place;

/// An item and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub(super) text: &'a str,
    pub(super) place: Place,
}

/// The items of a value that begins at `place`.
pub(super) fn items<'a>(value: &'a str, place: &Place) -> Vec<Item<'a>> {
    let mut at = place.clone();
    let mut items = Vec::new();
    for piece in value.split_inclusive(separates) {
        let text = piece.trim_end_matches(separates);
        if !text.is_empty() {
            let place = at.clone();
            items.push(Item { text, place });
        }
        at = at.right(piece.chars().count());
    }
    items
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stand_between_blanks_and_commas_and_know_their_columns() {
        let place = Place {
            file: "f".into(),
            line: 2,
            column: 10,
        };
        let found: Vec<_> = items(" a,é\tb ,", &place)
            .iter()
            .map(|item| (item.text, item.place.column))
            .collect();
        assert_eq!(found, [("a", 11), ("é", 13), ("b", 15)]);
    }
}
