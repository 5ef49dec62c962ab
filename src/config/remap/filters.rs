//! The filters that directives define, and which of them are active.

use super::lexer::Word;
use super::options::{FilterOptions, Options};
use super::value::Filter;
use crate::config::ConfigError;
use crate::config::nearest::did_you_mean;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The filter that exists from the start: the ip_allow file.
const IP_ALLOW: &str = "ip_allow";

/// Filters by name, and the state that the next rule takes.
#[derive(Debug, Default)]
pub(super) struct NamedFilters {
    defined: BTreeMap<String, Arc<Filter>>,
    /// Names in order of activation.
    active: Vec<String>,
    ip_allow_off: bool,
}

impl NamedFilters {
    /// Defines a filter, or adds to one of this name, as ATS does; rules that
    /// stand above keep what it was.
    pub(super) fn define(
        &mut self,
        directive: &Word<'_>,
        name: &Word<'_>,
        options: Options,
    ) -> Result<(), ConfigError> {
        refuse_built_in(name)?;
        if let Some(used) = options.plugins.first() {
            let what = "a filter has no plugins";
            return Err(used.place.error(used.plugin.name(), what));
        }
        if options.filter_place.is_none() {
            let what = "a filter needs @action, @method or @src_ip";
            return Err(name.place.error(name.text, what));
        }
        let mut all = match self.defined.get(name.text) {
            Some(earlier) => FilterOptions::of(earlier),
            None => FilterOptions::default(),
        };
        all.add(options.filter);
        let filter = all.into_filter(Some(name.text.to_owned()), directive.place.clone());
        self.defined.insert(name.text.to_owned(), Arc::new(filter));
        Ok(())
    }

    /// Forgets a filter; rules below no longer take it.
    pub(super) fn delete(&mut self, name: &Word<'_>) -> Result<(), ConfigError> {
        refuse_built_in(name)?;
        if self.defined.remove(name.text).is_none() {
            return Err(self.undefined(name));
        }
        self.active.retain(|active| active != name.text);
        Ok(())
    }

    /// Rules below take the filter.
    pub(super) fn activate(&mut self, name: &Word<'_>) -> Result<(), ConfigError> {
        self.switch(name, true)
    }

    /// Rules below no longer take the filter.
    pub(super) fn deactivate(&mut self, name: &Word<'_>) -> Result<(), ConfigError> {
        self.switch(name, false)
    }

    fn switch(&mut self, name: &Word<'_>, on: bool) -> Result<(), ConfigError> {
        if name.text == IP_ALLOW {
            self.ip_allow_off = !on;
            return Ok(());
        }
        if !self.defined.contains_key(name.text) {
            return Err(self.undefined(name));
        }
        self.active.retain(|active| active != name.text);
        if on {
            self.active.push(name.text.to_owned());
        }
        Ok(())
    }

    fn undefined(&self, name: &Word<'_>) -> ConfigError {
        let known = self.defined.keys().map(String::as_str);
        ConfigError {
            help: did_you_mean(name.text, known.chain([IP_ALLOW])),
            ..name
                .place
                .error(name.text, "no filter of this name is defined")
        }
    }

    /// The filters of a rule with these options: the active ones, its own.
    pub(super) fn for_rule(&self, options: &Options) -> Vec<Arc<Filter>> {
        let active = self.active.iter().filter_map(|n| self.defined.get(n));
        let own = options.filter_place.as_ref().map(|place| {
            let own = options.filter.clone();
            Arc::new(own.into_filter(None, place.clone()))
        });
        active.cloned().chain(own).collect()
    }

    /// Whether the ip_allow file holds for the next rule.
    pub(super) fn ip_allow(&self) -> bool {
        !self.ip_allow_off
    }
}

fn refuse_built_in(name: &Word<'_>) -> Result<(), ConfigError> {
    if name.text == IP_ALLOW {
        let what = "ip_allow is built in; it can only be activated and deactivated";
        return Err(name.place.error(name.text, what));
    }
    Ok(())
}
