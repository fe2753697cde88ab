//! Detects servers that may evict counters before they expire.

use tollgate::StoreError;

use super::RedisStore;
use crate::connection::info_field;
use crate::failure::Failure;
use crate::resp::{Command, Reply};

/// Maximum reply to `INFO memory`, in bytes. It has about 2 kB.
const MAX_INFO_REPLY: usize = 64 * 1024;

impl RedisStore {
    /// Returns the `maxmemory-policy` of the first server that evicts keys when its memory is full. An evicted
    /// limit starts fresh, so operators should know. `None` if no server has a `maxmemory` with an evicting policy,
    /// or reports one.
    ///
    /// # Errors
    /// A server could not be reached, or denies `INFO`.
    pub async fn eviction_policy(&self) -> Result<Option<String>, StoreError> {
        let servers = self.shared.router.servers().await;
        for server in servers.map_err(Failure::into_store_error)? {
            let command = Command::new("INFO").arg("memory").reply_up_to(MAX_INFO_REPLY);
            let reply = server.request(command).await.map_err(Failure::into_store_error)?;
            if let Reply::Bulk(info) = reply
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
    fn only_maxmemory_with_an_evicting_policy_evicts() {
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
