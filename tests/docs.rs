//! Documents that are written from the code: stale ones fail, and
//! `UPDATE_DOCS=1 cargo test --test docs` writes them.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const INTRODUCTION: &str = "# What lies on a device\n\n\
     Written from the module docs of `src/cache/format/` by `UPDATE_DOCS=1 cargo test --test docs`; \
     each table there is checked against its struct.\n\
     Integers are little-endian; every record has a magic, a version and a checksum of its own; \
     `tests/golden/` holds an image of each.\n\n\
     A version reads the images of the one before it, and `tests/golden/` keeps a whole span of each that is read \
     ([0016](decisions/0016-formats-are-read-one-version-back.md)); an older one is refused by its number.\n";

/// The `//!` lines of a file, without their marks.
fn module_doc(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut doc = String::new();
    for line in lines {
        writeln!(doc, "{}", line.strip_prefix(' ').unwrap_or(line)).unwrap();
    }
    doc
}

fn format_files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cache/format");
    let entries = fs::read_dir(dir).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
    files.sort();
    files
}

fn format_document() -> String {
    let mut document = INTRODUCTION.to_owned();
    for file in format_files() {
        let doc = module_doc(&file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        if doc.contains("\n| offset") || doc.contains("\n|  offset") {
            write!(
                document,
                "\n## {name}\n\n{}",
                doc.replace("\n## ", "\n### ")
            )
            .unwrap();
        }
    }
    document
}

#[test]
fn format_md_is_what_the_format_modules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/FORMAT.md");
    let wanted = format_document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/FORMAT.md is stale: UPDATE_DOCS=1 cargo test --test docs"
    );
}

/// Every `.rs` file below a directory of the tree.
fn sources_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// What a table may name: every function, and every module by its file or its
/// directory.
fn names() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "tests"] {
        sources_below(&root.join(dir), &mut files);
    }
    let mut names = BTreeSet::from(["tests".to_owned()]);
    for file in files {
        let place = file.iter().chain(file.file_stem());
        names.extend(place.map(|part| part.to_str().unwrap().to_owned()));
        let text = fs::read_to_string(&file).unwrap();
        let functions = text.lines().filter_map(|line| line.split_once("fn "));
        let functions = functions.filter_map(|(_, rest)| rest.split(['(', '<']).next());
        names.extend(functions.map(str::to_owned));
    }
    names
}

/// The words in backticks of a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_decision_of_http_md_names_tests_that_exist() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/HTTP.md"));
    let names = names();
    let mut faults = Vec::new();
    let mut rows = 0;
    for line in text.unwrap().lines().filter(|line| line.starts_with("| ")) {
        let cell = line.rsplit('|').nth(1).unwrap().trim();
        if cell == "test" {
            continue;
        }
        rows += 1;
        let unknown: Vec<_> = quoted(cell)
            .filter(|test| !test.split("::").all(|part| names.contains(part)))
            .collect();
        let tells = quoted(cell).next().is_some() || cell.starts_with("the same");
        if !tells || !unknown.is_empty() {
            faults.push(format!("no test {unknown:?}: {line}"));
        }
    }
    assert!(rows > 100, "only {rows} rows");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
