//! Where the server of a configuration is when records.config, or the
//! environment, names another state directory than it was started with.

use super::load::records_of;
use super::paths::environment_here;
use super::socket::BOUND_NAME;
use crate::config::records::Records;
use nix::unistd::{User, geteuid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file beside the socket that holds the configuration directory.
const NOTE_NAME: &str = "server.config";

/// The longest path that is read from it.
const PATH_BYTES_MAX: u64 = 4096;

/// All sockets of the system, a line each.
const SOCKETS: &str = "/proc/net/unix";

/// Leaves word of the configuration that the server of that state directory
/// runs by.
///
/// # Errors
///
/// The system's reason; commands then find the server by the records alone.
pub fn note(state_dir: &Path, config_dir: &Path) -> io::Result<()> {
    let config_dir = config_dir.canonicalize()?;
    std::fs::write(state_dir.join(NOTE_NAME), config_dir.as_os_str().as_bytes())
}

/// The state directory of a server that runs by the configuration in
/// `config_dir`, whatever its records say now. Only the word of root, of this
/// user and of the server's is taken.
#[must_use]
pub fn state_dir_of(config_dir: &Path) -> Option<PathBuf> {
    let records = records_of(config_dir, environment_here());
    let config_dir = config_dir.canonicalize().ok()?;
    let sockets = std::fs::read(SOCKETS).ok()?;
    let sockets = String::from_utf8_lossy(&sockets);
    let mut found = listening(&sockets);
    found.find(|dir| noted(dir, &records).is_some_and(|noted| noted == config_dir))
}

/// The directories of all control sockets that somebody listens on.
fn listening(sockets: &str) -> impl Iterator<Item = PathBuf> {
    let listens = |line: &&str| line.split_whitespace().nth(3) == Some("00010000");
    sockets.lines().filter(listens).filter_map(|line| {
        let path = line.get(line.find(" /")? + 1..)?;
        let dir = path.strip_suffix(BOUND_NAME)?.strip_suffix('/')?;
        Some(PathBuf::from(dir))
    })
}

fn noted(state_dir: &Path, records: &Records) -> Option<PathBuf> {
    let file = File::open(state_dir.join(NOTE_NAME)).ok()?;
    let owner = file.metadata().ok()?.uid();
    if !is_trusted(owner, &records.admin_user_id) {
        return None;
    }
    let mut path = Vec::new();
    file.take(PATH_BYTES_MAX).read_to_end(&mut path).ok()?;
    Some(OsString::from_vec(path).into())
}

fn is_trusted(owner: u32, server: &str) -> bool {
    let server = match server.strip_prefix('#') {
        Some(number) => number.parse().ok(),
        None => User::from_name(server)
            .ok()
            .flatten()
            .map(|user| user.uid.as_raw()),
    };
    owner == 0 || owner == geteuid().as_raw() || server == Some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mgmt::socket;

    #[test]
    fn a_server_is_found_by_its_configuration_while_it_listens() {
        let (state, config) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let socket = socket::bind(state.path()).unwrap();
        assert_eq!(state_dir_of(config.path()), None);
        note(state.path(), config.path()).unwrap();
        let found = state_dir_of(config.path());
        assert_eq!(found.as_deref(), Some(state.path()));
        assert_eq!(state_dir_of(state.path()), None);
        drop(socket);
        assert_eq!(state_dir_of(config.path()), None);
    }

    #[test]
    fn only_listening_control_sockets_are_looked_at() {
        let text = "\
Num       RefCount Protocol Flags    Type St Inode Path
0: 00000002 00000000 00010000 0001 01 11 /a b/var/control.new
0: 00000003 00000000 00000000 0001 03 12 /c/control.new
0: 00000002 00000000 00010000 0001 01 13 /run/other
0: 00000002 00000000 00010000 0001 01 14 @abstract/control.new
0: 00000003 00000000 00000000 0001 03 15
";
        assert!(listening(text).eq([PathBuf::from("/a b/var")]));
    }

    #[test]
    fn the_word_of_others_is_not_taken() {
        let me = geteuid().as_raw();
        assert!(is_trusted(0, "#-1") && is_trusted(me, "#-1"));
        assert!(is_trusted(me + 7, &format!("#{}", me + 7)));
        assert!(!is_trusted(me + 7, "#-1") && !is_trusted(me + 7, "nosuch"));
    }
}
