//! hosting.config: `hostname=HOST volume=N[,N]` or `domain=DOMAIN volume=N[,N]`,
//! a rule a line; `hostname=*` is for hosts without one.
//!
//! Hosts are those of the cached URL, after the rules of remap.config. Any
//! fault refuses the file.

use super::fault::{Fault, once, volume_number};
use super::lines::{Line, Word, decode, lines};
use super::nearest::did_you_mean;
use super::place::Place;
use super::{ConfigError, Findings};
use std::collections::{BTreeSet, HashMap};

/// Which hosts a rule is for; names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hosts {
    /// Those that have no other rule.
    Any,
    /// This one.
    Name(String),
    /// This one, and all whose name ends in a dot and it.
    Domain(String),
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostingLine {
    /// The hosts.
    pub hosts: Hosts,
    /// The volumes that their objects go to.
    pub volumes: BTreeSet<u8>,
    /// Where the rule begins.
    pub place: Place,
    /// Where its volumes stand.
    pub volumes_place: Place,
}

/// The rules, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostingFile {
    /// In the order of the lines.
    pub rules: Vec<HostingLine>,
}

impl HostingFile {
    /// Reads a file of this name.
    #[must_use]
    pub fn parse(file: &str, bytes: &[u8]) -> (Self, Findings) {
        let mut rules = Vec::new();
        let mut found = Findings::default();
        match decode(file, bytes) {
            Ok(text) => {
                let lines = lines(file, text).filter(|line| !line.is_blank());
                rules.extend(lines.filter_map(|line| rule(&line, &mut found)));
            }
            Err(error) => found.errors.push(error),
        }
        found.errors.extend(repeated(&rules));
        found.warnings.extend(without_any(&rules));
        (Self { rules }, found)
    }

    /// The errors of rules that name a volume which is none of `known`.
    #[must_use]
    pub fn unknown_volumes(&self, known: &BTreeSet<u8>) -> Vec<ConfigError> {
        let unknown = |rule: &HostingLine| -> Option<ConfigError> {
            let number = rule.volumes.difference(known).next()?;
            let what = "neither volume.config nor storage.config has this volume";
            let token = number.to_string();
            let mut error = rule.volumes_place.error(&token, what);
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            error.help = Some(match known.is_empty() {
                true => "they have none".to_owned(),
                false => format!("they have {}", known.join(", ")),
            });
            Some(error)
        };
        self.rules.iter().filter_map(unknown).collect()
    }
}

fn repeated(rules: &[HostingLine]) -> Vec<ConfigError> {
    let mut known: HashMap<&Hosts, &HostingLine> = HashMap::new();
    let mut errors = Vec::new();
    for rule in rules {
        if let Some(first) = known.insert(&rule.hosts, rule) {
            let what = format!("these hosts have a rule in line {}", first.place.line);
            errors.push(rule.place.error("", what));
        }
    }
    errors
}

/// The warning that hosts without a rule take every volume.
fn without_any(rules: &[HostingLine]) -> Option<ConfigError> {
    let first = rules.first()?;
    let has_any = rules.iter().any(|rule| rule.hosts == Hosts::Any);
    if has_any {
        return None;
    }
    let mut warning = first.place.error(
        "",
        "hosts without a rule share all volumes with those that have one",
    );
    warning.help = Some("say where they belong: hostname=* volume=1".into());
    Some(warning)
}

#[derive(Default)]
struct Words {
    hosts: Option<Hosts>,
    volumes: Option<(BTreeSet<u8>, Place)>,
}

fn rule(line: &Line<'_>, found: &mut Findings) -> Option<HostingLine> {
    let mut words = Words::default();
    let mut is_sound = true;
    for word in line.words().take_while(|word| !word.text.starts_with('#')) {
        if let Err(fault) = words.take(line, &word) {
            found.errors.push(fault.of(line, &word));
            is_sound = false;
        }
    }
    match (words.hosts, words.volumes) {
        (Some(hosts), Some((volumes, volumes_place))) => Some(HostingLine {
            hosts,
            volumes,
            place: line.place(1),
            volumes_place,
        }),
        (hosts, _) if is_sound => {
            let what = match hosts {
                Some(_) => "a rule without volume=",
                None => "a rule without hostname= or domain=",
            };
            let mut error = line.place(1).error("", what);
            error.help = Some("hostname=www.example.com volume=1".into());
            found.errors.push(error);
            None
        }
        _ => None,
    }
}

