//! docs/RECORDS.md, written from the tables.

use std::fmt::Write;

use super::aliases::{ALIASES, Reading};
use super::differences::DIFFERENCES;
use super::spec::{Honour, RecordSpec, Scope, Update};
use super::table::{RECORDS, find};

const HEAD: &str = "\
# Records

Written from the tables in `src/config/records/` by `UPDATE_DOCS=1 cargo test`; not edited by hand.

## The file

`records.config` has a record a line: `CLASS NAME TYPE VALUE`, with blanks or tabs between.

- CLASS is CONFIG or LOCAL, or PROCESS, NODE, CLUSTER; all mean the same. TYPE is INT, FLOAT or STRING.
- INT: decimal or `0x` hexadecimal, then at most one of K, M, G, T (upper case, powers of 1024).
- STRING: the rest of the line, without quotes or escapes. NULL unsets it, or resets it to its default where it can't be unset.
- `#` begins a comment as the first visible character of a line, and after an INT or FLOAT and a blank; there `//` does too. In a STRING it is text.
- A name set twice has its last value, with a warning. A line that can't be understood is skipped, with a warning.
- A value that is no number, or outside its record's range, is an error: at the start the server does not start, at a reload nothing changes.
- An unknown name is a warning that names the nearest record; a name that has no effect is a warning too.

The value in force is, in this order: the environment variable (the name in upper case, dots as underscores:
`PROXY_CONFIG_HTTP_SERVER_PORTS`), what `traffic_ctl config set` set while running, the file, the default.
`traffic_line -s` writes the file: it changes the value in its line and keeps the comments.

";

const BEHAVIOUR: &str = "\
What else is not as in ATS 9.2:

- Ranges are checked when a file is loaded, not only when a command sets a value.
- Text after a number is warned about (ATS ignores it silently); a comment may follow a number.
- A word that is no number is an error for an INT or FLOAT (ATS reads 0).
- `server_ports` refuses by name what is not supported yet, instead of opening a port that does less.
- `hostdb.timeout` is in seconds, as in ATS 9; ATS 4.2 has minutes.
- A host's regular expression matches the whole host, and a rule's path ends at a `/`: two records, below, restore ATS's way.
- A response is stored with its Set-Cookie left out; `http.cache.set_cookie` says otherwise.
- The proxy forwards to an origin that the client chooses only for the networks of `http.forward_allow`.
";

/// The whole page.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(HEAD);
    differences(&mut page);
    records(&mut page);
    aliases(&mut page);
    page
}

/// A line of the page.
macro_rules! line {
    ($page:ident, $($format:tt)*) => {
        writeln!($page, $($format)*).expect("a String takes all writes")
    };
}

fn differences(page: &mut String) {
    line!(page, "## Defaults that differ from ATS 9.2\n");
    line!(
        page,
        "| record | ATS 9.2 | Strata | why |\n|---|---|---|---|"
    );
    for row in DIFFERENCES {
        let ours = find(row.name).map(default_text).unwrap_or_default();
        line!(
            page,
            "| {} | {} | {ours} | {} |",
            row.name,
            row.ats,
            row.why
        );
    }
    line!(page, "\n{BEHAVIOUR}");
}

fn records(page: &mut String) {
    line!(page, "## All records\n");
    line!(
        page,
        "Change: `reload` holds at once, `restart` when the server starts again. A record that a rule may"
    );
    line!(
        page,
        "override (`@plugin=conf_remap.so @pparam=NAME=VALUE`) is marked `rule`. One that is not honoured yet is marked `no`: its default tells"
    );
    line!(
        page,
        "what Strata does, and another value is warned about.\n"
    );
    line!(
        page,
        "| record | type | default | range | change | rule | honoured | meaning |"
    );
    line!(page, "|---|---|---|---|---|---|---|---|");
    for spec in RECORDS {
        line!(page, "{}", row(spec));
    }
}

fn row(spec: &RecordSpec) -> String {
    let change = match spec.update {
        Update::Reload => "reload",
        Update::Restart => "restart",
    };
    let rule = match spec.scope {
        Scope::Rule => "rule",
        Scope::Global | Scope::Early => "",
    };
    let honoured = match spec.honour {
        Honour::Honoured => "yes",
        Honour::Ignored => "no",
    };
    let (name, kind, range) = (spec.name, spec.kind.word(), spec.check);
    let default = default_text(spec);
    let meaning = cell(spec.doc.concat().trim());
    format!(
        "| {name} | {kind} | {default} | {range} | {change} | {rule} | {honoured} | {meaning} |"
    )
}

fn aliases(page: &mut String) {
    line!(page, "\n## Names of other versions\n");
    line!(page, "| name | sets |\n|---|---|");
    for alias in ALIASES {
        let sets: Vec<_> = alias
            .sets
            .iter()
            .map(|(name, r)| format!("{name}{}", reading(*r)))
            .collect();
        line!(page, "| {} | {} |", alias.name, sets.join(", "));
    }
    line!(
        page,
        "\nThe other names of ATS 4.2.3, 9.2.9 and 11 are known, have no effect, and are warned about."
    );
}

/// What an alias's values become.
fn reading(reading: Reading) -> String {
    match reading {
        Reading::Same => String::new(),
        Reading::Words(words) => {
            let pairs = words
                .iter()
                .enumerate()
                .map(|(n, word)| format!("{n} = {word}"));
            format!(" ({})", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

fn default_text(spec: &RecordSpec) -> String {
    cell(&spec.default_value().to_string())
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn records_md_is_what_the_tables_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/RECORDS.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/RECORDS.md is stale: run UPDATE_DOCS=1 cargo test"
        );
    }

    #[test]
    fn every_default_that_differs_from_ats_9_2_is_listed_with_a_reason() {
        let listed: Vec<_> = DIFFERENCES.iter().map(|row| row.name).collect();
        let ats = include_str!("../../../tests/golden/ats/defaults-9.2.9.tsv");
        let differs = |(name, text): (&'static str, &str)| {
            let spec = find(name)?;
            let same = spec
                .read(text)
                .is_ok_and(|value| value == spec.default_value());
            (!same).then_some(name)
        };
        let found: Vec<_> = ats
            .lines()
            .filter_map(|l| l.split_once('\t'))
            .filter_map(differs)
            .collect();
        assert_eq!(listed, found);
    }

    #[test]
    fn no_cell_ends_early() {
        for spec in RECORDS {
            assert_eq!(
                row(spec).replace("\\|", "").matches('|').count(),
                9,
                "{}",
                spec.name
            );
        }
    }
}
