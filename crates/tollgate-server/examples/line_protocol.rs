//! A front end for `tollgate serve`: a protocol of text lines, with the listener's TLS, tokens, drain and metrics.
//!
//! ```text
//! AUTH token  →  OK
//! CHECK key   →  OK 99     allowed; 99 are left
//!                NO 1500   refused; retry after 1500 ms (-1: never)
//! ```
//!
//! Run it: `LINE_ADDRESS=127.0.0.1:7000 cargo run -p tollgate-server --example line_protocol -- serve`

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tollgate::{Facts, Outcome, Query, Status, rounding};
use tollgate_server::api::{Credentials, Role, Service, Span};
use tollgate_server::listener::{Connection, Protocol, Stream};
use tollgate_server::{ApiError, ApiErrorKind, Cli, Exit, FrontEnd, run_with};

/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 2048;

struct LineProtocol {
    service: Arc<Service>,
}

impl Protocol for LineProtocol {
    fn scheme(&self) -> &'static str {
        "line"
    }

    fn tls_scheme(&self) -> &'static str {
        "lines"
    }

    async fn serve<S: Stream>(self: Arc<Self>, stream: S, connection: Connection) {
        let mut stream = BufReader::new(stream);
        self.serve_lines(&mut stream, &connection).await;
        // Ends a TLS stream properly, so that the client can tell the end from a broken connection.
        let _ = stream.shutdown().await;
    }
}

impl LineProtocol {
    async fn serve_lines(&self, stream: &mut BufReader<impl Stream>, connection: &Connection) {
        let mut drain = connection.drain();
        let mut is_authenticated = self.service.is_open(Role::Check);
        while !drain.is_requested() {
            // Between two requests a drain ends the connection. A line that has begun is answered first.
            tokio::select! {
                biased;
                input = stream.fill_buf() => if !input.is_ok_and(|bytes| !bytes.is_empty()) { return },
                () = drain.requested() => return,
            }
            let mut line = Vec::new();
            let read = (&mut *stream).take(MAX_LINE).read_until(b'\n', &mut line).await;
            if read.is_err() || line.pop() != Some(b'\n') {
                return;
            }
            let request = connection.begin_request();
            let reply = self.reply(line.trim_ascii_end(), &mut is_authenticated, connection).await;
            let reply = reply.unwrap_or_else(|error| format!("ERR {error}"));
            // TLS buffers what the socket does not accept, so the reply must be flushed.
            let sent = stream.write_all(format!("{reply}\n").as_bytes()).await;
            if sent.is_err() || stream.flush().await.is_err() {
                return;
            }
            drop(request);
        }
    }

    async fn reply(
        &self,
        line: &[u8],
        is_authenticated: &mut bool,
        connection: &Connection,
    ) -> Result<String, ApiError> {
        if let Some(token) = line.strip_prefix(b"AUTH ") {
            let (credentials, peer) = (Credentials::token(token), connection.peer().ip());
            self.service.authenticate(Role::Check, &credentials, peer)?;
            *is_authenticated = true;
            return Ok("OK".to_owned());
        }
        let invalid = |detail: &str| ApiError::new(ApiErrorKind::Invalid, detail);
        let key = line.strip_prefix(b"CHECK ").ok_or_else(|| invalid("use AUTH or CHECK"))?;
        if !*is_authenticated {
            return Err(ApiError::new(ApiErrorKind::Unauthorized, "send AUTH token first"));
        }
        connection.count_requests(1);
        let facts = Facts::of([("client", key)]).map_err(|error| invalid(&error.to_string()))?;
        self.service.check(&Query::from(facts), &mut Span::none(), encode).await
    }
}

fn encode(outcome: &Outcome<'_, '_>) -> String {
    let verdict = outcome.decision.verdict();
    match (verdict.is_allowed(), verdict.retry_after()) {
        (true, _) => match outcome.decision.deciding().map(Status::remaining) {
            Some(remaining) => format!("OK {remaining}"),
            None => "OK".to_owned(),
        },
        (false, Some(wait)) => format!("NO {}", rounding::millis(wait)),
        (false, None) => "NO -1".to_owned(),
    }
}

fn main() -> ExitCode {
    let address = std::env::var("LINE_ADDRESS").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let Ok(address) = address.parse() else {
        eprintln!("LINE_ADDRESS: {address:?} is not an address; use IP:PORT");
        return Exit::Usage.into();
    };
    let line = FrontEnd::new("LINE_ADDRESS", address, |service| LineProtocol { service });
    run_with(Cli::parse(), vec![line]).into()
}
