//! The table: a struct with a field for each row, and the rows' descriptions.

use std::sync::Arc;

use super::spec::{Honour, RecordSpec, Scope, Update};
use super::syntax::Syntax;
use super::value::{ANY, FLAG, RecordType, RecordValue, SECONDS};
use super::value::{at_least, between, form, one_of, ratio};

/// A field of [`Records`], seen as a value.
trait Field {
    /// Type and nullability of such a field.
    const KIND: (RecordType, bool);
    fn load(&self) -> RecordValue;
    /// Takes a value over; false when it is of another type.
    fn store(&mut self, value: &RecordValue) -> bool;
}

impl Field for i64 {
    const KIND: (RecordType, bool) = (RecordType::Int, false);

    fn load(&self) -> RecordValue {
        RecordValue::Int(*self)
    }

    fn store(&mut self, value: &RecordValue) -> bool {
        let &RecordValue::Int(number) = value else {
            return false;
        };
        *self = number;
        true
    }
}

impl Field for f64 {
    const KIND: (RecordType, bool) = (RecordType::Float, false);

    fn load(&self) -> RecordValue {
        RecordValue::Float(*self)
    }

    fn store(&mut self, value: &RecordValue) -> bool {
        let &RecordValue::Float(number) = value else {
            return false;
        };
        *self = number;
        true
    }
}

impl Field for Arc<str> {
    const KIND: (RecordType, bool) = (RecordType::String, false);

    fn load(&self) -> RecordValue {
        RecordValue::String(Some(Self::clone(self)))
    }

    fn store(&mut self, value: &RecordValue) -> bool {
        let RecordValue::String(Some(text)) = value else {
            return false;
        };
        *self = Self::clone(text);
        true
    }
}

impl Field for Option<Arc<str>> {
    const KIND: (RecordType, bool) = (RecordType::String, true);

    fn load(&self) -> RecordValue {
        RecordValue::String(self.clone())
    }

    fn store(&mut self, value: &RecordValue) -> bool {
        let RecordValue::String(text) = value else {
            return false;
        };
        self.clone_from(text);
        true
    }
}

/// The default of a row that is unset.
const NULL: Option<&str> = None;

/// The Rust type of a row's type word.
macro_rules! field {
    (int) => { i64 };
    (float) => { f64 };
    (text) => { Arc<str> };
    (optional) => { Option<Arc<str>> };
}

/// A row's default as its field holds it.
macro_rules! initial {
    (optional $text:expr) => {
        Option::<&str>::from($text).map(Arc::from)
    };
    (text $text:expr) => {
        Arc::from($text)
    };
    ($kind:ident $number:expr) => {
        $number
    };
}

/// Makes struct, defaults and descriptions of all rows.
macro_rules! records {
    (; $(
        $(#[doc = $doc:literal])+
        $field:ident: $kind:ident = $default:expr, $name:literal, $check:expr,
        $update:ident, $scope:ident, $honour:ident;
    )*) => {
        /// Every record's value in force, by its name without `proxy.config.`,
        /// dots as underscores, in lower case.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Records {
            $( $(#[doc = $doc])+ pub $field: field!($kind), )*
        }

        impl Default for Records {
            fn default() -> Self {
                Self { $( $field: initial!($kind $default), )* }
            }
        }

        /// All records, sorted by name (byte order).
        pub static RECORDS: &[RecordSpec] = &[ $( RecordSpec {
            name: $name,
            doc: &[$($doc),+],
            kind: <field!($kind) as Field>::KIND.0,
            nullable: <field!($kind) as Field>::KIND.1,
            check: $check,
            update: Update::$update,
            scope: Scope::$scope,
            honour: Honour::$honour,
            load: |records| records.$field.load(),
            store: |records, value| records.$field.store(value),
        }, )* ];
    };
}

rows_cache! { rows_names rows_http_cache rows_http rows_http2 rows_service records ; }

/// The record of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static RecordSpec> {
    let at = RECORDS.binary_search_by(|spec| spec.name.cmp(name)).ok()?;
    RECORDS.get(at)
}

impl Records {
    /// The value of the record of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<RecordValue> {
        find(name).map(|spec| spec.value_in(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_name_and_none_is_there_twice() {
        for pair in RECORDS.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
    }

    #[test]
    fn every_default_is_within_its_own_range() {
        for spec in RECORDS {
            let value = spec.default_value();
            assert_eq!(spec.check.judge(&value), Ok(()), "{}", spec.name);
            assert_eq!(spec.kind, value.kind(), "{}", spec.name);
        }
    }

    #[test]
    fn a_stored_value_is_the_one_loaded_and_touches_no_other_record() {
        for spec in RECORDS {
            let mut records = Records::default();
            spec.store_in(&mut records, &spec.default_value()).unwrap();
            assert_eq!(records, Records::default(), "{}", spec.name);
        }
        let mut records = Records::default();
        let spec = find("proxy.config.cache.ram_cache_cutoff").unwrap();
        spec.store_in(&mut records, &RecordValue::Int(40)).unwrap();
        assert_eq!(records.cache_ram_cache_cutoff, 40);
        assert_eq!(records.get(spec.name), Some(RecordValue::Int(40)));
    }

    #[test]
    fn a_value_outside_the_range_or_of_another_type_is_refused() {
        let mut records = Records::default();
        let spec = find("proxy.config.http.cache.http").unwrap();
        let error = spec
            .store_in(&mut records, &RecordValue::Int(2))
            .unwrap_err();
        assert_eq!(error.to_string(), "2 is outside its range: 0 to 1");
        let error = spec
            .store_in(&mut records, &RecordValue::Float(1.0))
            .unwrap_err();
        assert_eq!(error.to_string(), "1 is no INT");
        assert_eq!(records, Records::default());
    }
}
