//! Errors of the service as gRPC statuses.

use tonic::{Code, Status};

use crate::error::ApiError;

/// Returns the gRPC status of an error, by the table of all protocols.
pub(super) fn status_of(error: &ApiError) -> Status {
    let code = Code::from_i32(error.kind().statuses().grpc as i32);
    Status::new(code, error.to_string())
}
