//! Which interface reads the devices, and why.

use super::uring;
use nix::errno::Errno;
use std::io;

/// What the operator asks for (`proxy.config.aio.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The best there is.
    Best,
    /// Threads, whatever there is.
    Threads,
    /// Rings, and a word if there are none.
    Rings,
}

/// How devices are read; writes always go by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A bounded pool of threads with pread.
    Threads,
    /// A ring of the thread that asks, where it drives one; else as `Threads`.
    Rings,
}

/// A backend, and how it came to it.
#[derive(Debug)]
pub struct Choice {
    /// What it is.
    pub backend: Backend,
    /// Why, for the log.
    pub why: String,
}

/// The backend for a wish, on this system, in this process.
#[must_use]
pub fn choose(wish: Wish) -> Choice {
    match wish {
        Wish::Threads => Choice {
            backend: Backend::Threads,
            why: "asked for".to_owned(),
        },
        Wish::Best | Wish::Rings => judge(uring::probe()),
    }
}

fn judge(probed: io::Result<()>) -> Choice {
    match probed {
        Ok(()) => Choice {
            backend: Backend::Rings,
            why: "the system gives rings".to_owned(),
        },
        Err(error) => Choice {
            backend: Backend::Threads,
            why: format!("io_uring_setup: {error}: {}", cure(&error)),
        },
    }
}

fn cure(error: &io::Error) -> &'static str {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    if matches!(errno, Errno::EPERM | Errno::EACCES) {
        return "forbidden: see sysctl kernel.io_uring_disabled and the container's seccomp profile";
    }
    if matches!(errno, Errno::ENOSYS | Errno::EOPNOTSUPP) {
        return "this kernel is older than Linux 5.11, or built without";
    }
    if errno == Errno::ENOMEM {
        return "raise the limit of locked memory (ulimit -l)";
    }
    "threads do as well, at more CPU"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_rings_gives_threads_and_says_what_forbids_them() {
        let forbidden = judge(Err(Errno::EPERM.into()));
        assert_eq!(forbidden.backend, Backend::Threads);
        assert!(
            forbidden.why.contains("io_uring_disabled"),
            "{}",
            forbidden.why
        );
        let old = judge(Err(Errno::ENOSYS.into()));
        assert_eq!(old.backend, Backend::Threads);
        assert!(old.why.contains("older"), "{}", old.why);
        assert_eq!(judge(Ok(())).backend, Backend::Rings);
        assert_eq!(choose(Wish::Threads).backend, Backend::Threads);
    }
}
