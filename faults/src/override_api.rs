//! Overrides: set and read over the admin API, and as stored in the data directory.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::canary::contains_secret;
use crate::node::Node;

/// A window longer than any row.
const WINDOW_MS: u64 = 3_600_000;

/// The file of the data directory that stores overrides and audit.
pub const FILE: &str = "administration.json";

/// The admin path of a client's override.
pub fn limits_of(client: &str) -> String {
    format!("/admin/external/clients/{client}/limits")
}

/// The body that sets one limit.
pub fn limit(limit: u64) -> String {
    json!({ "limits": [{ "limit": limit, "window_ms": WINDOW_MS }] }).to_string()
}

/// The limit in an override response; `None` without an override.
pub fn limit_in(response: &Value) -> Option<u64> {
    response["limits"][0]["limit"].as_u64()
}

impl Node {
    /// Sets an override.
    pub fn set_limit(&self, client: &str, count: u64) {
        let reply = self.request("PUT", &limits_of(client), limit(count));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// The limit of a client's override.
    pub fn override_limit(&self, client: &str) -> Option<u64> {
        let reply = self.get(&limits_of(client));
        match reply.status {
            404 => None,
            200 => Some(limit_in(&reply.json()).expect("one limit")),
            status => panic!("{status}: {}", reply.body),
        }
    }

    /// The newest entries of the audit, newest first.
    pub fn audit(&self, max: usize) -> Vec<Value> {
        let response = self.get(&format!("/admin/audit?limit={max}")).json();
        response["audit"].as_array().expect("a list").clone()
    }
}

/// The stored overrides and audit of a data directory.
#[derive(Debug)]
pub struct StoredOverrides {
    /// The contents of the file.
    pub bytes: String,
    json: Value,
}

impl StoredOverrides {
    /// Reads the file and asserts that it is complete: no audit entry is missing, each client has the limits of its
    /// newest entry, and there is no secret in it.
    pub fn read(directory: &Path) -> Self {
        let bytes = fs::read_to_string(directory.join(FILE)).expect("the file exists and is text");
        assert!(!contains_secret(&bytes), "the file contains a secret: {bytes}");
        let json = serde_json::from_str(&bytes);
        let json = json.unwrap_or_else(|error| panic!("{FILE} is damaged: {error}: {bytes:?}"));
        let stored = Self { bytes, json };
        stored.assert_consistent();
        stored
    }

    /// The id of the newest change.
    pub fn last_id(&self) -> u64 {
        self.audit().last().map_or(0, id)
    }

    fn audit(&self) -> &[Value] {
        self.json["audit"].as_array().expect("a list")
    }

    fn assert_consistent(&self) {
        let audit = self.audit();
        let is_next = |two: &[Value]| id(&two[0]) + 1 == id(&two[1]);
        assert!(audit.windows(2).all(is_next), "audit entries are missing: {}", self.bytes);
        let overrides = self.json["overrides"].as_array().expect("a list");
        for entry in audit {
            let client = entry["change"]["client"].as_str().expect("a client");
            let is_same_client = |other: &&Value| other["change"]["client"] == client;
            let newest = audit.iter().rev().find(is_same_client).expect("at least this entry");
            let stored = overrides.iter().find(|entry| entry["client"] == format!(":{client}"));
            let stored = stored.map_or(&Value::Null, |entry| &entry["text"]);
            assert_eq!(stored, &newest["new"], "{client} differs from the audit: {}", self.bytes);
        }
    }
}

fn id(entry: &Value) -> u64 {
    entry["id"].as_u64().expect("a number")
}
