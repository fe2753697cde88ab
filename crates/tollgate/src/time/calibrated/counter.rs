//! The CPU's cycle counter, through `quanta`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::calibration::{Readiness, Source};
use crate::time::SystemClock;

/// Clock sources of Linux that it uses if it has found the counter to be unreliable.
const WITHOUT_COUNTER: [&str; 5] = ["acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies"];

thread_local! {
    /// Previous reading of this thread.
    static LAST_READING: Cell<u64> = const { Cell::new(0) };
}

/// The CPU's cycle counter and the system clock.
#[derive(Debug)]
pub(super) struct CpuCounter {
    system: SystemClock,
    is_preparing: AtomicBool,
}

/// Reads the counter; `None` inside if there is no reliable one. Where `quanta` finds no counter with a constant
/// rate, it reads the monotonic clock of the system, which is correct and not slower than [`SystemClock`].
static COUNTER: OnceLock<Option<quanta::Clock>> = OnceLock::new();

impl CpuCounter {
    pub(super) fn new() -> Self {
        Self { system: SystemClock::new(), is_preparing: AtomicBool::new(false) }
    }
}

/// Creates the reader. `quanta` measures the counter's rate first, for up to 200 ms.
fn prepare() {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    // The file exists on Linux only.
    let clock_source = std::fs::read_to_string(path).unwrap_or_default();
    let is_usable = !WITHOUT_COUNTER.contains(&clock_source.trim());
    COUNTER.get_or_init(|| is_usable.then(quanta::Clock::new));
}

impl Source for CpuCounter {
    fn readiness(&self) -> Readiness {
        match COUNTER.get() {
            Some(Some(_)) => return Readiness::Ready,
            Some(None) => return Readiness::Unavailable,
            None => {}
        }
        if self.is_preparing.swap(true, Ordering::Relaxed) {
            return Readiness::Preparing;
        }
        let thread = thread::Builder::new().name("tollgate-clock".to_owned());
        match thread.spawn(prepare) {
            Ok(_) => Readiness::Preparing,
            Err(_) => Readiness::Unavailable,
        }
    }

    #[inline]
    fn raw(&self) -> u64 {
        if let Some(Some(counter)) = COUNTER.get() { counter.raw() } else { 0 }
    }

    #[inline]
    fn replace_last(&self, raw: u64) -> u64 {
        LAST_READING.replace(raw)
    }

    fn reference_nanos(&self) -> u64 {
        self.system.nanos()
    }
}
