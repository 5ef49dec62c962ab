//! Tests of the settings of a running server.

use super::*;
use crate::mgmt::load::Environment;
use std::path::Path;

const CUTOFF: &str = "proxy.config.cache.ram_cache_cutoff";
const PORTS: &str = "proxy.config.http.server_ports";
const RULES: &str = "map http://a/ http://b/\n";

struct Fixture {
    dir: tempfile::TempDir,
    settings: Settings,
    snapshot: Arc<ArcSwap<Snapshot>>,
}

/// A system that has every user but one.
fn start_faults(records: &Records) -> Vec<ConfigError> {
    let user = &*records.admin_user_id;
    let fault = (user == "nosuch").then(|| load::running_place().error(user, "no user"));
    fault.into_iter().collect()
}

impl Fixture {
    fn new(records: &str) -> Self {
        Self::with_environment(records, Environment::new())
    }

    fn with_environment(records: &str, environment: Environment) -> Self {
        Self::started(records, environment, &Running::new())
    }

    fn started(records: &str, environment: Environment, running: &Running) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("records.config"), records).unwrap();
        std::fs::write(dir.path().join("remap.config"), RULES).unwrap();
        let source = Source {
            dir: dir.path().to_owned(),
            environment,
        };
        let loaded = load::load(&source, running).unwrap();
        let (snapshot, _) = load::build(&loaded, None).unwrap();
        let snapshot = Arc::new(ArcSwap::from_pointee(snapshot));
        let now = WallTime::from_secs(1);
        let server = Server {
            certificates: Box::new(|_| Vec::new()),
            apply: Box::new(|_, _| {}),
            start_faults: Box::new(start_faults),
            plan: Arc::new(|_| Vec::new()),
        };
        let settings = Settings::new(source, loaded, Arc::clone(&snapshot), server, now);
        Self {
            dir,
            settings,
            snapshot,
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path("records.config")).unwrap()
    }

    fn reload(&self) -> Result<Reloaded, Findings> {
        self.settings.reload(WallTime::from_secs(2))
    }

    fn cutoff(&self) -> i64 {
        self.snapshot.load().records.cache_ram_cache_cutoff
    }

    fn value(&self, name: &str) -> String {
        self.settings.get(name).unwrap().value
    }
}

#[test]
fn one_bad_line_in_any_file_changes_nothing_at_all() {
    let fixture = Fixture::new("");
    fixture.write("records.config", &format!("CONFIG {CUTOFF} INT 40\n"));
    fixture.write("remap.config", &format!("{RULES}mpa http://c/ http://d/\n"));
    let found = fixture.reload().unwrap_err();
    assert_eq!(
        (&*found.errors[0].file, found.errors[0].line),
        ("remap.config", 2)
    );
    assert_eq!(fixture.cutoff(), 4_194_304);
    assert_eq!(fixture.snapshot.load().generation, 1);
    assert_eq!(fixture.settings.status().last_errors, found.errors);
    fixture.write("remap.config", RULES);
    let report = fixture.reload().unwrap();
    assert_eq!(
        (report.now, report.generation),
        (vec![CUTOFF.to_owned()], 2)
    );
    assert_eq!(fixture.cutoff(), 40);
    assert!(fixture.settings.status().last_errors.is_empty());
}

#[test]
fn what_needs_a_restart_is_shown_but_does_not_hold() {
    let fixture = Fixture::new("");
    fixture.write("records.config", &format!("CONFIG {PORTS} STRING 9090\n"));
    fixture.write("storage.config", "var/span 64M\n");
    let report = fixture.reload().unwrap();
    assert_eq!(report.at_restart, ["storage.config", PORTS]);
    assert_eq!(fixture.value(PORTS), "9090");
    assert_eq!(&*fixture.snapshot.load().records.http_server_ports, "8080");
    assert_eq!(
        fixture.settings.status().at_restart,
        ["storage.config", PORTS]
    );
}

#[test]
fn what_waits_for_a_restart_is_repeated_until_it_is_taken_back() {
    let fixture = Fixture::new("");
    fixture.write("records.config", &format!("CONFIG {PORTS} STRING 9090\n"));
    fixture.write("storage.config", "var/span 64M\n");
    for _ in 0..2 {
        let report = fixture.reload().unwrap();
        assert_eq!(report.at_restart, ["storage.config", PORTS]);
        assert!(report.now.is_empty(), "{:?}", report.now);
    }
    fixture.write("records.config", "");
    std::fs::remove_file(fixture.path("storage.config")).unwrap();
    assert!(fixture.reload().unwrap().at_restart.is_empty());
    assert!(fixture.settings.status().at_restart.is_empty());
}

