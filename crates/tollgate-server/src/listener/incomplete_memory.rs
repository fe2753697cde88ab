//! The memory of requests that have not arrived completely, shared by all connections of all front ends.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum memory of all long incomplete requests together, in KiB. Requests that exceed it wait. An announced length
/// reserves nothing until bytes arrive.
const MAX_INCOMPLETE_KIB: u32 = 64 * 1024;
static INCOMPLETE: Semaphore = Semaphore::const_new(MAX_INCOMPLETE_KIB as usize);

/// Memory that is reserved until it is dropped.
pub(crate) type ReservedMemory = SemaphorePermit<'static>;

/// Waits until there is memory for one more incomplete request of this length in bytes. Reserve the whole length in one
/// step, because partial reservations could deadlock.
pub(crate) async fn reserve_memory(length: usize) -> Option<ReservedMemory> {
    let kibibytes = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
    // The semaphore is never closed.
    INCOMPLETE.acquire_many(kibibytes.min(MAX_INCOMPLETE_KIB)).await.ok()
}
