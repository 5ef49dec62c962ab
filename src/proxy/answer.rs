//! Responses that the proxy makes itself, from one table.

use super::client::ClientWrite;
use super::outcome::{Ended, Finish, Outcome};
use bytes::Bytes;
use http::StatusCode;
use std::sync::Arc;

macro_rules! answers {
    ($( $(#[doc = $help:literal])+ $variant:ident = $status:literal, $outcome:ident, $title:literal, $text:literal; )+) => {
        /// An answer of the proxy's own: status, outcome and words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Answer {
            $( $(#[doc = $help])+ $variant, )+
        }

        impl Answer {
            /// Every answer, in the order of the table.
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// Its status code.
            #[must_use]
            pub const fn code(self) -> u16 {
                match self { $( Self::$variant => $status, )+ }
            }

            /// What the transaction came to.
            #[must_use]
            pub const fn outcome(self) -> Outcome {
                match self { $( Self::$variant => Outcome::$outcome, )+ }
            }

            /// Its title, ATS's where ATS has one.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $( Self::$variant => $title, )+ }
            }

            /// One sentence for whoever reads the page.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }
    };
}

answers! {
    /// PURGE found something and removed it.
    Purged = 200, AnsweredPurged, "OK", "The object was removed from the cache.";
    /// PUSH stored a response in place of another.
    Replaced = 200, AnsweredPushed, "OK", "The enclosed response was stored in place of another.";
    /// OPTIONS for the proxy itself, or with Max-Forwards 0.
    Options = 200, AnsweredOptions, "OK", "This is the proxy itself.";
    /// PUSH stored a response where none was.
    Pushed = 201, AnsweredPushed, "Created", "The enclosed response was stored.";
    /// The head breaks the grammar or says two things at once.
    BadRequest = 400, AnsweredInvalid, "Invalid HTTP Request", "The request could not be understood.";
    /// An HTTP/1.0 request in origin-form without Host.
    HostRequired = 400, AnsweredInvalid, "Host Header Required", "The request names no host.";
    /// Via names this server.
    CycleDetected = 400, AnsweredLoop, "Cycle Detected", "The request came back to this proxy.";
    /// A filter, ip_allow, or the proxy's defaults refuse client or method.
    AccessDenied = 403, Denied, "Access Denied", "You are not allowed to make this request.";
    /// The client may not choose the origin, or not this one.
    ForwardDenied = 403, DeniedForward, "Access Denied", "This proxy does not forward to that address for you.";
    /// CONNECT to a port, or from a client, that may not.
    TunnelForbidden = 403, DeniedForward, "Tunnel Forbidden", "This proxy opens no tunnel to that address for you.";
    /// No rule matched an absolute-form request.
    NotFound = 404, AnsweredNoRule, "Not Found", "Your request on the specified host was not found.";
    /// No rule matched an origin-form request.
    NotFoundOnAccelerator = 404, AnsweredNoRule, "Not Found on Accelerator", "Your request on the specified host was not found.";
    /// PURGE found nothing.
    NothingToPurge = 404, AnsweredPurged, "Not Found", "The cache has no such object.";
    /// A method that is not served here.
    MethodNotAllowed = 405, AnsweredUnsupported, "Method Not Allowed", "That method is not allowed here.";
    /// The client was too slow.
    RequestTimeout = 408, ClientReadError, "Request Timeout", "The request did not arrive in time.";
    /// The request's body broke off or is malformed.
    BodyBroken = 400, ClientReadError, "Invalid HTTP Request", "The body of the request is malformed.";
    /// A precondition of the request does not hold (RFC 9110 13.2.2).
    PreconditionFailed = 412, AnsweredInvalid, "Precondition Failed", "A condition that the request makes does not hold.";
    /// The target is above the limit.
    TargetTooLong = 414, AnsweredInvalid, "URI Too Long", "The request-target is too long.";
    /// An expectation other than 100-continue.
    ExpectationFailed = 417, AnsweredUnsupported, "Expectation Failed", "Only 100-continue can be expected.";
    /// A secure scheme asked of a listener that has none.
    Misdirected = 421, AnsweredUnsupported, "Misdirected Request", "That scheme is not served here.";
    /// A host whose policy the connection's handshake does not meet (RFC 9110 15.5.20).
    MisdirectedName = 421, Denied, "Misdirected Request", "That host is not served on this connection; ask for it on a new one.";
    /// PUSH of a response that may not be stored.
    NotStored = 422, AnsweredPushed, "Not Stored", "The enclosed response may not be stored; Cache-Status says why.";
    /// The head is above the limit.
    HeadTooLarge = 431, AnsweredInvalid, "Request Header Fields Too Large", "The header of the request is too large.";
    /// The proxy itself could not go on.
    Internal = 500, AnsweredInternal, "Internal Error", "The proxy could not carry out the request.";
    /// A transfer coding that is not implemented.
    NotImplemented = 501, AnsweredUnsupported, "Not Implemented", "That is not implemented here.";
    /// The origin's response can't be trusted.
    OriginMalformed = 502, OriginMalformed, "Invalid HTTP Response", "The origin server's response could not be understood.";
    /// The origin closed early.
    OriginClosed = 502, OriginClosed, "Server Hangup", "The origin server closed the connection too early.";
    /// No connection to the origin.
    OriginConnect = 502, OriginConnect, "Could Not Connect", "The origin server could not be reached.";
    /// The origin's name has no address.
    OriginDns = 502, OriginDns, "Cannot Find Server", "The name of the origin server has no address.";
    /// Another request fetches the same (`http.cache.open_write_fail_action`).
    Busy = 502, AnsweredInternal, "Busy", "Another request is fetching this, and the proxy does not wait for it.";
    /// Draining, or out of a limit.
    Unavailable = 503, AnsweredInternal, "Service Unavailable", "The proxy can't take the request now.";
    /// The origin was silent for too long.
    OriginTimeout = 504, OriginTimeout, "Connection Timed Out", "The origin server did not answer in time.";
    /// only-if-cached, and nothing is.
    OnlyIfCached = 504, AnsweredOnlyIfCached, "Not Cached", "The cache has no response that fits.";
    /// An HTTP version that is not spoken here.
    VersionNotSupported = 505, AnsweredUnsupported, "Unsupported HTTP Version", "That HTTP version is not spoken here.";
}

impl Answer {
    /// The answer to a head or body refused with `status`.
    #[must_use]
    pub fn refusing(status: StatusCode) -> Self {
        let same = |answer: &&Self| answer.code() == status.as_u16();
        Self::ALL
            .iter()
            .find(same)
            .copied()
            .unwrap_or(Self::BadRequest)
    }

    /// Its status.
    #[must_use]
    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn page(self) -> Bytes {
        let (title, text) = (self.title(), self.text());
        Bytes::from(format!(
            "<!DOCTYPE html>\n<html><head><title>{title}</title></head>\n\
             <body><h1>{title}</h1>\n<p>{text}</p></body></html>\n"
        ))
    }
}

/// What every answer of ours says about us and about now.
#[derive(Clone, Debug)]
pub struct Voice {
    /// The value of Server, if it is to be told.
    pub server: Option<Arc<str>>,
    /// The value of Date (RFC 9110 6.6.1).
    pub date: [u8; 29],
}

/// Sends an answer; fields beyond the usual ones come as `(name, value)`.
/// A client that is gone makes the transaction a client abort.
pub async fn send<W: ClientWrite>(
    answer: Answer,
    reply: &mut W,
    voice: &Voice,
    extra: &[(&str, &str)],
) -> Ended {
    send_page(reply, voice, Page::of(answer), extra).await
}

/// Sends a redirect (RFC 9110 15.4).
pub async fn redirect<W: ClientWrite>(
    status: StatusCode,
    location: &str,
    reply: &mut W,
    voice: &Voice,
) -> Ended {
    let page = Page {
        status,
        outcome: Outcome::AnsweredRedirect,
        content_type: HTML,
        body: Bytes::from_static(b"<!DOCTYPE html>\n<title>Redirect</title>\n"),
    };
    send_page(reply, voice, page, &[("Location", location)]).await
}

const HTML: &str = "text/html";

/// Answers TRACE with the request as it came (RFC 9110 9.3.8).
pub async fn echo<W: ClientWrite>(request: Bytes, reply: &mut W, voice: &Voice) -> Ended {
    let page = Page {
        status: StatusCode::OK,
        outcome: Answer::Options.outcome(),
        content_type: "message/http",
        body: request,
    };
    send_page(reply, voice, page, &[]).await
}

struct Page {
    status: StatusCode,
    outcome: Outcome,
    content_type: &'static str,
    body: Bytes,
}

impl Page {
    fn of(answer: Answer) -> Self {
        Self {
            status: answer.status(),
            outcome: answer.outcome(),
            content_type: HTML,
            body: answer.page(),
        }
    }
}

async fn send_page<W: ClientWrite>(
    reply: &mut W,
    voice: &Voice,
    page: Page,
    extra: &[(&str, &str)],
) -> Ended {
    reply.begin(page.status);
    reply.field("Date", &voice.date);
    if let Some(server) = &voice.server {
        reply.field("Server", server.as_bytes());
    }
    reply.field("Cache-Control", b"no-store");
    reply.field("Content-Type", page.content_type.as_bytes());
    for (name, value) in extra {
        reply.field(name, value.as_bytes());
    }
    let sent = reply.send(b"", &[page.body]).await;
    let mut ended = Ended::new(page.outcome, page.status.as_u16());
    if sent.is_err() {
        ended.outcome = Outcome::ClientAbort;
        ended.finish = Finish::Cut;
    }
    ended.head_bytes = reply.sent().head;
    ended.body_bytes = reply.sent().body;
    ended.content_type = Some(Bytes::from_static(page.content_type.as_bytes()));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refused_status_has_an_answer_of_that_status() {
        for code in [400, 408, 414, 417, 431, 501, 505] {
            let status = StatusCode::from_u16(code).unwrap();
            assert_eq!(Answer::refusing(status).code(), code);
        }
    }

    #[test]
    fn pages_name_what_is_wrong() {
        for answer in Answer::ALL {
            let page = answer.page();
            let page = std::str::from_utf8(&page).unwrap();
            assert!(page.contains(answer.title()) && page.contains(answer.text()));
        }
    }
}