#[test]
fn a_running_value_outlives_reloads_and_a_written_one_yields_to_the_file() {
    let fixture = Fixture::new("");
    fixture.settings.set(CUTOFF, "40", false).unwrap();
    assert_eq!(fixture.text(), "");
    fixture.write("records.config", &format!("CONFIG {CUTOFF} INT 50\n"));
    fixture.reload().unwrap();
    assert_eq!(fixture.cutoff(), 40);
    assert_eq!(
        fixture.settings.get(CUTOFF).unwrap().origin,
        Origin::Running
    );
    fixture.settings.set(CUTOFF, "60", true).unwrap();
    assert_eq!(fixture.cutoff(), 60);
    fixture.write("records.config", &format!("CONFIG {CUTOFF} INT 70\n"));
    fixture.reload().unwrap();
    assert_eq!(fixture.cutoff(), 70);
}

#[test]
fn a_value_that_the_start_gave_lies_over_the_file_and_outlives_reloads() {
    let running = Running::from([(PORTS.to_owned(), "9090".to_owned())]);
    let file = format!("CONFIG {PORTS} STRING 8081\n");
    let fixture = Fixture::started(&file, Environment::new(), &running);
    let report = fixture.reload().unwrap();
    assert_eq!(report.at_restart, [""; 0]);
    let shown = fixture.settings.get(PORTS).unwrap();
    assert_eq!((&*shown.value, shown.origin), ("9090", Origin::Running));
    assert_eq!(fixture.settings.status().running, [PORTS]);
    assert_eq!(&*fixture.snapshot.load().records.http_server_ports, "9090");
}

#[test]
fn a_written_value_keeps_the_file_s_comments_and_suffix() {
    let before = format!("# mine\nCONFIG {CUTOFF} INT 4M # note\n");
    let fixture = Fixture::new(&before);
    fixture.settings.set(CUTOFF, "8M", true).unwrap();
    assert_eq!(fixture.text(), before.replace("4M", "8M"));
    assert_eq!(fixture.value(CUTOFF), "8388608");
}

#[test]
fn a_refused_value_leaves_file_and_running_value_alone() {
    let fixture = Fixture::new("# mine\n");
    let line = "1\nCONFIG proxy.config.admin.user_id STRING #-1";
    for value in ["-1", "many", line] {
        assert!(
            fixture.settings.set(CUTOFF, value, true).is_err(),
            "{value}"
        );
    }
    assert!(
        fixture
            .settings
            .set("proxy.config.nothing", "1", true)
            .is_err()
    );
    assert_eq!(fixture.text(), "# mine\n");
    assert_eq!(fixture.snapshot.load().generation, 1);
}

#[test]
fn values_that_only_a_load_or_a_start_would_refuse_change_nothing() {
    let fixture = Fixture::new("# mine\n");
    for (name, value) in [
        (PORTS, "8443:ssl"),
        (PORTS, "foo"),
        ("proxy.config.url_remap.filename", "nofile"),
        ("proxy.config.admin.user_id", "nosuch"),
    ] {
        for persist in [true, false] {
            let failure = fixture.settings.set(name, value, persist).unwrap_err();
            assert!(matches!(failure, SetFailure::Refused(_)), "{failure}");
        }
    }
    let state = fixture
        .settings
        .set("proxy.config.local_state_dir", "x", true);
    assert!(matches!(state, Err(SetFailure::StateDir)));
    assert_eq!(fixture.text(), "# mine\n");
    assert_eq!(fixture.snapshot.load().generation, 1);
    assert_eq!(fixture.settings.status().running, [""; 0]);
}

#[test]
fn verify_judges_the_file_and_not_what_was_written_before_it_was_edited() {
    let fixture = Fixture::new("");
    fixture.settings.set(PORTS, "9090", true).unwrap();
    fixture.write("records.config", &format!("CONFIG {PORTS} STRING 1:ssl\n"));
    assert!(!fixture.settings.verify().1.is_usable());
}

#[test]
fn what_waits_for_a_restart_is_what_it_would_find_and_no_running_value() {
    let fixture = Fixture::new("");
    let waiting = || fixture.settings.status().at_restart;
    fixture.settings.set(PORTS, "9090", false).unwrap();
    assert_eq!(waiting(), [""; 0]);
    fixture.settings.set(PORTS, "9091", true).unwrap();
    assert_eq!(waiting(), [PORTS]);
    fixture.settings.set(PORTS, "8080", false).unwrap();
    assert_eq!(waiting(), [PORTS], "the file has 9091");
    assert_eq!(fixture.reload().unwrap().at_restart, [PORTS]);
    fixture.write("records.config", "");
    assert_eq!(fixture.reload().unwrap().at_restart, [""; 0]);
}

