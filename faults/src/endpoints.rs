//! Sends one body to every decision endpoint.

use serde_json::Value;

use crate::client::Client;

/// The endpoints that decide one request.
pub const DECIDING: [&str; 4] = ["/check", "/peek", "/refund", "/explain"];

/// The endpoint that decides many requests.
pub const BATCH: &str = "/check/batch";

/// The response of one endpoint.
#[derive(Debug)]
pub struct EndpointReply {
    /// The path.
    pub path: &'static str,
    /// The HTTP status, or that of the batch item.
    pub status: u16,
    /// The response body.
    pub body: Value,
}

impl EndpointReply {
    /// The field that the problem names; `-` if it names none.
    pub fn field(&self) -> &str {
        self.body["field"].as_str().unwrap_or("-")
    }
}

/// Sends a body to every endpoint, and as a batch item.
pub fn send(client: &mut Client, request: &[u8]) -> Vec<EndpointReply> {
    let mut all: Vec<EndpointReply> = DECIDING.map(|path| one(client, path, request)).into();
    all.push(item(client, request));
    all
}

/// Asserts that every endpoint refuses a body with this status and names this field.
#[track_caller]
pub fn assert_refused(client: &mut Client, request: impl AsRef<[u8]>, status: u16, field: &str) {
    let request = request.as_ref();
    for reply in send(client, request) {
        let start = String::from_utf8_lossy(&request[..request.len().min(200)]);
        let EndpointReply { path, body, .. } = &reply;
        assert_eq!((reply.status, reply.field()), (status, field), "{path} {start}: {body}");
    }
}

fn one(client: &mut Client, path: &'static str, request: &[u8]) -> EndpointReply {
    let reply = client.post(path, request).expect("the node responds");
    EndpointReply { path, status: reply.status, body: reply.json() }
}

fn item(client: &mut Client, request: &[u8]) -> EndpointReply {
    let batch = [br#"{"requests":["#, request, b"]}"].concat();
    let mut reply = one(client, BATCH, &batch);
    if reply.status == 200 {
        reply.body = reply.body["results"][0].take();
        let status = reply.body["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        reply.status = status.unwrap_or(200);
    }
    reply
}
