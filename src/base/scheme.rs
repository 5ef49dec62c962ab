//! The schemes of the URLs that we serve and ask for.

/// A URL's scheme (RFC 9110 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Plain text, port 80.
    Http,
    /// Over TLS, port 443.
    Https,
    /// A WebSocket on the connection of an http URL (RFC 6455 3).
    Ws,
    /// A WebSocket on that of an https URL.
    Wss,
}

impl Scheme {
    /// The scheme of a request that has this name, in either case: http or
    /// https, for a WebSocket is asked for by a field (RFC 6455 4.1).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::of_rule(name).filter(|scheme| !scheme.is_websocket())
    }

    /// The scheme of this name, in either case.
    #[must_use]
    pub fn of_rule(name: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Ws, Self::Wss]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.as_str()))
    }

    /// Whether it is a WebSocket's.
    #[must_use]
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    /// The scheme of a WebSocket on this one's connections.
    #[must_use]
    pub const fn websocket(self) -> Self {
        match self {
            Self::Http | Self::Ws => Self::Ws,
            Self::Https | Self::Wss => Self::Wss,
        }
    }

    /// The scheme of the connection: a WebSocket begins as HTTP.
    #[must_use]
    pub const fn connection(self) -> Self {
        match self {
            Self::Http | Self::Ws => Self::Http,
            Self::Https | Self::Wss => Self::Https,
        }
    }

    /// The scheme's name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// The port that a URL of this scheme means when it names none.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self.connection() {
            Self::Https | Self::Wss => 443,
            Self::Http | Self::Ws => 80,
        }
    }
}
