//! Certificates as an operator keeps them: at the start, at a reload, under a
//! running server.

use crate::pki::{Authority, Issued, given};
use crate::support::{Config, Server, get};
use crate::until::until;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const TLS: &str = "CONFIG proxy.config.http.server_ports STRING ip-in=127.0.0.1:0:ssl\n";
/// No file is looked at but by a reload.
const UNWATCHED: &str = "CONFIG proxy.config.strata.ssl.certificate_check_interval INT 0\n";

struct Site {
    authority: Authority,
    config: Config,
}

impl Site {
    fn new(records: &str, multicert: &str) -> Self {
        let config = Config::new("");
        let base = config.read("records.config");
        let lines = base.lines().filter(|line| !line.contains("server_ports"));
        let mut text: String = lines.map(|line| line.to_owned() + "\n").collect();
        text.push_str(TLS);
        text.push_str(records);
        config.write("records.config", &text);
        config.write("ssl_multicert.config", multicert);
        Self {
            authority: Authority::new(),
            config,
        }
    }

    fn issue(&self, file: &str, name: &str) -> Issued {
        let issued = self.authority.issue(&[name]);
        issued.write(&self.config.path(file));
        issued
    }

    fn client(&self) -> Arc<ClientConfig> {
        let mut client = self.authority.client();
        client.resumption = rustls::client::Resumption::disabled();
        Arc::new(client)
    }

    fn given(&self, server: &Server, name: &str) -> CertificateDer<'static> {
        given(&self.client(), server.port(), name).unwrap()
    }

    fn metric(&self, name: &str) -> String {
        let name = format!("proxy.process.ssl.{name}");
        self.config.line(&["-r", &name]).ok().trim().to_owned()
    }
}

#[test]
fn a_bad_certificate_keeps_its_last_good_version_and_blocks_no_other() {
    let multicert = "ssl_cert_name=a.pem\nssl_cert_name=b.pem\nssl_cert_name=c.pem\n";
    let site = Site::new(UNWATCHED, multicert);
    let a = site.issue("a.pem", "a.example");
    let b = site.issue("b.pem", "b.example");
    let c = site.issue("c.pem", "c.example");
    let server = site.config.start();
    assert_eq!(site.given(&server, "a.example"), a.certificate);

    let new = site.issue("c.pem", "c.example");
    site.config.write("a.pem", "no certificate");
    std::fs::remove_file(site.config.path("b.pem")).unwrap();
    site.config
        .write("remap.config", "map http://n.example/ http://b.example/\n");
    let answer = site.config.ctl(&["config", "reload"]).ok();
    assert!(answer.contains("in force: remap.config\n"), "{answer}");
    for named in [
        "ssl_multicert.config:1:1: ",
        "a.pem holds no certificate in PEM",
        "ssl_multicert.config:2:1: ",
        "b.pem can't be read",
        "the one read before is served on",
    ] {
        assert!(answer.contains(named), "{named}: {answer}");
        let line = site.config.line(&["-x"]);
        assert_eq!(line.code(), 0);
        assert!(line.err().contains(named), "{named}: {}", line.err());
    }
    assert_eq!(site.given(&server, "a.example"), a.certificate);
    assert_eq!(site.given(&server, "b.example"), b.certificate);
    assert_eq!(site.given(&server, "c.example"), new.certificate);
    assert_ne!(new.certificate, c.certificate);
    assert_eq!(site.metric("certificates"), "3");
    assert_eq!(site.metric("certificates_faulty"), "2");

    site.issue("a.pem", "a.example");
    b.write(&site.config.path("b.pem"));
    let mended = site.config.line(&["-x"]);
    assert_eq!(mended.ok(), "");
    assert_ne!(site.given(&server, "a.example"), a.certificate);
    assert_eq!(site.metric("certificates_faulty"), "0");
}

#[test]
fn a_certificate_that_changes_is_served_without_a_reload() {
    let records = "CONFIG proxy.config.strata.ssl.certificate_check_interval INT 1\n";
    let site = Site::new(records, "ssl_cert_name=a.pem\n");
    site.issue("a.pem", "a.example");
    let server = site.config.start();
    let new = site.issue("a.pem", "a.example");
    until("the new certificate", || {
        site.given(&server, "a.example") == new.certificate
    });
}

#[test]
fn a_start_names_every_certificate_that_can_t_be_had() {
    let multicert = "ssl_cert_name=a.pem\nssl_cert_name=b.pem ssl_key_name=c.pem\n\
        ssl_cert_name=c.pem\n";
    let off = "CONFIG proxy.config.ssl.server.multicert.exit_on_load_fail INT 0\n";
    let site = Site::new("", multicert);
    site.issue("b.pem", "b.example");
    let c = site.issue("c.pem", "c.example");
    let server = env!("CARGO_BIN_EXE_traffic_server");
    for args in [&[][..], &["-C", "verify_config"]] {
        let refused = site.config.run(server, args);
        assert_ne!(refused.code(), 0);
        let said = refused.err();
        for named in [
            "a.pem can't be read",
            "the key in ",
            "c.pem is not usable with it",
        ] {
            assert!(said.contains(named), "{named}: {said}");
        }
    }
    let records = site.config.read("records.config");
    site.config.write("records.config", &(records + off));
    let server = site.config.start();
    assert!(server.started().contains("a.pem can't be read"));
    assert_eq!(site.given(&server, "c.example"), c.certificate);
}

