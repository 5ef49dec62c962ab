//! The thread that writes the file.

use crate::base::clock::{Clock, MonoTime, SystemClock};
use crate::base::complaints::Complaints;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Command {
    /// Whole lines to be written.
    Lines(Vec<u8>),
    /// The file was moved away: open its name again.
    Reopen,
    /// No more comes.
    Stop,
}

/// The writer's handle, if there is one.
#[derive(Debug, Default)]
pub(super) struct Thread(Mutex<Option<JoinHandle<()>>>);

impl Thread {
    /// Waits for the writer to end. A second call does nothing.
    pub(super) fn stop(&self, queue: &SyncSender<Command>) {
        let Some(handle) = self.0.lock().take() else {
            return;
        };
        // Both fail only if the writer is gone already.
        drop(queue.send(Command::Stop));
        drop(handle.join());
    }
}

/// Opens the file and starts the thread.
pub(super) fn start(path: PathBuf, queue: usize) -> io::Result<(SyncSender<Command>, Thread)> {
    let mut writer = Writer::open(path)?;
    let (sender, receiver) = sync_channel(queue);
    let handle = std::thread::Builder::new()
        .name("access-log".to_owned())
        .spawn(move || run(&mut writer, &receiver))?;
    Ok((sender, Thread(Mutex::new(Some(handle)))))
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn run(writer: &mut Writer, commands: &Receiver<Command>) {
    let clock = SystemClock::new();
    while let Ok(command) = commands.recv() {
        let failed = match command {
            Command::Lines(text) => writer.write(&text, clock.mono()),
            Command::Reopen => writer.reopen(),
            Command::Stop => return,
        };
        if let Some(failed) = failed {
            tracing::error!("{failed}");
        }
    }
}

/// The file, and what is told of it.
struct Writer {
    path: PathBuf,
    file: File,
    failures: Complaints,
}

impl Writer {
    fn open(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            file: open(&path)?,
            path,
            failures: Complaints::default(),
        })
    }

    /// Writes lines; gives what is to be told. A full disk fails hundreds of
    /// buffers a second.
    fn write(&mut self, lines: &[u8], now: MonoTime) -> Option<String> {
        let error = self.file.write_all(lines).err()?;
        let untold = self.failures.due(now)?;
        let path = self.path.display();
        Some(format!(
            "{path}: {error}; lines of the access log are lost \
             (writes that failed since this was last told: {untold} more)"
        ))
    }

    /// Opens the file's name again; gives what is to be told.
    fn reopen(&mut self) -> Option<String> {
        match open(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => return Some(format!("{}: {error}", self.path.display())),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_fail_are_told_once_a_second_with_their_number() {
        let mut writer = Writer::open(PathBuf::from("/dev/full")).unwrap();
        let mut at = |millis: u64| {
            let now = MonoTime::from_nanos(millis * 1_000_000);
            writer.write(b"line\n", now)
        };
        let told: Vec<_> = (0..=1000).step_by(10).filter_map(&mut at).collect();
        let counts = [": 0 more)", ": 99 more)"];
        assert_eq!(told.len(), 2, "{told:?}");
        for (told, count) in told.iter().zip(counts) {
            assert!(told.starts_with("/dev/full: No space left"), "{told}");
            assert!(told.ends_with(count), "{told}");
        }
    }
}
