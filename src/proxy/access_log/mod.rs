//! The access log: one line a transaction, written by a thread of its own.
//!
//! An event thread formats its lines into a buffer and hands the buffer over
//! when it is full or old; it never waits. When the writer can't keep up, the
//! lines are dropped and counted.

mod format;
mod writer;

pub use format::{Entry, Format};

use crate::config::records::Records;
use crate::metrics::{Cells, Metric};
use crate::proxy::settings::seconds;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use writer::Command;

/// Buffers that may wait for the writer, over all threads.
const QUEUE: usize = 256;
/// Bytes at which a thread hands its buffer over.
const BUFFER: usize = 16 * 1024;

/// What the log is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The directory, made if it isn't there.
    pub dir: PathBuf,
    /// The format, which names the file too.
    pub format: Format,
    /// How old a line may get before it is written
    /// (`log.max_secs_per_buffer`).
    pub flush: Duration,
    /// Whether transactions are logged (`log.logging_enabled` 2 or 3).
    pub enabled: bool,
}

impl LogOptions {
    /// The options that `records` say; `dir` where they name no directory.
    #[must_use]
    pub fn from_records(records: &Records, dir: PathBuf) -> Self {
        Self {
            dir: records
                .log_logfile_dir
                .as_deref()
                .map_or(dir, PathBuf::from),
            format: Format::named(&records.log_default_format),
            flush: seconds(records.log_max_secs_per_buffer),
            enabled: records.log_logging_enabled & 2 != 0,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.format.name()))
    }
}

/// The log, shared by all threads.
#[derive(Clone, Debug)]
pub struct AccessLog {
    format: Format,
    flush: Duration,
    queue: Option<SyncSender<Command>>,
    thread: Arc<writer::Thread>,
}

impl AccessLog {
    /// Opens the file and starts the writer.
    ///
    /// # Errors
    /// When the directory or the file can't be made or opened for writing.
    pub fn start(options: LogOptions) -> std::io::Result<Self> {
        if !options.enabled {
            return Ok(Self::off());
        }
        let (queue, thread) = writer::start(options.path(), QUEUE)?;
        Ok(Self {
            format: options.format,
            flush: options.flush,
            queue: Some(queue),
            thread: Arc::new(thread),
        })
    }

    /// A log that takes nothing.
    #[must_use]
    pub fn off() -> Self {
        Self {
            format: Format::named("strata"),
            flush: Duration::MAX,
            queue: None,
            thread: Arc::default(),
        }
    }

    /// One event thread's end of the log. A local task hands old lines over, so
    /// it must be made inside a `LocalSet`.
    #[must_use]
    pub fn sink(&self, cells: Arc<Cells>) -> LogSink {
        let sink = Sink {
            format: self.format.clone(),
            queue: self.queue.clone(),
            buffer: RefCell::default(),
            lines: Cell::new(0),
            cells,
        };
        let sink = Rc::new(sink);
        if self.queue.is_some() {
            tokio::task::spawn_local(flush_every(self.flush, Rc::downgrade(&sink)));
        }
        LogSink(sink)
    }

    /// Closes the file and opens its name again, after a rotation. Never waits.
    pub fn reopen(&self) {
        if let Some(queue) = &self.queue {
            // A full queue means that the writer is stuck: a later one will do.
            drop(queue.try_send(Command::Reopen));
        }
    }

    /// Writes what was handed over, and ends the writer. Blocks until then;
    /// later lines are dropped.
    pub fn stop(&self) {
        if let Some(queue) = &self.queue {
            self.thread.stop(queue);
        }
    }
}

/// One event thread's end of the log. Cloning it shares it.
#[derive(Clone, Debug)]
pub struct LogSink(Rc<Sink>);

#[derive(Debug)]
struct Sink {
    format: Format,
    queue: Option<SyncSender<Command>>,
    buffer: RefCell<Vec<u8>>,
    lines: Cell<u64>,
    cells: Arc<Cells>,
}

impl LogSink {
    /// Adds one transaction's line. Never waits.
    pub fn write(&self, entry: &Entry<'_>) {
        if self.0.queue.is_none() {
            return;
        }
        let mut buffer = self.0.buffer.borrow_mut();
        self.0.format.line(entry, &mut buffer);
        self.0.lines.set(self.0.lines.get() + 1);
        let full = buffer.len() >= BUFFER;
        drop(buffer);
        if full {
            self.0.hand_over();
        }
    }

    /// Hands over what has gathered.
    pub fn flush(&self) {
        self.0.hand_over();
    }
}

impl Sink {
    fn hand_over(&self) {
        let lines = self.lines.take();
        let Some(queue) = self.queue.as_ref().filter(|_| lines > 0) else {
            return;
        };
        let full = Vec::with_capacity(BUFFER + 1024);
        let text = self.buffer.replace(full);
        let counter = match queue.try_send(Command::Lines(text)) {
            Ok(()) => Metric::LogEntriesOk,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Metric::LogEntriesFail,
        };
        self.cells.add(counter, lines);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.hand_over();
    }
}

async fn flush_every(period: Duration, sink: Weak<Sink>) {
    loop {
        tokio::time::sleep(period).await;
        let Some(sink) = sink.upgrade() else { return };
        sink.hand_over();
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
