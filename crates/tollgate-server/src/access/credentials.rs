//! What a request presents to authenticate itself, whatever its transport.

/// The credentials of a request.
///
/// ```
/// use tollgate_server::api::Credentials;
///
/// let credentials = Credentials::token(b"0123456789abcdef0123456789abcdef");
/// assert_ne!(credentials, Credentials::none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials<'a> {
    pub(crate) token: PresentedToken<'a>,
    /// Texts of login sessions. A browser may send several, for example an outdated one.
    pub(crate) sessions: Vec<&'a str>,
}

/// The token of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PresentedToken<'a> {
    Absent,
    /// Sent in a form that contains no token. A session does not replace it.
    Malformed,
    Token(&'a [u8]),
}

impl<'a> Credentials<'a> {
    /// Credentials of a request without a token.
    #[must_use]
    pub const fn none() -> Self {
        Self { token: PresentedToken::Absent, sessions: Vec::new() }
    }

    /// Credentials of a request with this token.
    #[must_use]
    pub const fn token(token: &'a [u8]) -> Self {
        Self { token: PresentedToken::Token(token), sessions: Vec::new() }
    }
}

impl<'a> PresentedToken<'a> {
    pub(super) const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Token(token) => Some(token),
            Self::Absent | Self::Malformed => None,
        }
    }
}

/// Omits the token.
impl std::fmt::Debug for PresentedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Malformed => "Malformed",
            Self::Token(_) => "Token",
        })
    }
}
