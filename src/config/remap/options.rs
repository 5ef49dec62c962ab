//! The `@name=value` options of rules and filters.

use super::lexer::Word;
use super::value::{Action, Filter, Plugin, PluginUse, Source};
use crate::config::ip_range::IpRange;
use crate::config::nearest::did_you_mean;
use crate::config::place::Place;
use crate::config::records::Override;
use crate::config::{ConfigError, Findings, methods};

/// The most `@src_ip=` of one filter, as in ATS.
const MAX_SOURCES: usize = 128;

/// The options we honour.
const NAMES: [&str; 5] = ["action", "method", "src_ip", "plugin", "pparam"];

/// Options of ATS that we refuse by name.
const UNSUPPORTED: [&str; 7] = [
    "in_ip",
    "internal",
    "strategy",
    "mapid",
    "volume",
    "src_ip_category",
    "ip_category",
];

/// The options of one statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) filter: FilterOptions,
    pub(super) plugins: Vec<PluginUse>,
    /// What the parameters of `conf_remap.so` say.
    pub(super) overrides: Vec<Override>,
    /// Where the first filter option stands, if there is one.
    pub(super) filter_place: Option<Place>,
}

/// What `@action`, `@method` and `@src_ip` say together.
#[derive(Clone, Debug, Default)]
pub(super) struct FilterOptions {
    action: Option<Action>,
    methods: Vec<String>,
    sources: Vec<Source>,
}

impl FilterOptions {
    /// What an existing filter says, for `.definefilter` to add to.
    pub(super) fn of(filter: &Filter) -> Self {
        Self {
            action: Some(filter.action),
            methods: filter.methods.clone(),
            sources: filter.sources.clone(),
        }
    }

    /// Adds later options: the last action holds, methods and sources pile up.
    pub(super) fn add(&mut self, later: Self) {
        self.action = later.action.or(self.action);
        self.methods.extend(later.methods);
        self.sources.extend(later.sources);
    }

    /// The filter. Without an `@action` it allows, as in ATS.
    pub(super) fn into_filter(self, name: Option<String>, place: Place) -> Filter {
        Filter {
            name,
            action: self.action.unwrap_or(Action::Allow),
            methods: self.methods,
            sources: self.sources,
            place,
        }
    }
}

