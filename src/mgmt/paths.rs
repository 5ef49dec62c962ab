//! Where the configuration lies, and what relative paths in it mean.

use super::load::{Environment, state_dir};
use super::socket::SOCKET_NAME;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that makes a directory a configuration.
pub const RECORDS_NAME: &str = "records.config";

/// Where packages keep the configuration.
const INSTALLED: &str = "/etc/strata";

/// The variable that names the directory.
pub const CONFIG_VARIABLE: &str = "STRATA_CONFIG";

/// What made a directory the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `--config`.
    Option,
    /// `$STRATA_CONFIG`.
    Variable,
    /// It is the working directory, and holds records.config.
    Working,
    /// Nothing else was there.
    Installed,
}

/// The configuration directory, and what made it that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDir {
    /// The directory, absolute.
    pub path: PathBuf,
    /// What made it the configuration.
    pub choice: Choice,
}

impl ConfigDir {
    /// A line for whoever may have meant another directory.
    #[must_use]
    pub fn explanation(&self) -> String {
        let why = match self.choice {
            Choice::Option => "by --config",
            Choice::Variable => "by $STRATA_CONFIG",
            Choice::Working => "the working directory, as it holds records.config",
            Choice::Installed => {
                "as there is no --config, no $STRATA_CONFIG, \
                 and no records.config in the working directory"
            }
        };
        let path = self.path.display();
        let absent = match self.path.try_exists() {
            Ok(false) => "; there is no such directory",
            Ok(true) | Err(_) => "",
        };
        format!("the configuration directory is {path}, {why}{absent}")
    }
}

/// The configuration directory: `--config`, else `$STRATA_CONFIG`, else the
/// working directory if it holds records.config, else `/etc/strata`.
#[must_use]
pub fn config_dir(
    option: Option<PathBuf>,
    variable: Option<OsString>,
    working: &Path,
) -> ConfigDir {
    let variable = variable.filter(|value| !value.is_empty());
    let by = |choice, path| ConfigDir { path, choice };
    // Collected by its parts, `.` does not stay in every path and message.
    let absolute = |dir: PathBuf| working.join(dir).components().collect();
    match (option, variable) {
        (Some(dir), _) => by(Choice::Option, absolute(dir)),
        (None, Some(dir)) => by(Choice::Variable, absolute(dir.into())),
        (None, None) if working.join(RECORDS_NAME).is_file() => {
            by(Choice::Working, working.to_owned())
        }
        (None, None) => by(Choice::Installed, INSTALLED.into()),
    }
}

/// [`config_dir`] by this process's environment.
#[must_use]
pub fn config_dir_here(option: Option<PathBuf>) -> ConfigDir {
    let working = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    config_dir(option, std::env::var_os(CONFIG_VARIABLE), &working)
}

/// The variables of this process that may override records.
#[must_use]
pub fn environment_here() -> Environment {
    let variables = std::env::vars_os();
    let texts = variables.filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.into_string().ok()?))
    });
    texts
        .filter(|(name, _)| name.starts_with("PROXY_"))
        .collect()
}

/// The control socket of the server of that configuration.
#[must_use]
pub fn socket_path(config_dir: &Path) -> PathBuf {
    state_dir(config_dir, environment_here()).join(SOCKET_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_beats_the_variable_beats_the_working_directory() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path();
        let variable = Some(OsString::from("/b"));
        let by_option = config_dir(Some("./a/.".into()), variable.clone(), here);
        assert_eq!(by_option.path.as_os_str(), here.join("a").as_os_str());
        assert!(
            by_option
                .explanation()
                .contains("a, by --config; there is no")
        );
        let by_variable = config_dir(None, variable, here);
        assert_eq!(by_variable.path, Path::new("/b"));
        assert!(by_variable.explanation().contains("by $STRATA_CONFIG"));
        let installed = config_dir(None, None, here);
        assert_eq!(installed.path, Path::new("/etc/strata"));
        assert!(installed.explanation().contains("as there is no --config"));
        std::fs::write(here.join(RECORDS_NAME), "").unwrap();
        let by_working = config_dir(None, Some("".into()), here);
        assert_eq!(by_working.path, here);
        let said = by_working.explanation();
        assert!(said.ends_with("as it holds records.config"), "{said}");
    }
}
