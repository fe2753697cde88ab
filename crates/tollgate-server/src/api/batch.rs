//! Batches: many independent checks in one call.

use futures_util::future::join_all;
use tollgate::{Outcome, Query, Verb};
use tollgate_redis::together;

use super::service::Service;
use super::undelivered_permit::UndeliveredPermit;
use crate::error::ApiError;
use crate::telemetry::Span;

/// Maximum number of queries in a batch.
pub const MAX_BATCH: usize = 1000;

/// Maximum number of queries of one batch that wait for Redis at the same time. Other requests are decided between
/// two chunks, and are not queued behind a whole batch.
const CHUNK: usize = 64;

/// Returns an error if a batch has too many items. Check this before the items are parsed: the result of a short item
/// takes a hundred times its length.
pub(crate) fn ensure_batch_size(items: usize) -> Result<(), ApiError> {
    if items <= MAX_BATCH {
        return Ok(());
    }
    let detail = format!("has {items} items; the maximum is {MAX_BATCH}");
    Err(ApiError::invalid(detail).at("requests"))
}

/// A result with the permit that its response delivers, if any.
pub(crate) type UndeliveredResult<T> = Result<(T, Option<UndeliveredPermit>), ApiError>;

impl Service {
    /// Decides queries independently and concurrently, so that they share a store call. The results are in the order of
    /// the queries. The slots of concurrency limits are not released if the caller is dropped. The span records the
    /// verdict of a single query.
    pub(crate) async fn decide_all<T>(
        &self,
        queries: &[(Verb, Query<'_>)],
        span: &mut Span,
        encode: impl Fn(&Outcome<'_, '_>) -> T,
    ) -> Vec<Result<T, ApiError>> {
        if let [(verb, query)] = queries {
            return vec![self.decide(*verb, query, span, &encode).await];
        }
        let encode = &encode;
        let decisions = queries.iter().map(|(verb, query)| async move {
            self.decide(*verb, query, &mut Span::none(), encode).await
        });
        match self.has_shared_store() {
            true => together(join_all(decisions)).await,
            false => join_all(decisions).await,
        }
    }

    /// Checks up to [`MAX_BATCH`] queries independently, in chunks of at most 64. The results are in the order of the
    /// queries; a query that could not be decoded keeps its error.
    ///
    /// # Errors
    ///
    /// `Invalid` if there are too many queries.
    pub async fn batch<T: Send + 'static>(
        &self,
        queries: Vec<Result<Query<'_>, ApiError>>,
        encode: impl Fn(&Outcome<'_, '_>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<Result<T, ApiError>>, ApiError> {
        let results = self.batch_undelivered(queries, encode).await?;
        let delivered = |result: UndeliveredResult<T>| {
            let (reply, permit) = result?;
            permit.iter().for_each(UndeliveredPermit::set_delivered);
            Ok(reply)
        };
        Ok(results.into_iter().map(delivered).collect())
    }

    /// As [`batch`](Self::batch), with the permits of results that are not delivered yet.
    pub(crate) async fn batch_undelivered<T: Send + 'static>(
        &self,
        queries: Vec<Result<Query<'_>, ApiError>>,
        encode: impl Fn(&Outcome<'_, '_>) -> T + Clone + Send + 'static,
    ) -> Result<Vec<UndeliveredResult<T>>, ApiError> {
        ensure_batch_size(queries.len())?;
        let check = async |query: Result<Query<'_>, ApiError>| {
            self.check_undelivered(&query?, &mut Span::none(), encode.clone()).await
        };
        let mut results = Vec::with_capacity(queries.len());
        let mut queries = queries.into_iter();
        if !self.has_shared_store() {
            for query in queries {
                results.push(check(query).await);
            }
            return Ok(results);
        }
        // With Redis, the items of a chunk are decided concurrently and share a call.
        while queries.len() > 0 {
            results.extend(together(join_all(queries.by_ref().take(CHUNK).map(check))).await);
        }
        Ok(results)
    }
}
