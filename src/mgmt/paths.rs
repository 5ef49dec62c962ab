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

/// The configuration directory: `--config`, else `$STRATA_CONFIG`, else the
/// working directory if it holds records.config, else `/etc/strata`.
#[must_use]
pub fn config_dir(option: Option<PathBuf>, variable: Option<OsString>, working: &Path) -> PathBuf {
    let variable = variable.filter(|value| !value.is_empty());
    let named = option.or_else(|| variable.map(PathBuf::from));
    if let Some(dir) = named {
        // Collected by its parts, `.` does not stay in every path and message.
        return working.join(dir).components().collect();
    }
    if working.join(RECORDS_NAME).is_file() {
        return working.to_owned();
    }
    PathBuf::from(INSTALLED)
}

/// [`config_dir`] by this process's environment.
#[must_use]
pub fn config_dir_here(option: Option<PathBuf>) -> PathBuf {
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
        assert_eq!(by_option.as_os_str(), here.join("a").as_os_str());
        assert_eq!(config_dir(None, variable, here), Path::new("/b"));
        assert_eq!(config_dir(None, None, here), Path::new("/etc/strata"));
        std::fs::write(here.join(RECORDS_NAME), "").unwrap();
        assert_eq!(config_dir(None, Some("".into()), here), here);
    }
}
