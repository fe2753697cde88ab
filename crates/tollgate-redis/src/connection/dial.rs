//! The transport to a server: TCP, TLS or a Unix socket.

use tokio::net::TcpStream;

use super::Endpoint;
use super::{ConnectError, Deadline, Transport};
use crate::address::HostPort;

/// Opens a stream. An error begins with a verb; the subject is the server.
pub(super) async fn dial(
    endpoint: &Endpoint,
    deadline: Deadline,
) -> Result<Box<dyn Transport>, ConnectError> {
    const UNREACHABLE: &str = "cannot be reached";
    match endpoint {
        Endpoint::Tcp(host_port) => {
            Ok(Box::new(deadline.limit(UNREACHABLE, tcp(host_port)).await?))
        }
        Endpoint::Unix(path) => deadline.limit(UNREACHABLE, unix(path)).await,
        Endpoint::Tls(host_port, tls) => {
            let socket = deadline.limit(UNREACHABLE, tcp(host_port)).await?;
            let handshake = tls.handshake(socket, &host_port.host);
            Ok(Box::new(deadline.limit("did not reply in TLS", handshake).await?))
        }
    }
}

async fn tcp(host_port: &HostPort) -> Result<TcpStream, ConnectError> {
    let connected = async {
        let stream = TcpStream::connect((host_port.host.as_str(), host_port.port)).await?;
        // A caller waits for every command: none may be delayed to be joined with another.
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connected.await.map_err(unreachable)
}

#[cfg(unix)]
async fn unix(path: &std::path::Path) -> Result<Box<dyn Transport>, ConnectError> {
    let stream = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
    Ok(Box::new(stream))
}

#[cfg(not(unix))]
async fn unix(_: &std::path::Path) -> Result<Box<dyn Transport>, ConnectError> {
    let reason = "cannot be reached: this system has no Unix sockets";
    Err(ConnectError::Misconfigured(reason.to_owned()))
}

#[allow(clippy::needless_pass_by_value, reason = "`map_err` passes a value")]
fn unreachable(error: std::io::Error) -> ConnectError {
    ConnectError::Unreachable(format!("cannot be reached: {error}"))
}