/// Reads all options of a statement; each wrong one is an error.
pub(super) fn parse(words: &[&Word<'_>], findings: &mut Findings) -> Options {
    let mut options = Options::default();
    for word in words {
        if let Err(error) = options.take(word, &mut findings.warnings) {
            findings.errors.push(error);
        }
    }
    let useless = options.plugins.iter().filter_map(useless);
    findings.warnings.extend(useless);
    options
}

/// What of a plugin has no effect: parameters that it takes none of, or that it
/// does nothing without.
fn useless(used: &PluginUse) -> Option<ConfigError> {
    let name = used.plugin.name();
    match (used.plugin, used.params.first()) {
        (Plugin::Generator, Some(first)) => {
            let what = format!("{name} takes no @pparam: it has no effect");
            let mut warning = used.place.error(first, what);
            warning.help = Some("write options in the path: /SIZE/delay=200/NAME".to_owned());
            Some(warning)
        }
        (Plugin::ConfRemap, None) => {
            let what = format!("{name} without @pparam has no effect");
            let mut warning = used.place.error(name, what);
            warning.help = Some("write @pparam=NAME=VALUE behind it".to_owned());
            Some(warning)
        }
        (Plugin::Generator, None) | (Plugin::ConfRemap, Some(_)) => None,
    }
}

impl Options {
    fn take(
        &mut self,
        word: &Word<'_>,
        warnings: &mut Vec<ConfigError>,
    ) -> Result<(), ConfigError> {
        let (name, value) = name_and_value(word)?;
        match name {
            "plugin" => self.plugins.push(plugin_use(word, value)?),
            "pparam" => warnings.extend(self.param(word, value)?),
            _ => {
                let place = self.filter_place.take();
                self.filter_place = place.or_else(|| Some(word.place.clone()));
                let before = self.filter.action;
                self.filter.take(name, word, value)?;
                warnings.extend(self.filter.contradiction(before, word));
            }
        }
        Ok(())
    }

    /// The warnings of a parameter.
    fn param(&mut self, word: &Word<'_>, value: &str) -> Result<Vec<ConfigError>, ConfigError> {
        let Some(used) = self.plugins.last_mut() else {
            return Err(word.place.error(word.text, "@pparam before any @plugin"));
        };
        used.params.push(value.to_owned());
        if used.plugin != Plugin::ConfRemap {
            return Ok(Vec::new());
        }
        let parsed = Override::parse(value);
        let (overrides, warnings) = parsed.map_err(|e| at_value(word, value, e.to_string()))?;
        self.overrides.extend(overrides);
        let warnings = warnings.into_iter();
        Ok(warnings.map(|what| at_value(word, value, what)).collect())
    }
}

impl FilterOptions {
    fn take(&mut self, name: &str, word: &Word<'_>, value: &str) -> Result<(), ConfigError> {
        match name {
            "action" => self.action = Some(action(word, value)?),
            "method" => self.methods.push(method(word, value)?),
            _ => self.source(word, value)?,
        }
        Ok(())
    }

    /// The warning for an option after which the action is another one.
    fn contradiction(&self, before: Option<Action>, word: &Word<'_>) -> Option<ConfigError> {
        before.filter(|_| before != self.action)?;
        let what = "contradicts the @action before it; the last one holds";
        let mut warning = word.place.error(word.text, what);
        warning.help = Some("write one @action for a filter".to_owned());
        Some(warning)
    }

    fn source(&mut self, word: &Word<'_>, value: &str) -> Result<(), ConfigError> {
        if self.sources.len() >= MAX_SOURCES {
            let what = format!("more than {MAX_SOURCES} @src_ip in one filter");
            return Err(word.place.error(word.text, what));
        }
        let (text, inverted) = match value.strip_prefix('~') {
            Some(text) => (text, true),
            None => (value, false),
        };
        let range = IpRange::parse(text).map_err(|e| at_value(word, text, e.to_string()))?;
        self.sources.push(Source { range, inverted });
        Ok(())
    }
}

fn at_value(word: &Word<'_>, value: &str, what: impl Into<String>) -> ConfigError {
    let before = word.text.len() - value.len();
    let head = word.text.get(..before).unwrap_or_default();
    word.place.right(head.chars().count()).error(value, what)
}

/// The option's canonical name and its value.
fn name_and_value<'t>(word: &Word<'t>) -> Result<(&'static str, &'t str), ConfigError> {
    let option = word.text.strip_prefix('@').unwrap_or(word.text);
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let same = |known: &&&str| known.eq_ignore_ascii_case(name);
    if UNSUPPORTED.iter().any(|u| u.eq_ignore_ascii_case(name)) {
        let what = format!("option @{name} is not supported yet");
        return Err(word.place.error(word.text, what));
    }
    let Some(known) = NAMES.iter().find(same) else {
        return Err(ConfigError {
            help: did_you_mean(name, NAMES),
            ..word.place.error(word.text, "unknown option")
        });
    };
    if value.is_empty() {
        let what = format!("@{known} has no value");
        return Err(word.place.error(word.text, what));
    }
    Ok((known, value))
}

fn action(word: &Word<'_>, value: &str) -> Result<Action, ConfigError> {
    match value.to_ascii_lowercase().as_str() {
        "allow" | "1" | "on" | "enable" => Ok(Action::Allow),
        "deny" | "0" | "off" | "disable" => Ok(Action::Deny),
        other => Err(ConfigError {
            help: did_you_mean(other, ["allow", "deny", "enable", "disable"])
                .or_else(|| Some("write allow or deny".to_owned())),
            ..at_value(word, value, "unknown action")
        }),
    }
}

fn method(word: &Word<'_>, value: &str) -> Result<String, ConfigError> {
    methods::parse(value).ok_or_else(|| at_value(word, value, "no method has such a name"))
}

fn plugin_use(word: &Word<'_>, value: &str) -> Result<PluginUse, ConfigError> {
    let plugin = Plugin::ALL.iter().find(|plugin| plugin.name() == value);
    let Some(plugin) = plugin else {
        let names = Plugin::ALL.iter().map(|plugin| plugin.name());
        let list = names.clone().collect::<Vec<_>>().join(", ");
        return Err(ConfigError {
            help: did_you_mean(value, names).or_else(|| Some(format!("built in: {list}"))),
            ..at_value(word, value, "unknown plugin")
        });
    };
    Ok(PluginUse {
        plugin: *plugin,
        params: Vec::new(),
        place: word.place.clone(),
    })
}
