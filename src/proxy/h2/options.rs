//! What an HTTP/2 connection is bounded by.

use super::watch::FrameLimits;
use h2::server::Builder;
use std::time::Duration;

/// Bytes of responses that a stream holds beyond what the socket takes. The
/// bytes are shared with the cache, so what they cost is not the copy.
const SEND_BUFFER: usize = 65_536;

/// Bytes of requests that a connection with a wide window may hold, all its
/// streams together.
const CONNECTION_WINDOW_MAX: u32 = 1 << 20;

/// The bounds of one HTTP/2 connection, taken from the records (`http2.*`) when
/// it opens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct H2Options {
    /// Whether a cleartext connection that begins with the preface is one of
    /// HTTP/2 (`http2.prior_knowledge_in`).
    pub prior_knowledge: bool,
    /// Whether WebSockets are passed on (`http.upgrade_protocols`), so that
    /// extended CONNECT is there for them (RFC 8441 3).
    pub websocket: bool,
    /// Streams a client may have open (`max_concurrent_streams_in`).
    pub streams: u32,
    /// Bytes of a stream's content in flight (`initial_window_size_in`).
    pub window: u32,
    /// Bytes of a frame's payload (`max_frame_size`).
    pub frame: u32,
    /// Bytes of the table that a client's fields are decoded by
    /// (`header_table_size`).
    pub table: u32,
    /// Bytes of a request's fields, as RFC 9113 6.5.2 counts them
    /// (`max_header_list_size`).
    pub header_list: u32,
    /// Wait for the preface (`accept_no_activity_timeout`).
    pub first_byte: Duration,
    /// Wait for the end of a head that has begun
    /// (`incomplete_header_timeout_in`).
    pub head: Duration,
    /// How long nothing may be asked or answered (`no_activity_timeout_in`).
    pub idle: Duration,
    /// How many frames of the kinds that cost more than they weigh.
    pub frames: FrameLimits,
}

impl H2Options {
    /// What the library is told.
    pub(super) fn builder(&self) -> Builder {
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(self.streams)
            .initial_window_size(self.window)
            .initial_connection_window_size(self.first_window())
            .max_frame_size(self.frame)
            .header_table_size(self.table)
            // Twice ours, so that it is we who refuse and count; the library's
            // own 431 is for what is out of all proportion.
            .max_header_list_size(self.header_list.saturating_mul(2))
            .max_send_buffer_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(self.cancelled());
        if self.websocket {
            builder.enable_connect_protocol();
        }
        builder
    }

    /// Streams that may be cancelled before they are looked at: as many as may be
    /// at all. They cost memory until then, so there is a bound without the
    /// record, too.
    fn cancelled(&self) -> usize {
        let most = self.frames.rst_stream.unwrap_or(self.streams.into());
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// A connection's window before it uploads: one that HTTP/2 begins with, or
    /// a stream's (RFC 9113 6.9.2).
    pub(super) fn first_window(&self) -> u32 {
        self.window.max(65_535)
    }

    /// Room for each stream, so that an upload that nobody reads holds up no
    /// other; of very many streams, not for all.
    pub(super) fn wide_window(&self) -> u32 {
        let all = self.window.saturating_mul(self.streams);
        all.min(CONNECTION_WINDOW_MAX).max(self.first_window())
    }
}
