//! Compares the table in a record's module doc with its struct.

/// A field as the struct has it: name, offset, bytes.
pub(crate) type Field = (String, usize, usize);

/// Checks that the rows below the heading of `record` in `source` are `fields`.
pub(crate) fn check(source: &str, record: &str, fields: &[Field], size: usize) {
    let heading = format!("//! ## {record}");
    let rows: Vec<Field> = source
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| line.starts_with("//!") && !line.starts_with("//! ## "))
        .filter_map(row)
        .collect();
    assert_eq!(rows, fields, "table of {record}");
    let mut end = 0;
    for (name, offset, bytes) in fields {
        assert_eq!(*offset, end, "a hole before {name}");
        end = offset + bytes;
    }
    assert_eq!(end, size, "a hole at the end of {record}");
}

fn row(line: &str) -> Option<Field> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let offset = cells.get(1)?.parse().ok()?;
    let bytes = cells.get(2)?.parse().ok()?;
    Some(((*cells.get(3)?).to_owned(), offset, bytes))
}

/// A test that a record's doc table, its struct and its size agree.
macro_rules! table_matches_struct {
    ($record:ident: $($field:ident),+ $(,)?) => {
        #[test]
        fn table_matches_struct() {
            let zero = <$record as zerocopy::FromZeros>::new_zeroed();
            let fields = [$((
                stringify!($field).to_owned(),
                std::mem::offset_of!($record, $field),
                std::mem::size_of_val(&zero.$field),
            )),+];
            crate::cache::format::table::check(
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", file!())),
                stringify!($record),
                &fields,
                size_of::<$record>(),
            );
        }
    };
}
pub(crate) use image::golden;
pub(crate) use table_matches_struct;

#[cfg(test)]
mod image {
    /// Checks that a record's bytes are those of its image in `tests/golden/`,
    /// trailing zeros left out. `UPDATE_GOLDEN=1` writes an image anew: only
    /// together with a new format version.
    pub(crate) fn golden(name: &str, bytes: &[u8]) {
        let path = format!("{}/tests/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
        let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        let text: String = bytes[..used]
            .chunks(32)
            .map(|line| line.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n")
            .collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, kept, "{name} is not what it was");
    }
}
