//! All configuration files, read and parsed together: usable as a whole, or
//! every error at once.

mod ruled;
mod storage;
mod tls;

pub use storage::storage_texts;

use super::files::{Digests, Reader};
use super::paths::RECORDS_NAME;
use crate::config::cache_rules::{self, CacheRulesFile};
use crate::config::connect_ports::ConnectPorts;
use crate::config::hosting::HostingFile;
use crate::config::ip_allow::{self, IpAllowFile};
use crate::config::place::Place;
use crate::config::ports::PortList;
use crate::config::records::{self, Records, RecordsFile, Running};
use crate::config::remap::{self, RemapFile};
use crate::config::sni::SniFile;
use crate::config::ssl_multicert::MulticertFile;
use crate::config::storage::StorageFile;
use crate::config::unheeded::{UNHEEDED_FILES, unheeded};
use crate::config::volume::VolumeFile;
use crate::config::{ConfigError, Findings};
use crate::proxy::Snapshot;
use crate::proxy::cache_rules::CacheRules;
use crate::proxy::snapshot::SnapshotParts;
use crate::proxy::tls::SniRules;
use crate::remap::{IpAllow, RemapOptions, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file of the spans.
pub const STORAGE_NAME: &str = "storage.config";

/// The files that are looked for when no record names one.
const IP_ALLOW_NAMES: [&str; 2] = ["ip_allow.yaml", "ip_allow.config"];

/// The file of the cache rules when no record names another.
const CACHE_RULES_NAME: &str = "cache.config";

/// The record of the ports to listen on.
pub const PORTS: &str = "proxy.config.http.server_ports";

/// The record of the directory that the control socket is in.
pub const STATE_DIR: &str = "proxy.config.local_state_dir";

/// Where a value stands that no file holds.
const RUNNING_VALUE: &str = "running value";

/// The environment variables that may override records.
pub type Environment = BTreeMap<String, String>;

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The directory that relative paths in the files are relative to.
    pub dir: PathBuf,
    /// Variables such as `PROXY_CONFIG_HTTP_SERVER_PORTS`.
    pub environment: Environment,
}

impl Source {
    /// The path that a name in the configuration means.
    #[must_use]
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    /// The records in force over that file and those running values.
    #[must_use]
    pub fn resolve(&self, running: &Running, file: &RecordsFile) -> (Records, Findings) {
        let lookup = |name: &str| self.environment.get(name).cloned();
        Records::resolve(&lookup, running, file)
    }
}

/// What the files say.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The directory of the configuration.
    pub dir: PathBuf,
    /// The records in force.
    pub records: Records,
    /// records.config by itself.
    pub records_file: RecordsFile,
    /// The running values that lie over it.
    pub running: Running,
    /// The ports to listen on.
    pub ports: PortList,
    /// The rules.
    pub remap: RemapFile,
    /// What becomes of the responses for some destinations.
    pub cache_rules: CacheRulesFile,
    /// Who may do what, and which origins may be reached.
    pub ip_allow: IpAllowFile,
    /// The certificates that clients are given.
    pub multicert: MulticertFile,
    /// What holds for clients that ask for a name.
    pub sni: SniFile,
    /// The spans.
    pub storage: StorageFile,
    /// The volumes that share them.
    pub volumes: VolumeFile,
    /// Which volumes hosts go to.
    pub hosting: HostingFile,
    /// What was in each file.
    pub digests: Digests,
    /// What the operator should know, though all of it is usable.
    pub warnings: Vec<ConfigError>,
}

/// Reads and parses every file; `running` lies over records.config.
///
/// # Errors
///
/// Everything found, errors and warnings, if there is an error in any file.
pub fn load(source: &Source, running: &Running) -> Result<Loaded, Findings> {
    let (mut loaded, mut found) = read(source, running);
    if !found.is_usable() {
        found.extend(parts(&loaded, None).1);
        return Err(found);
    }
    loaded.warnings = found.warnings;
    Ok(loaded)
}

/// The errors for which a load would be refused.
#[must_use]
pub fn faults(source: &Source, running: &Running) -> Vec<ConfigError> {
    let (loaded, mut found) = read(source, running);
    found.extend(parts(&loaded, None).1);
    found.errors
}

/// What a command may not set the ports to: what a file holds with an error,
/// or with a warning that part of it is left out.
#[must_use]
pub fn port_faults(value: &str) -> Vec<ConfigError> {
    let (_, found) = PortList::parse(value, &running_place());
    found.errors.into_iter().chain(found.warnings).collect()
}

