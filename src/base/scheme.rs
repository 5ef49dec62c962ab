//! The schemes of the URLs that we serve and ask for.

/// A URL's scheme (RFC 9110 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Plain text, port 80.
    Http,
    /// Over TLS, port 443.
    Https,
}

impl Scheme {
    /// The scheme of this name, in either case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.as_str()))
    }

    /// The scheme's name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL of this scheme means when it names none.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}
