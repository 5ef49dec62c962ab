//! The house rules that a compiler can't check: floors, file sizes, banned
//! words, the layout of the top level, the shape of docs.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module may use floors below its own only.
const FLOORS: &[(&str, u8)] = &[
    ("base", 0),
    ("device", 1),
    ("http", 1),
    ("config", 1),
    ("metrics", 1),
    ("cache", 2),
    ("remap", 2),
    ("proxy", 3),
    ("mgmt", 4),
    ("server", 5),
];

/// Modules that do no I/O, read no clock and spawn nothing.
const PURE: &[&str] = &[
    "src/http/",
    "src/config/",
    "src/remap/",
    "src/cache/format/",
    "src/cache/directory/",
    "src/cache/stripe/",
    "src/proxy/decide",
];

/// What a pure module must not name, and what it does instead.
const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "take the bytes as an argument"),
    ("std::net::Tcp", "take the bytes as an argument"),
    ("std::thread", "return a plan; the caller spawns"),
    ("tokio::", "return a plan; the caller waits"),
    ("SystemClock", "take `now` as an argument"),
    ("system_u64", "take the number as an argument"),
    ("system_u128", "take the number as an argument"),
];

/// Files that may hold `unsafe`; each has a decision note.
const UNSAFE_FILES: &[&str] = &[
    "src/base/huge.rs",
    "src/device/ioctl.rs",
    "src/device/uring.rs",
    "tests/allocations.rs",
    "tests/ram_memory.rs",
];

/// Text that does not belong in the tree, and what to write instead.
/// Split so that this file does not contain what it bans.
const BANNED: &[(&str, &str, &str)] = &[
    ("FIX", "ME", "mend it, or file an issue"),
    ("XX", "X:", "mend it, or file an issue"),
    ("TO", "DO", "do it, or file an issue"),
    ("todo", "!(", "write the body"),
    ("unimplemented", "!(", "write the body"),
    ("#[allow", "(", "#[expect(lint, reason = \"…\")]"),
    ("#![allow", "(", "#![expect(lint, reason = \"…\")]"),
    ("should_", "panic", "assert on the error value"),
    ("// =", "==", "a module or a file of its own"),
    ("// --", "--", "a module or a file of its own"),
];

/// The longest file, in lines without its test module.
const FILE_LINES_MAX: usize = 500;

/// Files that are one table: as long as they have rows.
const TABLES: &[&str] = &["src/metrics/rows.rs"];

/// Public functions without a caller in src, and who calls them instead.
const CALLED_FROM_OUTSIDE: &[(&str, &str)] = &[
    ("crowd", "tests have a device refuse reads by it"),
    ("spoil", "tests have sectors of a device go bad by it"),
    (
        "hang_inside",
        "tests have a device leave the writes of stripes unanswered by it",
    ),
    ("edit", "tests damage a disk by it"),
    ("in_process", "a program that runs a server inside itself"),
    ("is_complete", "tests of the decoder ask at every cut"),
    ("remembered_len", "tests bound the memory by it"),
];

/// What may lie at the top of the tree.
const TOP_LEVEL: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "README.md",
    "benches",
    "docs",
    "etc",
    "records.config",
    "remap.config",
    "src",
    "storage.config",
    "tests",
];

/// What building and running leave there; git ignores it.
const MADE_HERE: &[&str] = &["target", "var"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Every text file of the tree below `dirs`, by its path from the root.
fn texts(dirs: &[&str], endings: &[&str]) -> BTreeMap<String, String> {
    let mut paths = Vec::new();
    for dir in dirs {
        let dir = root().join(dir);
        if dir.is_dir() {
            files_below(&dir, &mut paths);
        }
    }
    let wanted = |path: &PathBuf| {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        endings.contains(&ending)
    };
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        (name.to_owned(), fs::read_to_string(&path).unwrap())
    };
    paths.into_iter().filter(wanted).map(read).collect()
}

fn sources() -> BTreeMap<String, String> {
    texts(&["src"], &["rs"])
}

