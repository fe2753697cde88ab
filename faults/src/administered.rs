//! What administrators change: limits of clients of their own.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::canary::is_shown;
use crate::node::Node;

/// A window that outlasts any row.
const WINDOW_MS: u64 = 3_600_000;

/// The file of a data directory that they are kept in.
pub const FILE: &str = "administration.json";

/// Where a client's own limits are.
pub fn limits_of(client: &str) -> String {
    format!("/admin/external/clients/{client}/limits")
}

/// One limit, as it is put there.
pub fn limit(limit: u64) -> String {
    json!({ "limits": [{ "limit": limit, "window_ms": WINDOW_MS }] }).to_string()
}

/// The one limit of an override, as it is told; none where there is none.
pub fn limit_in(told: &Value) -> Option<u64> {
    told["limits"][0]["limit"].as_u64()
}

impl Node {
    /// Gives a client a limit of its own.
    pub fn set_limit(&self, client: &str, own: u64) {
        let reply = self.ask("PUT", &limits_of(client), limit(own));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// The limit that a client has of its own.
    pub fn own_limit(&self, client: &str) -> Option<u64> {
        let reply = self.get(&limits_of(client));
        match reply.status {
            404 => None,
            200 => Some(limit_in(&reply.json()).expect("one limit")),
            status => panic!("{status}: {}", reply.body),
        }
    }

    /// The newest entries of the audit, newest first.
    pub fn audit(&self, most: usize) -> Vec<Value> {
        let told = self.get(&format!("/admin/audit?limit={most}")).json();
        told["audit"].as_array().expect("a list").clone()
    }
}

/// What a data directory holds of it, read as a file.
#[derive(Debug)]
pub struct Kept {
    /// Its bytes.
    pub bytes: String,
    told: Value,
}

impl Kept {
    /// Reads it, and asserts that it is whole: no entry of the audit is wanting, what each client has is what the
    /// newest entry for it says, and no secret is among it.
    pub fn read(directory: &Path) -> Self {
        let bytes = fs::read_to_string(directory.join(FILE)).expect("the file is there, as text");
        assert!(!is_shown(&bytes), "a secret: {bytes}");
        let told = serde_json::from_str(&bytes);
        let told = told.unwrap_or_else(|error| panic!("{FILE} is torn: {error}: {bytes:?}"));
        let kept = Self { bytes, told };
        kept.assert_agrees();
        kept
    }

    /// The number of its newest change.
    pub fn last(&self) -> u64 {
        self.audit().last().map_or(0, id)
    }

    fn audit(&self) -> &[Value] {
        self.told["audit"].as_array().expect("a list")
    }

    fn assert_agrees(&self) {
        let audit = self.audit();
        let is_next = |two: &[Value]| id(&two[0]) + 1 == id(&two[1]);
        assert!(audit.windows(2).all(is_next), "entries are wanting: {}", self.bytes);
        let overrides = self.told["overrides"].as_array().expect("a list");
        for entry in audit {
            let client = entry["change"]["client"].as_str().expect("a client");
            let is_of = |other: &&Value| other["change"]["client"] == client;
            let newest = audit.iter().rev().find(is_of).expect("there is this one");
            let kept = overrides.iter().find(|own| own["client"] == format!(":{client}"));
            let kept = kept.map_or(&Value::Null, |own| &own["text"]);
            assert_eq!(kept, &newest["new"], "{client} has what the audit says: {}", self.bytes);
        }
    }
}

fn id(entry: &Value) -> u64 {
    entry["id"].as_u64().expect("a number")
}
