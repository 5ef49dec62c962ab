//! What requests become, by the behaviour that users see.

mod filters;
mod lookup;
mod model;
mod policy;
mod rewriting;
mod scale;

use super::{Found, RemapOptions, Table, TargetUrl};
use crate::config::Findings;
use crate::config::remap::parse;
use crate::http::target::RequestUrl;

const ATS: RemapOptions = RemapOptions {
    host_regex: super::HostRegex::Search,
    path_prefix: super::PathPrefix::Byte,
};

fn table(text: &str) -> Table {
    table_with(text, RemapOptions::default())
}

fn table_with(text: &str, options: RemapOptions) -> Table {
    let (table, findings) = built(text, options);
    assert_eq!(findings.errors, [], "{text}");
    table
}

fn built(text: &str, options: RemapOptions) -> (Table, Findings) {
    let no_include = |_: &str| Err("no includes here".to_owned());
    let (file, findings) = parse("remap.config", text.as_bytes(), &no_include);
    assert_eq!(findings.errors, [], "{text}");
    Table::build(&file, &options)
}

fn url(text: &str) -> RequestUrl {
    RequestUrl::parse(text).unwrap()
}

fn mapped(table: &Table, from: &str) -> Option<TargetUrl> {
    match table.find(&url(from)) {
        Found::Map { target, .. } => Some(target),
        Found::Redirect { .. } | Found::None => None,
    }
}

/// The target as text; `-` when no map rule takes the URL.
fn to(table: &Table, from: &str) -> String {
    mapped(table, from).map_or("-".to_owned(), |target| target.to_url())
}

/// Status and Location of a redirect; `-` when there is none.
fn redirect(table: &Table, from: &str) -> String {
    match table.find(&url(from)) {
        Found::Redirect { status, location } => format!("{status} {location}"),
        Found::Map { .. } | Found::None => "-".to_owned(),
    }
}
