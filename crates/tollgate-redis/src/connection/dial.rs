//! The way to a server, before a word of Redis is spoken.

use tokio::net::TcpStream;

use super::{Limit, Transport};
use crate::address::Place;
use crate::target::Endpoint;

/// Opens a stream. Fails with what to say of the server.
pub(super) async fn dial(endpoint: &Endpoint, limit: Limit) -> Result<Box<dyn Transport>, String> {
    const UNREACHED: &str = "cannot be reached";
    match endpoint {
        Endpoint::Tcp(place) => Ok(Box::new(limit.keep(UNREACHED, tcp(place)).await?)),
        Endpoint::Unix(path) => limit.keep(UNREACHED, unix(path)).await,
        Endpoint::Tls(place, tls) => {
            let socket = limit.keep(UNREACHED, tcp(place)).await?;
            let agreed = tls.agree(socket, &place.host);
            Ok(Box::new(limit.keep("does not answer in TLS", agreed).await?))
        }
    }
}

async fn tcp(place: &Place) -> Result<TcpStream, String> {
    let connected = async {
        let stream = TcpStream::connect((place.host.as_str(), place.port)).await?;
        // Every command is waited for: none may lie about to be joined by another.
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    connected.await.map_err(unreached)
}

#[cfg(unix)]
async fn unix(path: &std::path::Path) -> Result<Box<dyn Transport>, String> {
    let stream = tokio::net::UnixStream::connect(path).await.map_err(unreached)?;
    Ok(Box::new(stream))
}

#[cfg(not(unix))]
async fn unix(_: &std::path::Path) -> Result<Box<dyn Transport>, String> {
    Err("cannot be reached: this system has no Unix sockets".to_owned())
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` passes")]
fn unreached(error: std::io::Error) -> String {
    format!("cannot be reached: {error}")
}