/// What the files say, and everything found in them; with errors, only those
/// who look for more of them go on.
#[must_use]
pub fn read(source: &Source, running: &Running) -> (Loaded, Findings) {
    read_by(&Reader::of(&source.dir), source, running)
}

/// As [`read`], with these texts in place of files, by their names.
#[must_use]
pub fn read_with(
    source: &Source,
    running: &Running,
    texts: BTreeMap<String, Vec<u8>>,
) -> (Loaded, Findings) {
    read_by(&Reader::of(&source.dir).with(texts), source, running)
}

fn read_by(reader: &Reader, source: &Source, running: &Running) -> (Loaded, Findings) {
    let mut found = Findings::default();
    let (records_file, records) = read_records(source, reader, running, &mut found);
    let ports = read_ports(&records, running, &records_file, &mut found);
    let remap = read_remap(reader, &records.url_remap_filename, &mut found);
    let cache_rules = read_cache_rules(reader, &records.cache_control_filename, &mut found);
    let ip_allow = read_ip_allow(reader, &records.cache_ip_allow_filename, &mut found);
    let interim = place_of(running, &records_file, "proxy.config.cache.interim.storage");
    let storage = storage::read_storage(reader, &records, &interim, &mut found);
    let volumes = storage::read_volumes(reader, &records, &mut found);
    let hosting = storage::read_hosting(reader, &records, &mut found);
    let multicert = tls::read_multicert(reader, &records, &mut found);
    let sni = tls::read_sni(reader, &records.ssl_servername_filename, &mut found);
    let place = place_of(running, &records_file, PORTS);
    found
        .errors
        .extend(tls::port_faults(&ports, (&records, &multicert), &place));
    let unknown = hosting.unknown_volumes(&storage::volume_numbers(&storage, &volumes));
    found.errors.extend(unknown);
    found
        .warnings
        .extend(unheeded_files(reader, &records, &records_file));
    let loaded = Loaded {
        dir: source.dir.clone(),
        records,
        records_file,
        running: running.clone(),
        ports,
        remap,
        cache_rules,
        ip_allow,
        multicert,
        sni,
        storage,
        volumes,
        hosting,
        digests: reader.digests(),
        warnings: Vec::new(),
    };
    (loaded, found)
}

fn read_records(
    source: &Source,
    reader: &Reader,
    running: &Running,
    found: &mut Findings,
) -> (RecordsFile, Records) {
    let file = match reader.read(RECORDS_NAME) {
        Ok(Some(bytes)) => {
            let (file, findings) = RecordsFile::parse(RECORDS_NAME, &bytes);
            found.extend(findings);
            file
        }
        Ok(None) => {
            let what = "there is no such file; every record has its default";
            found.warnings.push(start_of(RECORDS_NAME).error("", what));
            RecordsFile::default()
        }
        Err(error) => {
            found.errors.push(error);
            RecordsFile::default()
        }
    };
    let (records, findings) = source.resolve(running, &file);
    found.extend(findings);
    (file, records)
}

fn read_remap(reader: &Reader, name: &str, found: &mut Findings) -> RemapFile {
    match reader.read(name) {
        Ok(Some(bytes)) => {
            let (file, findings) = remap::parse(name, &bytes, &|name| reader.include(name));
            found.extend(findings);
            file
        }
        Ok(None) => {
            let what = "there is no such file (proxy.config.url_remap.filename)";
            found.errors.push(start_of(name).error("", what));
            RemapFile::default()
        }
        Err(error) => {
            found.errors.push(error);
            RemapFile::default()
        }
    }
}

/// The rules of the file that the record names; where it names none of its
/// own, the 9.x form goes before the 4.2 form. Without a file, the built-in
/// rules hold.
fn read_ip_allow(reader: &Reader, name: &str, found: &mut Findings) -> IpAllowFile {
    let by_default = name == IP_ALLOW_NAMES[0];
    let names: &[&str] = if by_default { &IP_ALLOW_NAMES } else { &[name] };
    let Some((name, bytes)) = first_there(reader, names, found) else {
        if !by_default {
            let what = "there is no such file (proxy.config.cache.ip_allow.filename); \
                        the built-in rules hold";
            found.warnings.push(start_of(name).error("", what));
        }
        return IpAllowFile::built_in();
    };
    let (file, findings) = ip_allow::parse(name, &bytes);
    found.extend(findings);
    file
}

