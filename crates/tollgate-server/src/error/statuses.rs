//! The table of error statuses: each kind of error in every protocol.

use super::ApiErrorKind;

/// The status of an error in each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statuses {
    /// The HTTP status code.
    pub http: u16,
    /// The reason phrase of the HTTP status, which is the title of the problem.
    pub title: &'static str,
    /// The gRPC status code.
    pub grpc: GrpcCode,
    /// The first word of a RESP error.
    pub resp: &'static str,
}

/// A gRPC status code, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the gRPC specification")]
pub enum GrpcCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl ApiErrorKind {
    /// Returns the statuses of this kind of error.
    ///
    /// ```
    /// use tollgate_server::ApiErrorKind;
    ///
    /// let statuses = ApiErrorKind::Unavailable.statuses();
    /// assert_eq!((statuses.http, statuses.grpc as u8, statuses.resp), (503, 14, "UNAVAILABLE"));
    /// assert_eq!(ApiErrorKind::Overloaded.statuses().resp, "OVERLOADED");
    /// ```
    #[must_use]
    pub const fn statuses(self) -> Statuses {
        use GrpcCode as Grpc;
        // RESP prefixes are never ones that Redis clients retry by themselves (BUSY, LOADING, TRYAGAIN, …).
        let (http, title, grpc, resp) = match self {
            Self::Invalid => (400, "Bad Request", Grpc::InvalidArgument, "ERR"),
            Self::TokenMissing => (401, "Unauthorized", Grpc::Unauthenticated, "NOAUTH"),
            Self::Unauthorized => (401, "Unauthorized", Grpc::Unauthenticated, "WRONGPASS"),
            Self::Forbidden => (403, "Forbidden", Grpc::PermissionDenied, "NOPERM"),
            Self::NotFound => (404, "Not Found", Grpc::NotFound, "ERR"),
            Self::Method => (405, "Method Not Allowed", Grpc::Unimplemented, "ERR"),
            Self::Conflict => (409, "Conflict", Grpc::AlreadyExists, "ERR"),
            Self::Timeout => (408, "Request Timeout", Grpc::DeadlineExceeded, "ERR"),
            Self::TooLarge => (413, "Payload Too Large", Grpc::ResourceExhausted, "ERR"),
            Self::MediaType => (415, "Unsupported Media Type", Grpc::InvalidArgument, "ERR"),
            Self::Unprocessable => (422, "Unprocessable Entity", Grpc::FailedPrecondition, "ERR"),
            Self::TooMany => (429, "Too Many Requests", Grpc::ResourceExhausted, "ERR"),
            Self::Unavailable => (503, "Service Unavailable", Grpc::Unavailable, "UNAVAILABLE"),
            Self::Overloaded => (503, "Service Unavailable", Grpc::Unavailable, "OVERLOADED"),
            // A retry does not help, so gRPC clients must not see UNAVAILABLE.
            Self::Incompatible => (503, "Service Unavailable", Grpc::FailedPrecondition, "ERR"),
            Self::Unsupported => (501, "Not Implemented", Grpc::Unimplemented, "ERR"),
            Self::Internal => (500, "Internal Server Error", Grpc::Internal, "ERR"),
        };
        Statuses { http, title, grpc, resp }
    }
}