#[test]
fn a_port_with_tls_and_no_certificate_is_refused_with_what_to_do() {
    let site = Site::new("", "# nothing\n");
    let refused = site.config.run(env!("CARGO_BIN_EXE_traffic_server"), &[]);
    let said = refused.err();
    let why = "there is no certificate in ssl_multicert.config (at \"ssl\"); \
               name one by ssl_cert_name";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_port_whose_balancers_are_not_named_is_refused_with_what_to_do() {
    let site = Site::new("", "");
    let records = site.config.read("records.config").replace(":ssl", ":pp");
    site.config.write("records.config", &records);
    let refused = site.config.run(env!("CARGO_BIN_EXE_traffic_server"), &[]);
    let why = "nobody is believed who introduces a client (at \"pp\"); \
               set proxy.config.http.proxy_protocol_allowlist";
    assert!(refused.err().contains(why), "{}", refused.err());
}

#[test]
fn other_files_and_directories_by_record() {
    let records = "CONFIG proxy.config.ssl.server.multicert.filename STRING other.config\n\
        CONFIG proxy.config.ssl.server.cert.path STRING certificates\n";
    let site = Site::new(records, "not read\n");
    site.config.write(
        "other.config",
        "dest_ip=* ssl_cert_name=a.pem ssl_key_name=a.key ssl_ca_name=ca.pem\n",
    );
    std::fs::create_dir(site.config.path("certificates")).unwrap();
    let at = |name: &str| site.config.path(&format!("certificates/{name}"));
    let a = site.authority.issue(&["a.example"]);
    a.write_apart(&at("a.pem"), &at("a.key"));
    site.authority.write(&at("ca.pem"));
    let server = site.config.start();
    assert_eq!(site.given(&server, "a.example"), a.certificate);
    let page = get(server.admin(), "/certificates", "localhost");
    assert!(page.contains("\"file\":\"a.pem\""), "{page}");
    assert!(page.contains("\"names\":[\"a.example\"]"), "{page}");
    assert!(page.contains("\"faults\":[]"), "{page}");
    let first: u64 = site.metric("certificates_first_expiry").parse().unwrap();
    assert!(page.contains(&format!("\"expires\":{first}")), "{page}");
}

#[test]
fn two_thousand_certificates_are_served_each_to_its_name() {
    let mut multicert = String::new();
    for n in 0..2000 {
        writeln!(multicert, "ssl_cert_name=c{n}.pem").unwrap();
    }
    let site = Site::new(UNWATCHED, &multicert);
    let issued: Vec<Issued> = (0..2000)
        .map(|n| site.issue(&format!("c{n}.pem"), &format!("h{n}.example")))
        .collect();
    let server = site.config.start();
    for n in [0, 999, 1999] {
        let name = format!("h{n}.example");
        assert_eq!(site.given(&server, &name), issued[n].certificate);
    }
    assert_eq!(site.config.line(&["-x"]).ok(), "");
    assert_eq!(site.metric("certificates"), "2000");
}

#[test]
fn a_staple_that_is_none_is_named_and_refuses_neither_start_nor_certificate() {
    let site = Site::new(UNWATCHED, "ssl_cert_name=a.pem ssl_ocsp_name=a.ocsp\n");
    let a = site.issue("a.pem", "a.example");
    site.config.write("a.ocsp", "");
    let server = site.config.start();
    assert_eq!(site.given(&server, "a.example"), a.certificate);
    let answer = site.config.ctl(&["config", "reload"]).ok();
    for named in ["ssl_multicert.config:1:1: ", "a.ocsp is not stapled: "] {
        assert!(answer.contains(named), "{named}: {answer}");
    }
    let told = server.started();
    assert!(told.contains("a.ocsp is not stapled: "), "{told}");
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root: cargo test --features devices"
)]
fn a_start_that_gives_up_root_names_the_keys_it_can_t_read_again() {
    let records = "CONFIG proxy.config.admin.user_id STRING nobody\n\
                   CONFIG proxy.config.ssl.client.cert.filename STRING own.pem\n";
    let site = Site::new(
        &format!("{UNWATCHED}{records}"),
        "ssl_cert_name=a.pem\nssl_cert_name=b.pem\n",
    );
    let mode = |name: &str, mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(site.config.path(name), mode).unwrap();
    };
    mode("", 0o755);
    for (file, bits) in [("a.pem", 0o600), ("b.pem", 0o644), ("own.pem", 0o600)] {
        site.issue(file, "a.example");
        mode(file, bits);
    }
    let server = site.config.start();
    let told = server.started();
    let lost = |file: &str| {
        let lines = told.lines().filter(|line| line.contains("user_id read it"));
        lines.filter(|line| line.contains(file)).count()
    };
    let counts = ["/a.pem", "/b.pem", "/own.pem"].map(lost);
    assert_eq!(counts, [1, 0, 1], "{told}");
}
