//! Whether the server may forget counters before their time.

use crate::RedisStore;
use crate::resp::{Command, Reply};

/// How long the answer to `INFO memory` may be: it has about 2 kB.
const CAP: usize = 64 * 1024;

impl RedisStore {
    /// The `maxmemory-policy` by which the server evicts keys when its memory is full. A limit that is evicted
    /// begins anew, so operators should know. None if it evicts nothing, has no `maxmemory`, or does not
    /// tell.
    pub async fn eviction_policy(&self) -> Option<String> {
        for server in self.shared.coalescer.router().servers().await.ok()? {
            let command = Command::new("INFO").arg("memory").reply_up_to(CAP);
            if let Ok(Reply::Bulk(info)) = server.ask(command).await
                && let Some(policy) = policy(&String::from_utf8_lossy(&info))
            {
                return Some(policy);
            }
        }
        None
    }
}

fn policy(info: &str) -> Option<String> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let is_bounded = field("maxmemory")? != "0";
    let policy = field("maxmemory_policy")?;
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
