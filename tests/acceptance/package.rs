//! What `etc/package/` installs: by itself, and as a Debian package.

use crate::http;
use crate::process::Process;
use crate::site::{free_port, run};
use crate::until::until;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const PROGRAMS: [&str; 4] = ["jtest", "traffic_ctl", "traffic_line", "traffic_server"];
const FILES_OF_ETC: [&str; 4] = [
    "/etc/strata/records.config",
    "/etc/strata/remap.config",
    "/etc/strata/storage.config",
    "/etc/udev/rules.d/61-strata.rules",
];

/// The directory of this build's programs.
fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_traffic_server"))
        .parent()
        .unwrap()
}

fn script(name: &str) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("etc/package");
    Command::new(scripts.join(name))
}

fn ok(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A directory that stands for `/`.
struct Root(TempDir);

impl Root {
    fn installed() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        root.install(built());
        root
    }

    fn install(&self, programs: &Path) -> String {
        let mut install = script("install.sh");
        ok(install
            .env("DESTDIR", self.0.path())
            .env("PROGRAMS", programs))
    }

    fn path(&self, absolute: &str) -> PathBuf {
        self.0.path().join(absolute.trim_start_matches('/'))
    }

    fn text(&self, absolute: &str) -> String {
        fs::read_to_string(self.path(absolute)).unwrap()
    }

    /// The installed server, on these ports; where it would use what a test
    /// has not, the user and the state, it is told so by the environment.
    fn server(&self, port: u16, admin: u16) -> Command {
        let mut server = Command::new(self.path("/usr/bin/traffic_server"));
        let ports = format!("ip-in=127.0.0.1:{port}");
        server
            .arg("--config")
            .arg(self.path("/etc/strata"))
            .env("PROXY_CONFIG_ADMIN_USER_ID", "#-1")
            .env("PROXY_CONFIG_LOCAL_STATE_DIR", self.path("/var/lib/strata"))
            .env("PROXY_CONFIG_HTTP_SERVER_PORTS", ports)
            .env("PROXY_CONFIG_ADMIN_LISTEN", format!("127.0.0.1:{admin}"));
        server
    }

    fn verified(&self) -> Output {
        let mut server = self.server(0, 0);
        server.args(["-C", "verify_config"]).output().unwrap()
    }
}

/// All regular files below a directory, as absolute paths of its root.
fn files(root: &Path, below: &str) -> Vec<String> {
    let dir = root.join(below.trim_start_matches('/'));
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(root, &path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn an_installed_server_verifies_its_files_and_has_no_demo() {
    let root = Root::installed();
    let verified = root.verified();
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success(), "{said}");
    assert!(said.contains(" 0 rules, 0 spans"), "{said}");

    let (port, admin) = (free_port(), free_port());
    fs::create_dir_all(root.path("/var/lib")).unwrap();
    let server = Process::start(&mut root.server(port, admin));
    until("ready", || {
        http::get(admin, "/readyz").is_ok_and(|answer| answer.status == 200)
    });
    assert_eq!(http::get(port, "/demo/15000/a").unwrap().status, 404);
    server.signal("-TERM");
    assert!(server.ended().success());
}

#[test]
fn a_second_install_renews_the_programs_and_keeps_the_operator_s_files() {
    let root = Root::installed();
    for file in FILES_OF_ETC {
        fs::write(root.path(file), "# mine\n").unwrap();
    }
    let newer = tempfile::tempdir().unwrap();
    for program in PROGRAMS {
        let path = newer.path().join(program);
        fs::write(&path, "newer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let said = root.install(newer.path());
    for file in FILES_OF_ETC {
        assert_eq!(root.text(file), "# mine\n", "{file}");
        assert!(said.contains(&format!("kept: {}", root.path(file).display())));
    }
    for program in PROGRAMS {
        assert_eq!(root.text(&format!("/usr/bin/{program}")), "newer");
    }
}

#[test]
fn an_install_without_programs_changes_nothing_and_names_the_cure() {
    let root = Root(tempfile::tempdir().unwrap());
    let mut install = script("install.sh");
    let none = root.path("/none");
    let output = install.env("DESTDIR", root.0.path()).env("PROGRAMS", none);
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cargo build --release"), "{said}");
    assert_eq!(files(root.0.path(), ""), [""; 0]);
}

#[test]
fn what_the_unit_names_is_installed_and_has_the_user_of_the_records() {
    let root = Root::installed();
    let unit = root.text("/usr/lib/systemd/system/strata.service");
    let settings = unit.lines().filter(|line| !line.starts_with('#'));
    let names = settings.flat_map(|line| line.split([' ', '=']));
    let names = names.map(|word| word.trim_start_matches("file://"));
    let ours: Vec<_> = names
        .filter(|name| name.starts_with("/usr/") || name.starts_with("/etc/"))
        .collect();
    assert!(ours.len() >= 5, "{ours:?}");
    for name in ours {
        assert!(root.path(name).exists(), "{name}");
    }
    let records = root.text("/etc/strata/records.config");
    assert!(records.contains("admin.user_id STRING strata\n"));
    let users = root.text("/usr/lib/sysusers.d/strata.conf");
    assert!(users.contains("\nu strata "), "{users}");
}

#[test]
fn the_debian_package_lists_its_files_of_etc_and_belongs_to_root() {
    let dir = tempfile::tempdir().unwrap();
    let mut build = script("build-deb.sh");
    build.arg(dir.path()).arg("-Znone").env("PROGRAMS", built());
    ok(&mut build);
    let mut made = fs::read_dir(dir.path()).unwrap();
    let package = made.next().unwrap().unwrap().path();
    let package = package.to_str().unwrap();
    assert!(package.contains(concat!("/strata_", env!("CARGO_PKG_VERSION"), "_")));
    let (control, root) = (dir.path().join("control"), dir.path().join("root"));
    for (option, target) in [("--control", &control), ("--extract", &root)] {
        let target = target.to_str().unwrap();
        let output = run("dpkg-deb", &[option, package, target]);
        assert!(output.status.success(), "{output:?}");
    }
    let conffiles = fs::read_to_string(control.join("conffiles")).unwrap();
    let conffiles: Vec<_> = conffiles.lines().collect();
    assert_eq!(conffiles, FILES_OF_ETC);
    assert_eq!(files(&root, "/etc"), FILES_OF_ETC);
    assert_eq!(
        files(&root, "/usr/bin"),
        PROGRAMS.map(|name| format!("/usr/bin/{name}"))
    );
    let fields = fs::read_to_string(control.join("control")).unwrap();
    assert!(fields.contains("\nDepends: libc6 (>= 2."), "{fields}");
    assert_eq!(fields.matches('@').count(), 1, "the maintainer's: {fields}");
    let listed = run("dpkg-deb", &["--contents", package]).stdout;
    let listed = String::from_utf8(listed).unwrap();
    assert!(listed.lines().all(|line| line.contains(" root/root ")));
}