#[test]
fn a_value_that_is_in_force_waits_for_no_restart() {
    let fixture = Fixture::new("");
    let notes = |value: &str| fixture.settings.set(PORTS, value, true).unwrap().notes();
    let now = fixture.value(PORTS);
    assert_eq!(notes(&now), [""; 0]);
    assert_eq!(notes("9091"), ["holds after a restart"]);
    assert_eq!(notes(&now), [""; 0]);
}

#[test]
fn what_the_start_s_command_line_says_goes_before_the_file_at_a_restart_too() {
    let running = Running::from([(PORTS.to_owned(), "9090".to_owned())]);
    let fixture = Fixture::started("", Environment::new(), &running);
    let notes = |value: &str| fixture.settings.set(PORTS, value, true).unwrap().notes();
    assert_eq!(notes("9090"), [""; 0]);
    let [note] = &notes("9091")[..] else {
        panic!("one note");
    };
    assert!(note.contains("without -p"), "{note}");
    assert_eq!(fixture.settings.status().at_restart, [""; 0]);
}

#[test]
fn a_file_that_can_not_be_written_keeps_the_running_value_too() {
    let fixture = Fixture::new("");
    std::fs::create_dir(fixture.path("records.config.new")).unwrap();
    let failure = fixture.settings.set(CUTOFF, "40", true).unwrap_err();
    assert!(matches!(failure, SetFailure::Write(_)), "{failure}");
    assert_eq!(fixture.cutoff(), 4_194_304);
}

#[test]
fn the_environment_stays_above_what_is_set_and_says_so() {
    let name = "PROXY_CONFIG_CACHE_RAM_CACHE_CUTOFF".to_owned();
    let environment = Environment::from([(name.clone(), "7".to_owned())]);
    let fixture = Fixture::with_environment("", environment);
    let setting = fixture.settings.set(CUTOFF, "40", false).unwrap();
    assert_eq!(setting.overruled, Some(name));
    assert_eq!(fixture.cutoff(), 7);
}

#[test]
fn verify_finds_what_a_reload_would_and_changes_nothing() {
    let fixture = Fixture::new("");
    fixture.write("remap.config", "mpa\n");
    assert!(!fixture.settings.verify().1.is_usable());
    fixture.write("remap.config", "map http://c/ http://d/\n");
    assert!(fixture.settings.verify().1.is_usable());
    assert_eq!(fixture.settings.status().generation, 1);
    assert_eq!(fixture.settings.status().dir, Path::new(fixture.dir.path()));
}

/// Writes a certificate with its key.
fn issue(file: &std::path::Path) {
    let issued = rcgen::generate_simple_self_signed(vec!["proxy.example".to_owned()]).unwrap();
    let pem = issued.cert.pem() + &issued.signing_key.serialize_pem();
    std::fs::write(file, pem).unwrap();
}

#[test]
fn a_certificate_for_origins_that_is_faulty_now_refuses_no_reload() {
    let fixture = Fixture::new("");
    let own = "CONFIG proxy.config.ssl.client.cert.filename STRING own.pem\n";
    let records = |cutoff: i64| format!("{own}CONFIG {CUTOFF} INT {cutoff}\n");
    let rules = "map http://a.example/ https://b.example/ @plugin=conf_remap.so \
                 @pparam=proxy.config.ssl.client.cert.filename=rule.pem\n";
    fixture.write("remap.config", rules);
    fixture.write(
        "sni.toml",
        "[[sni]]\nfqdn = \"c\"\nclient_cert = \"name.pem\"\n",
    );
    let files = ["own.pem", "rule.pem", "name.pem"];
    files.iter().for_each(|file| issue(&fixture.path(file)));
    fixture.write("records.config", &records(1000));
    fixture.reload().unwrap();
    let expiry = || {
        let snapshot = fixture.snapshot.load();
        let all: Vec<_> = snapshot
            .origin_tls()
            .map(|tls| tls.first_expiry())
            .collect();
        all
    };
    let before = expiry();
    assert!(
        before.len() == 2 && before.iter().all(Option::is_some),
        "{before:?}"
    );
    for (number, file) in (2000..).zip(files) {
        fixture.write(file, "");
        fixture.write("records.config", &records(number));
        let report = fixture.reload().unwrap();
        let warned = report.warnings.iter().map(|warning| &warning.what);
        let told = warned.filter(|what| what.ends_with("what was read before is used on"));
        assert!(
            told.clone().any(|what| what.contains(file)),
            "{file}: {:?}",
            report.warnings
        );
        assert_eq!(fixture.cutoff(), number);
        assert_eq!(expiry(), before, "{file}");
        issue(&fixture.path(file));
    }
    fixture.write("records.config", &own.replace("own.pem", "other.pem"));
    fixture.reload().unwrap_err();
}
