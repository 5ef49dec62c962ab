//! The parameters of a call, checked: none missing, none unknown.

use crate::mgmt::rpc::{Call, Fault, FaultKind};
use regex::Regex;
use serde_json::Value;

/// A call's parameters, of which only the listed names exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params<'a> {
    call: &'a Call,
}

impl<'a> Params<'a> {
    /// Checks that the call has no parameter but these.
    pub(super) fn of(call: &'a Call, names: &[&str]) -> Result<Self, Fault> {
        let unknown = call
            .params
            .keys()
            .find(|key| !names.contains(&key.as_str()));
        match unknown {
            None => Ok(Self { call }),
            Some(key) => Err(bad(format!("{} has no parameter {key:?}", call.method))),
        }
    }

    /// A string that must be there.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, Fault> {
        let value = self.call.params.get(name).and_then(Value::as_str);
        value.ok_or_else(|| bad(format!("{name} must be a string")))
    }

    /// A string; absent or null is none.
    pub(super) fn some_text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        match self.call.params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(name).map(Some),
        }
    }

    /// A list of strings; an absent one is empty.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, Fault> {
        let fault = || bad(format!("{name} must be an array of strings"));
        match self.call.params.get(name) {
            None => Ok(Vec::new()),
            Some(value) => {
                let items = value.as_array().ok_or_else(fault)?.iter();
                items.map(|item| item.as_str().ok_or_else(fault)).collect()
            }
        }
    }

    /// A list of strings with at least one.
    pub(super) fn some_texts(&self, name: &str) -> Result<Vec<&'a str>, Fault> {
        let texts = self.texts(name)?;
        if texts.is_empty() {
            return Err(bad(format!("{name} must name something")));
        }
        Ok(texts)
    }

    /// A flag; absent is false.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.call.params.get(name) {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| bad(format!("{name} must be true or false"))),
        }
    }

    /// A whole number from 0; an absent one is none.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        let value = self.call.params.get(name).filter(|value| !value.is_null());
        let number = value.map(|value| value.as_u64());
        match number {
            None => Ok(None),
            Some(None) => Err(bad(format!("{name} must be a whole number"))),
            Some(number) => Ok(number),
        }
    }

    /// A regular expression that must be there; it matches anywhere in a name.
    pub(super) fn pattern(&self) -> Result<Regex, Fault> {
        Regex::new(self.text("pattern")?).map_err(|error| bad(error.to_string()))
    }
}

fn bad(what: String) -> Fault {
    Fault::new(FaultKind::Params, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(params: Value) -> Call {
        Call::new("metric.get", params)
    }

    #[test]
    fn parameters_of_the_wrong_kind_or_name_are_refused() {
        let odd = call(json!({"names": "a", "n": 1, "flag": 1, "pattern": "("}));
        assert!(Params::of(&odd, &["names"]).is_err());
        let params = Params::of(&odd, &["names", "n", "flag", "pattern"]).unwrap();
        assert!(params.texts("names").is_err());
        assert!(params.text("n").is_err());
        assert!(params.text("absent").is_err());
        assert!(params.flag("flag").is_err());
        assert!(params.pattern().is_err());
        assert!(params.some_texts("absent").is_err());
        assert!(params.number("names").is_err());
        assert_eq!(params.number("n"), Ok(Some(1)));
        assert_eq!(params.number("absent"), Ok(None));
        assert_eq!(params.flag("absent"), Ok(false));
        assert_eq!(params.some_text("absent"), Ok(None));
        assert!(params.some_text("n").is_err());
    }
}