/// The first of some files that is there, with its bytes; that others are there
/// too is warned of.
fn first_there<'n>(
    reader: &Reader,
    names: &[&'n str],
    found: &mut Findings,
) -> Option<(&'n str, Vec<u8>)> {
    let mut first = None;
    for name in names {
        let bytes = reader.read(name).unwrap_or_else(|error| {
            found.errors.push(error);
            None
        });
        match (bytes, &first) {
            (None, _) => {}
            (Some(bytes), None) => first = Some((*name, bytes)),
            (Some(_), Some((used, _))) => {
                let what = format!("it is not used, since {used} is there");
                found.warnings.push(start_of(name).error("", what));
            }
        }
    }
    first
}

/// The rules of the file that the record names. There need be none, unless the
/// record names another than it does by default.
fn read_cache_rules(reader: &Reader, name: &str, found: &mut Findings) -> CacheRulesFile {
    match reader.read(name) {
        Ok(Some(bytes)) => {
            let (file, findings) = cache_rules::parse(name, &bytes);
            found.extend(findings);
            return file;
        }
        Ok(None) if name != CACHE_RULES_NAME => {
            let what = "there is no such file (proxy.config.cache.control.filename); \
                        no cache rule holds";
            found.warnings.push(start_of(name).error("", what));
        }
        Ok(None) => {}
        Err(error) => found.errors.push(error),
    }
    CacheRulesFile::default()
}

/// A warning for each file of ATS that is there, says something and has no
/// effect.
fn unheeded_files(
    reader: &Reader,
    records: &Records,
    file: &RecordsFile,
) -> impl Iterator<Item = ConfigError> {
    let value = |name: &str| match records::find(name) {
        Some(spec) => Some(spec.value_in(records).to_string()),
        None => file.others.get(name).cloned(),
    };
    UNHEEDED_FILES.into_iter().filter_map(move |unheeded_file| {
        let name = unheeded_file.name_in_force(value);
        unheeded(&name, &reader.glance(&name)?)
    })
}

/// Where a value that no file holds is said to stand.
#[must_use]
pub fn running_place() -> Place {
    start_of(RUNNING_VALUE)
}

/// Where what is missing would stand.
fn start_of(name: &str) -> Place {
    Place {
        file: name.into(),
        line: 1,
        column: 1,
    }
}

/// Where a record's value stands: at run time, or in the file.
#[must_use]
pub fn place_of(running: &Running, file: &RecordsFile, name: &str) -> Place {
    if running.contains_key(name) {
        return running_place();
    }
    let written = file.records.get(name).map(|record| record.place.clone());
    written.unwrap_or_else(|| start_of(name))
}

fn read_ports(
    records: &Records,
    running: &Running,
    file: &RecordsFile,
    found: &mut Findings,
) -> PortList {
    let place = place_of(running, file, PORTS);
    let (ports, findings) = PortList::parse(&records.http_server_ports, &place);
    found.extend(findings);
    ports
}

/// The bytes of a file that says nothing where it is not there.
fn read_if_there(reader: &Reader, name: &str, found: &mut Findings) -> Vec<u8> {
    let bytes = reader.read(name).unwrap_or_else(|error| {
        found.errors.push(error);
        None
    });
    bytes.unwrap_or_default()
}

/// Turns what the files say into what the proxy runs by after `before`, and what
/// the operator should know of it. A certificate for origins whose files are
/// faulty is as it was before, if it is named as it was.
///
/// # Errors
///
/// What only shows when the parts are put together.
pub fn build(
    loaded: &Loaded,
    before: Option<&Snapshot>,
) -> Result<(Snapshot, Vec<ConfigError>), Findings> {
    let (parts, found) = parts(loaded, before);
    if !found.is_usable() {
        return Err(found);
    }
    let generation = before.map_or(1, |before| before.generation + 1);
    Ok((Snapshot::new(generation, parts), found.warnings))
}

fn parts(loaded: &Loaded, before: Option<&Snapshot>) -> (SnapshotParts, Findings) {
    let records = &loaded.records;
    let (remap, mut found) = Table::build(&loaded.remap, &RemapOptions::from_records(records));
    let place = place_of(
        &loaded.running,
        &loaded.records_file,
        "proxy.config.http.connect_ports",
    );
    let (connect_ports, findings) = ConnectPorts::parse(&records.http_connect_ports, &place);
    found.extend(findings);
    let origin_tls = tls::origin_tls(loaded, before, &mut found);
    let ruled = ruled::read(loaded, (origin_tls.as_ref(), before), &mut found);
    found.warnings.extend(tls::cipher_warnings(loaded));
    let (sni, errors) = SniRules::read(&loaded.sni, records, &loaded.dir);
    found.errors.extend(errors);
    let parts = SnapshotParts {
        origin_tls,
        ruled,
        sni,
        records: records.clone(),
        remap,
        connect_ports,
        cache_rules: CacheRules::new(&loaded.cache_rules),
        ip_allow: IpAllow::new(&loaded.ip_allow),
    };
    (parts, found)
}

