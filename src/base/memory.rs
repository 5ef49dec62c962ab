//! How much memory this process may take.

use std::path::Path;

/// Bytes of memory that the machine has, or that the control group of this
/// process may take if that is less; `None` where the system does not say.
#[must_use]
pub fn bytes() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine(&text));
    let group =
        read(Path::new("/proc/self/cgroup")).and_then(|text| Some(group(&text)?.to_owned()));
    let limits = group.into_iter().flat_map(|group| {
        let root = Path::new("/sys/fs/cgroup");
        let within = root.join(group);
        let groups = within.ancestors().take_while(|at| at.starts_with(root));
        let limits = groups.filter_map(|at| read(&at.join("memory.max"))?.trim().parse().ok());
        limits.collect::<Vec<u64>>()
    });
    machine.into_iter().chain(limits).min()
}

/// What `/proc/meminfo` says of the whole machine, in bytes.
fn machine(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The path of the group of version 2, relative to the root of all.
fn group(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!line.split('/').any(|part| part == "..")).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_s_memory_is_read_in_kibibytes() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(machine(text), Some(16 << 20));
        for other in ["", "MemTotal:\n", "MemTotal: 1 GB\n", "MemTotal: -1 kB\n"] {
            assert_eq!(machine(other), None, "{other:?}");
        }
        assert!(bytes().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn the_group_of_version_2_is_found_and_none_outside_of_the_root() {
        let text = "12:cpu:/else\n0::/system.slice/strata.service\n";
        assert_eq!(group(text), Some("system.slice/strata.service"));
        assert_eq!(group("0::/\n"), Some(""));
        assert_eq!(group("0::/../../other\n"), None);
        assert_eq!(group("12:cpu:/else\n"), None);
    }
}
