//! The thread that writes the file.

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
    let file = open(&path)?;
    let (sender, receiver) = sync_channel(queue);
    let handle = std::thread::Builder::new()
        .name("access-log".to_owned())
        .spawn(move || run(&path, file, &receiver))?;
    Ok((sender, Thread(Mutex::new(Some(handle)))))
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn run(path: &Path, mut file: File, commands: &Receiver<Command>) {
    while let Ok(command) = commands.recv() {
        let done = match command {
            Command::Lines(text) => file.write_all(&text),
            Command::Reopen => open(path).map(|opened| file = opened),
            Command::Stop => return,
        };
        if let Err(error) = done {
            tracing::error!("{}: {error}", path.display());
        }
    }
}