impl Words {
    fn take(&mut self, line: &Line<'_>, word: &Word<'_>) -> Result<(), Fault> {
        match word.text.split_once('=') {
            Some(("hostname", "*")) => once("a host", &mut self.hosts, Hosts::Any),
            Some(("hostname", host)) => once("a host", &mut self.hosts, Hosts::Name(name(host)?)),
            Some(("domain", domain)) => {
                let domain = domain.strip_prefix('.').unwrap_or(domain);
                once("a host", &mut self.hosts, Hosts::Domain(name(domain)?))
            }
            Some(("volume", numbers)) => {
                let numbers: Result<BTreeSet<u8>, Fault> =
                    numbers.split(',').map(volume_number).collect();
                let column = word.column.saturating_add(7);
                once("volume=", &mut self.volumes, (numbers?, line.place(column)))
            }
            _ => Err(unknown(word.text)),
        }
    }
}

/// A host or domain in lower case.
fn name(text: &str) -> Result<String, Fault> {
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
    if text.is_empty() || !text.bytes().all(is_host) {
        return Err(Fault::new(
            "not a host's name",
            "a name without port or wildcard: www.example.com; * alone is for all others",
        ));
    }
    Ok(text.to_ascii_lowercase())
}

fn unknown(word: &str) -> Fault {
    let key = word.split('=').next().unwrap_or(word);
    let near = did_you_mean(key, ["hostname", "domain", "volume"]);
    Fault {
        what: "unknown option".into(),
        help: near.or_else(|| Some("one of hostname=, domain=, volume=".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (HostingFile, Findings) {
        HostingFile::parse("hosting.config", text.as_bytes())
    }

    #[test]
    fn rules_name_hosts_domains_and_the_rest() {
        let (file, found) = parse(
            "# hot\nhostname=WWW.a.example volume=1,2 # two\n\tvolume=3 domain=.b.example\nhostname=* volume=3\n",
        );
        assert_eq!(found, Findings::default());
        let rules: Vec<_> = file
            .rules
            .iter()
            .map(|rule| (&rule.hosts, rule.volumes.clone()))
            .collect();
        assert_eq!(
            rules,
            [
                (&Hosts::Name("www.a.example".into()), [1, 2].into()),
                (&Hosts::Domain("b.example".into()), [3].into()),
                (&Hosts::Any, [3].into()),
            ]
        );
        assert_eq!(parse("# none\n"), Default::default());
    }

    #[test]
    fn every_fault_is_named_with_its_place_and_cure() {
        let (_, found) = parse(
            "hostname=* volume=1\nhostname=a:80/ volume=1\nhostnam=a volume=1\nhostname=b\nvolume=1\n\
             hostname=c volume=1,0\nhostname=d volume=\nhostname=e domain=e volume=1\nHOSTNAME=f volume=1\nhostname=* volume=2",
        );
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "hosting.config:2:1: not a host's name (at \"hostname=a:80/\"); a name without port or wildcard: www.example.com; * alone is for all others",
                "hosting.config:3:1: unknown option (at \"hostnam=a\"); did you mean hostname?",
                "hosting.config:4:1: a rule without volume=; hostname=www.example.com volume=1",
                "hosting.config:5:1: a rule without hostname= or domain=; hostname=www.example.com volume=1",
                "hosting.config:6:12: no number of a volume (at \"volume=1,0\"); volumes are 1 to 255",
                "hosting.config:7:12: no number of a volume (at \"volume=\"); volumes are 1 to 255",
                "hosting.config:8:12: a host is given twice (at \"domain=e\"); give it once",
                "hosting.config:9:1: unknown option (at \"HOSTNAME=f\"); did you mean hostname?",
                "hosting.config:10:1: these hosts have a rule in line 1",
            ]
        );
    }

    #[test]
    fn a_volume_that_there_is_not_is_named_where_it_stands() {
        let (file, _) = parse("hostname=a volume=1,7\nhostname=* volume=1");
        let errors = file.unknown_volumes(&[1, 2].into());
        assert_eq!(
            errors[0].to_string(),
            "hosting.config:1:19: neither volume.config nor storage.config has this volume (at \"7\"); they have 1, 2"
        );
        assert_eq!(file.unknown_volumes(&[1, 7].into()), []);
    }

    #[test]
    fn without_a_rule_for_the_rest_there_is_a_warning() {
        let (_, found) = parse("hostname=a volume=1");
        assert_eq!(found.errors, []);
        assert!(found.warnings[0].to_string().contains("hostname=*"));
    }
}
