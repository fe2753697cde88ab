//! One question on every path that decides.

use serde_json::Value;

use crate::client::Client;

/// The paths that decide one question.
pub const DECIDING: [&str; 4] = ["/check", "/peek", "/refund", "/explain"];

/// The path that decides many.
pub const BATCH: &str = "/check/batch";

/// What one path told.
#[derive(Debug)]
pub struct Told {
    /// The path.
    pub path: &'static str,
    /// Of HTTP, or of the item of a batch.
    pub status: u16,
    /// What is told.
    pub told: Value,
}

impl Told {
    /// The field that is at fault, as it is called within the question; `-` for the question as a whole.
    pub fn field(&self) -> &str {
        self.told["field"].as_str().unwrap_or("-")
    }
}

/// Asks on all of them, also as the item of a batch, one after the other.
pub fn ask(client: &mut Client, question: &[u8]) -> Vec<Told> {
    let mut all: Vec<Told> = DECIDING.map(|path| one(client, path, question)).into();
    all.push(item(client, question));
    all
}

/// Asserts that all of them refuse a question alike, and name this field.
#[track_caller]
pub fn assert_refused(client: &mut Client, question: impl AsRef<[u8]>, status: u16, field: &str) {
    let question = question.as_ref();
    for answer in ask(client, question) {
        let shown = String::from_utf8_lossy(&question[..question.len().min(200)]);
        let Told { path, told, .. } = &answer;
        assert_eq!((answer.status, answer.field()), (status, field), "{path} {shown}: {told}");
    }
}

fn one(client: &mut Client, path: &'static str, question: &[u8]) -> Told {
    let reply = client.post(path, question).expect("a node answers");
    Told { path, status: reply.status, told: reply.json() }
}

fn item(client: &mut Client, question: &[u8]) -> Told {
    let batch = [br#"{"requests":["#, question, b"]}"].concat();
    let mut told = one(client, BATCH, &batch);
    if told.status == 200 {
        told.told = told.told["results"][0].take();
        let status = told.told["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        told.status = status.unwrap_or(200);
    }
    told
}
