//! Limits a key to 10 requests a minute over Redis, with a memory fallback. README.md shows this program.

use tollgate::{FallbackStore, KeyedLimiter, Limit, Quota};
use tollgate_redis::RedisStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let redis = RedisStore::new(std::env::var("REDIS_URL")?.parse()?);
    let store = FallbackStore::builder(redis).build(); // decides in memory while Redis is lost
    let limiter = KeyedLimiter::new(store, Limit::token_bucket(Quota::per_minute(10))?);
    let decision = limiter.check("user:1").await?;
    println!("{} {:?} {:?}", decision.is_allowed(), decision.remaining(), decision.retry_after());
    Ok(())
}
