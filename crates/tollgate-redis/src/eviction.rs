//! Whether the server may forget counters before their time.

use tollgate::StoreError;

use crate::RedisStore;
use crate::connection::info_field;
use crate::failure::Failure;
use crate::resp::{Command, Reply};

/// How long the answer to `INFO memory` may be: it has about 2 kB.
const CAP: usize = 64 * 1024;

impl RedisStore {
    /// The `maxmemory-policy` by which a server evicts keys when its memory is full. A limit that is evicted
    /// begins anew, so operators should know. None if none of the servers evicts anything, or has a
    /// `maxmemory`, or says so.
    ///
    /// # Errors
    /// A server could not be asked, or does not let us ask.
    pub async fn eviction_policy(&self) -> Result<Option<String>, StoreError> {
        let servers = self.shared.coalescer.router().servers().await;
        for server in servers.map_err(Failure::into_store_error)? {
            let command = Command::new("INFO").arg("memory").reply_up_to(CAP);
            let told = server.ask(command).await.map_err(Failure::into_store_error)?;
            if let Reply::Bulk(info) = told
                && let Some(policy) = policy(&String::from_utf8_lossy(&info))
            {
                return Ok(Some(policy));
            }
        }
        Ok(None)
    }
}

fn policy(info: &str) -> Option<String> {
    let is_bounded = info_field(info, "maxmemory")? != "0";
    let policy = info_field(info, "maxmemory_policy")?;
    (is_bounded && policy != "noeviction").then(|| policy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::policy;

    #[test]
    fn only_a_bounded_server_with_such_a_policy_evicts() {
        let info = |bound: &str, name: &str| {
            policy(&format!(
                "# Memory\r\nmaxmemory:{bound}\r\nmaxmemory_human:x\r\nmaxmemory_policy:{name}\r\n"
            ))
        };
        assert_eq!(info("1000000", "allkeys-lru").as_deref(), Some("allkeys-lru"));
        assert_eq!(info("1000000", "volatile-ttl").as_deref(), Some("volatile-ttl"));
        assert_eq!(info("0", "allkeys-lru"), None);
        assert_eq!(info("1000000", "noeviction"), None);
        assert_eq!(policy(""), None);
    }
}