/// The state directory that records.config names, made absolute.
#[must_use]
pub fn state_dir(dir: &Path, environment: Environment) -> PathBuf {
    dir.join(&*records_of(dir, environment).local_state_dir)
}

/// The records of a configuration. Errors in the file do not matter here: a
/// command must find the server all the same.
#[must_use]
pub fn records_of(dir: &Path, environment: Environment) -> Records {
    let source = Source {
        dir: dir.to_owned(),
        environment,
    };
    let bytes = std::fs::read(source.path(RECORDS_NAME)).unwrap_or_default();
    let (file, _) = RecordsFile::parse(RECORDS_NAME, &bytes);
    source.resolve(&Running::new(), &file).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::storage::Tier;

    fn source(files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let source = Source {
            dir: dir.path().to_owned(),
            environment: Environment::new(),
        };
        (dir, source)
    }

    #[test]
    fn without_a_span_the_cache_is_said_to_be_in_ram_only() {
        let rules = ("remap.config", "map http://a/ http://b/\n");
        for text in [None, Some(""), Some("# /dev/sdb\n\n")] {
            let storage = text.map(|text| ("storage.config", text));
            let files: Vec<_> = storage.into_iter().chain([rules]).collect();
            let (_dir, source) = source(&files);
            let warnings = load(&source, &Running::new()).unwrap().warnings;
            let said = |w: &&ConfigError| w.what.ends_with("; the cache is in RAM only");
            let said: Vec<_> = warnings.iter().filter(said).collect();
            assert_eq!(said.len(), 1, "{text:?}: {warnings:?}");
            assert_eq!(&*said[0].file, "storage.config");
        }
    }

    #[test]
    fn errors_of_all_files_come_together() {
        let records = "CONFIG proxy.config.http.cache.http INT 7\n";
        let rules = "map http://a/ http://b/\nmpa http://c/ http://d/\n";
        let (_dir, source) = source(&[("records.config", records), ("remap.config", rules)]);
        let found = load(&source, &Running::new()).unwrap_err();
        let files: Vec<_> = found.errors.iter().map(|e| (&*e.file, e.line)).collect();
        assert_eq!(files, [("records.config", 1), ("remap.config", 2)]);
    }

    #[test]
    fn a_file_that_a_rule_s_override_names_is_read_and_named_where_the_rule_stands() {
        let plugin = "@plugin=conf_remap.so";
        let own = "@pparam=proxy.config.ssl.client.cert.filename=none.pem";
        let rules = format!("map http://a/ http://b/\nmap http://c/ https://d/ {plugin} {own}\n");
        let (_dir, source) = source(&[("remap.config", &rules)]);
        let loaded = load(&source, &Running::new()).unwrap();
        let found = build(&loaded, None).unwrap_err();
        let said: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("remap.config:2:1: "), "{said:?}");
        assert!(said[0].contains("none.pem"), "{said:?}");
    }

    #[test]
    fn a_missing_rule_file_is_an_error_and_missing_records_are_not() {
        let (_dir, source) = source(&[]);
        let found = load(&source, &Running::new()).unwrap_err();
        assert_eq!(&*found.errors[0].file, "remap.config");
        assert_eq!(&*found.warnings[0].file, "records.config");
    }

    #[test]
    fn an_ip_allow_file_holds_and_an_empty_one_is_an_error() {
        let rule = "ip_allow:\n  - {apply: in, ip_addrs: 0/0, action: deny, methods: ALL}\n";
        let (_dir, denying) = source(&[("remap.config", ""), ("ip_allow.yaml", rule)]);
        let loaded = load(&denying, &Running::new()).unwrap();
        assert_eq!(loaded.ip_allow.rules.len(), 1);
        let (_dir, empty) = source(&[("remap.config", ""), ("ip_allow.yaml", "")]);
        let found = load(&empty, &Running::new()).unwrap_err();
        assert_eq!(&*found.errors[0].file, "ip_allow.yaml");
        let (_dir, none) = source(&[("remap.config", "")]);
        let loaded = load(&none, &Running::new()).unwrap();
        assert_eq!(loaded.ip_allow, IpAllowFile::built_in());
    }

    #[test]
    fn an_ip_allow_of_the_4_2_form_is_read_unless_the_9_x_form_is_there() {
        let old = "src_ip=0.0.0.0-255.255.255.255 action=ip_allow method=GET\n";
        let yaml = "ip_allow:\n  - apply: in\n    ip_addrs: 10.0.0.0/8\n    action: deny\n";
        let read = |files: &[(&str, &str)]| {
            let (_dir, source) = source(files);
            let loaded = load(&source, &Running::new()).unwrap();
            let place = loaded.ip_allow.rules[0].place.clone().unwrap();
            (place.file.to_string(), loaded.warnings)
        };
        let files = [
            ("remap.config", ""),
            ("ip_allow.config", old),
            ("ip_allow.yaml", yaml),
        ];
        assert_eq!(read(&files[..2]).0, "ip_allow.config");
        let (file, warnings) = read(&files);
        assert_eq!(file, "ip_allow.yaml");
        let warned = warnings.iter().any(|w| &*w.file == "ip_allow.config");
        assert!(warned, "{warnings:?}");
    }

    #[test]
    fn what_holds_for_names_is_of_sni_toml_or_of_ats_s_sni_yaml() {
        let toml = ("sni.toml", "[[sni]]\nfqdn = \"toml\"\n");
        let yaml = ("sni.yaml", "sni:\n- fqdn: yaml\n");
        let named = "CONFIG proxy.config.ssl.servername.filename STRING own.yaml\n";
        let named = ("records.config", named);
        let rules = ("remap.config", "");
        let read = |files: &[(&str, &str)]| {
            let (_dir, source) = source(files);
            let loaded = load(&source, &Running::new()).unwrap();
            let names = loaded.sni.entries.iter().map(|entry| entry.name.text());
            let warned = loaded.warnings.iter().map(|w| w.file.to_string());
            let warned = warned.filter(|file| file.contains("yaml")).collect();
            (names.collect::<String>(), warned)
        };
        let nobody: Vec<String> = Vec::new();
        assert_eq!(read(&[rules]), (String::new(), nobody.clone()));
        assert_eq!(read(&[rules, yaml]), ("yaml".to_owned(), nobody.clone()));
        let both = ("toml".to_owned(), vec!["sni.yaml".to_owned()]);
        assert_eq!(read(&[rules, yaml, toml]), both);
        let own = ("own.yaml", yaml.1);
        assert_eq!(
            read(&[rules, named, own, toml]),
            ("yaml".to_owned(), nobody)
        );
        let none = (String::new(), vec!["own.yaml".to_owned()]);
        assert_eq!(read(&[rules, named, toml]), none);
    }

    #[test]
    fn a_fault_of_sni_toml_or_of_a_file_that_it_names_refuses_all() {
        for (text, place) in [
            ("[[sni]]\nfqdn = \"a\"\nmore = 1\n", "sni.toml:3:1: "),
            (
                "[[sni]]\nfqdn = \"a\"\nverify_client = \"STRICT\"\n\
                 verify_client_ca_certs = \"absent.pem\"\n",
                "sni.toml:4:26: ",
            ),
            (
                "[[sni]]\nfqdn = \"a\"\nverify_client = \"STRICT\"\n",
                "sni.toml:1:1: ",
            ),
        ] {
            let (_dir, source) = source(&[("remap.config", ""), ("sni.toml", text)]);
            let errors = faults(&source, &Running::new());
            let said: Vec<_> = errors.iter().map(ToString::to_string).collect();
            assert!(said.len() == 1 && said[0].starts_with(place), "{said:?}");
        }
    }

    #[test]
    fn fast_spans_are_named_by_storage_config_or_by_the_record_of_4_2() {
        let line = "LOCAL proxy.config.cache.interim.storage STRING b\n";
        for (spans, records) in [
            ("a 64M tier=capacity\nb tier=fast\n", "\n"),
            ("a 64M tier=capacity\n", line),
        ] {
            let (_dir, source) = source(&[
                ("remap.config", ""),
                ("storage.config", spans),
                ("records.config", records),
            ]);
            let loaded = load(&source, &Running::new()).unwrap();
            let spans = loaded.storage.spans.iter();
            let spans: Vec<_> = spans.map(|span| (&*span.path, span.tier)).collect();
            let capacity = ("a", Some(Tier::Capacity));
            assert_eq!(spans, [capacity, ("b", Some(Tier::Fast))]);
            assert_eq!(loaded.warnings, []);
        }
    }

    #[test]
    fn files_of_ats_that_have_no_effect_are_named_and_are_no_change() {
        let yaml = "# shipped\nlogging:\n  formats: []\n";
        let (_dir, source) = source(&[
            ("remap.config", ""),
            ("cache.config", "# none\n"),
            ("parent.config", "dest_domain=. parent=\"a:80\"\n"),
            ("logging.yaml", yaml),
        ]);
        let loaded = load(&source, &Running::new()).unwrap();
        let warned = loaded.warnings.iter().filter(|w| w.what.contains("of ATS"));
        let warned: Vec<_> = warned.map(|w| (&*w.file, w.line)).collect();
        assert_eq!(warned, [("logging.yaml", 2), ("parent.config", 1)]);
        assert!(!loaded.digests.contains_key("parent.config"));
    }

    #[test]
    fn a_file_of_ats_is_sought_by_the_name_that_its_record_gives() {
        let records = "CONFIG proxy.config.socks.socks_config_file STRING own/h.config\n\
                       CONFIG proxy.config.dns.splitdns.filename STRING v.config\n\
                       CONFIG proxy.config.http.parent_proxy.file STRING p.config\n";
        let (dir, source) = source(&[
            ("records.config", records),
            ("remap.config", ""),
            ("socks.config", "socks=unread\n"),
            ("p.config", "dest_domain=.\n"),
            ("v.config", "dest=1\n"),
        ]);
        std::fs::create_dir(dir.path().join("own")).unwrap();
        std::fs::write(dir.path().join("own/h.config"), "dest_host=a\n").unwrap();
        let loaded = load(&source, &Running::new()).unwrap();
        let warned = loaded
            .warnings
            .iter()
            .filter(|w| w.what.contains("of ATS is"));
        let warned: Vec<_> = warned.map(|w| &*w.file).collect();
        assert_eq!(warned, ["p.config", "own/h.config", "v.config"]);
    }

    #[test]
    fn volumes_and_hosts_are_read_together_by_the_names_of_their_records() {
        let records = "CONFIG proxy.config.cache.hosting_filename STRING h.config\n\
                       CONFIG proxy.config.cache.volume_filename STRING v.config\n";
        let mut files = vec![
            ("records.config", records),
            ("remap.config", ""),
            ("storage.config", "a 64M\nb 64M volume=9\n"),
            ("v.config", "volume=1 scheme=http size=50%\n"),
            ("h.config", "hostname=a volume=1,9\nhostname=* volume=1\n"),
            ("hosting.config", "nonsense\n"),
        ];
        let (_dir, good) = source(&files);
        let loaded = load(&good, &Running::new()).unwrap();
        assert_eq!(loaded.volumes.volumes.len(), 1);
        assert_eq!(loaded.hosting.rules.len(), 2);
        files[4].1 = "hostname=a volume=2\n";
        files[3].1 = "volume=1 size=50\nvolume=300\n";
        let (_dir, bad) = source(&files);
        let found = load(&bad, &Running::new()).unwrap_err();
        let places: Vec<_> = found.errors.iter().map(|e| (&*e.file, e.line)).collect();
        assert_eq!(places, [("v.config", 2), ("h.config", 1)]);
    }

    #[test]
    fn ports_that_are_not_supported_are_refused_where_they_stand() {
        let records = "CONFIG proxy.config.http.server_ports STRING 8080 8443:ssl\n";
        let (_dir, source) = source(&[("remap.config", ""), ("records.config", records)]);
        let found = load(&source, &Running::new()).unwrap_err();
        let error = found.errors[0].to_string();
        assert!(error.starts_with("records.config:1:"), "{error}");
    }

    #[test]
    fn the_state_directory_is_relative_to_the_configuration() {
        let text = "CONFIG proxy.config.local_state_dir STRING state\nnonsense\n";
        let (dir, _source) = source(&[("records.config", text)]);
        let none = Environment::new();
        assert_eq!(state_dir(dir.path(), none), dir.path().join("state"));
        let name = "PROXY_CONFIG_LOCAL_STATE_DIR".to_owned();
        let environment = Environment::from([(name, "/x".to_owned())]);
        assert_eq!(state_dir(dir.path(), environment), Path::new("/x"));
    }
}