/// The lines above the file's test module, which ends the file; one that is
/// declared further up ends nothing.
fn without_tests(text: &str) -> &str {
    const TESTS: &str = "\n#[cfg(test)]\nmod ";
    let starts = text.match_indices(TESTS);
    let is_last = |start: usize| {
        let rest = text.get(start + TESTS.len()..).unwrap();
        let (line, behind) = rest.split_once('\n').unwrap();
        line.ends_with('{') || behind.trim().is_empty()
    };
    let end = starts.map(|(start, _)| start).find(|start| is_last(*start));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn modules_use_lower_floors_only() {
    let mut faults = Vec::new();
    for (name, text) in sources() {
        let module = name.split('/').nth(1).unwrap().trim_end_matches(".rs");
        let Some((_, floor)) = FLOORS.iter().find(|(m, _)| *m == module) else {
            continue;
        };
        for (line_no, line) in text.lines().enumerate() {
            for (used, used_floor) in FLOORS {
                let names_it = line.contains(&format!("crate::{used}::"))
                    || line.contains(&format!("crate::{used};"));
                if names_it && *used != module && used_floor >= floor {
                    faults.push(format!(
                        "{name}:{}: {module} (floor {floor}) uses {used} (floor {used_floor})",
                        line_no + 1
                    ));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn every_module_of_the_library_has_a_floor() {
    let library = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let modules = library.lines().filter_map(|l| l.strip_prefix("pub mod "));
    for module in modules {
        let module = module.trim_end_matches(';');
        assert!(
            FLOORS.iter().any(|(name, _)| *name == module),
            "src/lib.rs: {module} has no floor in tests/tidy.rs"
        );
    }
}

#[test]
fn pure_modules_do_no_io_and_read_no_clock() {
    let mut faults = Vec::new();
    for (name, text) in sources() {
        if !PURE.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        for (line_no, line) in without_tests(&text).lines().enumerate() {
            for (impure, instead) in IMPURE {
                if line.contains(impure) && !line.trim_start().starts_with("//") {
                    faults.push(format!("{name}:{}: {impure}: {instead}", line_no + 1));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn unsafe_stays_in_its_listed_files() {
    for (name, text) in sources() {
        let folded: String = text.split_whitespace().collect();
        assert!(
            !folded.contains("expect(unsafe_code") || UNSAFE_FILES.contains(&name.as_str()),
            "{name}: unsafe belongs in one of {UNSAFE_FILES:?}"
        );
    }
}

#[test]
fn banned_text_is_nowhere() {
    let mut faults = Vec::new();
    let dirs = ["src", "tests", "benches", "docs", "etc"];
    for (name, text) in texts(&dirs, &["rs", "md", "sh", "toml"]) {
        for (line_no, line) in text.lines().enumerate() {
            for (head, tail, instead) in BANNED {
                if line.contains(&format!("{head}{tail}")) {
                    faults.push(format!("{name}:{}: {head}{tail}: {instead}", line_no + 1));
                }
            }
        }
    }
    report(&faults);
}

#[test]
fn files_stay_short() {
    let mut faults = Vec::new();
    for (name, text) in sources() {
        let lines = without_tests(&text).lines().count();
        if lines > FILE_LINES_MAX && !TABLES.contains(&name.as_str()) {
            faults.push(format!(
                "{name}: {lines} lines without tests; split it by noun"
            ));
        }
    }
    report(&faults);
}

#[test]
fn every_source_file_opens_with_its_purpose() {
    let mut faults = Vec::new();
    for (name, text) in texts(&["src", "tests", "benches"], &["rs"]) {
        if !text.starts_with("//!") {
            faults.push(format!("{name}: begin with //! and what the file is for"));
        }
    }
    report(&faults);
}

/// A file that is compiled for tests only.
fn is_test_file(name: &str) -> bool {
    let stem = name.trim_end_matches(".rs");
    name.contains("/tests/") || stem.ends_with("tests") || stem.ends_with("testing")
}

/// What src says outside its tests and comments, by file.
fn shipped() -> BTreeMap<String, String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code = |text: &str| {
        let lines: Vec<_> = without_tests(text).lines().filter(is_code).collect();
        lines.join("\n")
    };
    let sources = sources().into_iter();
    let shipped = sources.filter(|(name, _)| !is_test_file(name));
    shipped.map(|(name, text)| (name, code(&text))).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// How often each word stands in the files whose names `wanted` takes.
fn word_counts(
    files: &BTreeMap<String, String>,
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    let files = files.iter().filter(|(name, _)| wanted(name));
    for word in files.flat_map(|(_, text)| words(text)) {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

/// The name of the public function that a line declares.
fn public_function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (head, rest) = line.split_once("fn ")?;
    let is_public = head.starts_with("pub") && !head.contains('"');
    is_public.then(|| words(rest).next()).flatten()
}

#[test]
fn every_public_function_has_a_caller() {
    let shipped = shipped();
    let counts = word_counts(&shipped, |_| true);
    let mut faults = Vec::new();
    for (function, _) in CALLED_FROM_OUTSIDE {
        let times = counts.get(function).copied().unwrap_or(0);
        assert_eq!(times, 1, "{function} needs no place in CALLED_FROM_OUTSIDE");
    }
    for (name, text) in &shipped {
        for function in text.lines().filter_map(public_function) {
            let listed = CALLED_FROM_OUTSIDE.iter().any(|(f, _)| *f == function);
            if counts.get(function) == Some(&1) && !listed {
                faults.push(format!(
                    "{name}: only tests call {function}: use it or remove it"
                ));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_honoured_record_is_read_outside_config() {
    let shipped = shipped();
    let users = word_counts(&shipped, |name| !name.starts_with("src/config/"));
    let mut faults = Vec::new();
    let mut rows = 0;
    for (name, text) in &shipped {
        let of_table = name.starts_with("src/config/records/rows_");
        let honoured = |line: &&str| of_table && line.ends_with(", Honoured;");
        for row in text.lines().filter(honoured) {
            let field = words(row).next().unwrap();
            rows += 1;
            if !users.contains_key(field) {
                faults.push(format!("{name}: {field} is Honoured, but nothing reads it"));
            }
        }
    }
    assert!(rows > 50, "only {rows} honoured rows found");
    report(&faults);
}

/// The texts of tests, but for those of the configuration's grammar, which set
/// records without an effect.
fn test_texts() -> Vec<String> {
    let tests = texts(&["tests"], &["rs"]).into_iter();
    let tests = tests.filter(|(name, _)| !name.starts_with("tests/config/"));
    let mut found: Vec<String> = tests.map(|(_, text)| text).collect();
    for (name, text) in sources() {
        let of_table = name.starts_with("src/config/records/");
        let from = match is_test_file(&name) {
            true => 0,
            false => without_tests(&text).len(),
        };
        found.extend(text.get(from..).filter(|_| !of_table).map(str::to_owned));
    }
    found
}

/// A test that sets a record spells its name, with or without `proxy.config.`,
/// or its field of `Records`.
#[test]
fn every_honoured_record_is_set_by_a_test_of_its_effect() {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let tests = test_texts();
    let words = tests.iter().flat_map(|text| text.split(|c| !of_name(c)));
    let spelled: BTreeSet<&str> = words.map(|word| word.trim_matches('.')).collect();
    let mut faults = Vec::new();
    for (file, text) in texts(&["src/config/records"], &["rs"]) {
        let honoured = |line: &&str| line.ends_with(", Honoured;");
        for row in text.lines().filter(honoured) {
            let field = row.split(':').next().unwrap();
            let name = row
                .split('"')
                .find(|part| part.starts_with("proxy.config."));
            let short = name.unwrap().trim_start_matches("proxy.config.");
            let full = format!("proxy.config.{short}");
            if ![field, short, &full]
                .iter()
                .any(|name| spelled.contains(name))
            {
                faults.push(format!("{file}: {full} is Honoured, but no test sets it"));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_metric_is_moved_somewhere() {
    let shipped = shipped();
    let rows = shipped.get("src/metrics/rows.rs").unwrap();
    // Who reads a metric does not move it.
    let reads = ["src/metrics/rows.rs", "src/metrics/derived.rs"];
    let users = word_counts(&shipped, |name| {
        !reads.iter().any(|at| name.starts_with(at))
    });
    let is_row = |line: &&str| line.ends_with(", Counter;") || line.ends_with(", Gauge;");
    let mut faults = Vec::new();
    for row in rows.lines().filter(is_row) {
        let metric = words(row.trim_start()).next().unwrap();
        if !users.contains_key(metric) {
            faults.push(format!("src/metrics/rows.rs: nothing moves {metric}"));
        }
    }
    report(&faults);
}

/// The texts of `#[error("…")]` in a file.
fn error_texts(text: &str) -> impl Iterator<Item = &str> {
    let texts = text.split("#[error(\"").skip(1);
    texts.filter_map(|rest| rest.split("\")]").next())
}

#[test]
fn error_texts_can_stand_inside_a_sentence() {
    let mut faults = Vec::new();
    for (name, text) in shipped() {
        for error in error_texts(&text) {
            // A field name, as in "Content-Length is too large", has a hyphen.
            let word = error.split(' ').next().unwrap_or_default();
            let is_name = word.contains('-') || word.chars().all(char::is_uppercase);
            let is_sentence = word.starts_with(char::is_uppercase) && !is_name;
            if is_sentence || error.ends_with('.') {
                faults.push(format!(
                    "{name}: \"{error}\": begin in lower case, end without a period"
                ));
            }
        }
    }
    report(&faults);
}

/// The files that may declare the module in `path`, and its name.
fn declaring_files(path: &Path) -> (Vec<PathBuf>, String) {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let dir = path.parent().unwrap();
    let (module, owner) = match stem {
        "mod" => (
            dir.file_name().unwrap().to_str().unwrap(),
            dir.parent().unwrap(),
        ),
        other => (other, dir),
    };
    let files = ["mod.rs", "lib.rs", "main.rs"].map(|file| owner.join(file));
    let mut files = files.to_vec();
    files.push(owner.with_extension("rs"));
    (files, format!("mod {module};"))
}

#[test]
fn every_source_file_is_reached_by_a_module_line() {
    let mut faults = Vec::new();
    let sources = sources();
    for name in sources.keys() {
        let path = Path::new(name);
        let is_root = name == "src/lib.rs"
            || path.parent() == Some(Path::new("src/bin"))
            || name.ends_with("/main.rs");
        let (owners, line) = declaring_files(path);
        let file = path.file_name().unwrap().to_str().unwrap();
        let by_path = format!("#[path = \"{file}\"]");
        let beside = sources.iter().any(|(other, text)| {
            Path::new(other).parent() == path.parent() && text.contains(&by_path)
        });
        let declared = owners.iter().any(|owner| {
            let text = sources.get(owner.to_str().unwrap());
            text.is_some_and(|text| text.contains(&line))
        });
        if !is_root && !declared && !beside {
            faults.push(format!("{name}: no `{line}` reaches it"));
        }
    }
    report(&faults);
}

#[test]
fn the_top_level_holds_only_what_the_architecture_names() {
    let mut faults = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_named = TOP_LEVEL.contains(&name.as_str());
        let is_made = MADE_HERE.contains(&name.as_str());
        if !name.starts_with('.') && !is_named && !is_made {
            faults.push(format!("{name}: not a place of docs/ARCHITECTURE.md"));
        }
    }
    report(&faults);
}

/// The targets of `[text](target)` links.
fn links(text: &str) -> Vec<&str> {
    let parts = text.split("](").skip(1);
    parts.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn documents_have_a_title_and_no_dead_links() {
    let mut faults = Vec::new();
    let mut docs = texts(&["docs"], &["md"]);
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    docs.insert("README.md".into(), readme);
    for (name, text) in docs {
        if !name.starts_with("docs/changelog.d/") && !text.starts_with("# ") {
            faults.push(format!("{name}: begin with a # title"));
        }
        for target in links(&text) {
            let file = target.split('#').next().unwrap();
            let beside = root().join(&name).parent().unwrap().join(file);
            if !target.contains("://") && !file.is_empty() && !beside.exists() {
                faults.push(format!("{name}: {target} does not exist"));
            }
        }
    }
    report(&faults);
}
