//! Generates access logs: a day of traffic in the combined format, with few busy clients and many rare ones.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// First second of the log: 2026-10-10 00:00:00 UTC.
const DAY: &str = "10/Oct/2026";
const SECONDS: u64 = 86_400;
/// Number of different clients.
const CLIENTS: u64 = 100_000;

/// Writes a log of this many lines, the same ones every time.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, lines: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut random = Random(21);
    for line in 0..lines {
        write_line(&mut out, &mut random, line * SECONDS / lines.max(1))?;
    }
    out.flush()
}

fn write_line(out: &mut impl Write, random: &mut Random, second: u64) -> io::Result<()> {
    // A flood of logins from one client in the eleventh hour.
    let is_flood = second / 3600 == 10 && random.below(4) == 0;
    let client = if is_flood { 7777 } else { random.client() };
    let (hour, minute, rest) = (second / 3600, second / 60 % 60, second % 60);
    let (high, middle, low) = (client >> 16 & 255, client >> 8 & 255, client & 255);
    write!(out, "10.{high}.{middle}.{low} - - [{DAY}:{hour:02}:{minute:02}:{rest:02} +0000] \"")?;
    let id = random.below(5000);
    match if is_flood { 0 } else { random.below(20) } {
        0 => write!(out, "POST /login")?,
        1..=6 => write!(out, "GET /api/orders/{id}")?,
        7..=10 => write!(out, "GET /api/users/{id}/profile")?,
        11..=13 => write!(out, "GET /search?q={id}")?,
        14..=17 => write!(out, "GET /static/app-{id}.js")?,
        _ => write!(out, "GET /")?,
    }
    let bytes = random.below(90_000);
    writeln!(out, " HTTP/1.1\" 200 {bytes} \"-\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0)\"")
}

/// A small random number generator (splitmix64).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a client: the number of candidates doubles at random, so that low numbers are frequent.
    fn client(&mut self) -> u64 {
        let bits = self.below(17) + 1;
        self.below(1 << bits).min(CLIENTS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_has_the_combined_format_and_is_the_same_every_time() {
        let mut logs = Vec::new();
        for _ in 0..2 {
            let mut log = Vec::new();
            let mut random = Random(21);
            (0..50).for_each(|second| write_line(&mut log, &mut random, second * 1000).unwrap());
            logs.push(String::from_utf8(log).unwrap());
        }
        assert_eq!(logs[0], logs[1]);
        assert_eq!(logs[0].lines().count(), 50);
        assert!(
            logs[0].lines().all(|line| line.contains(" - - [10/Oct/2026:") && line.ends_with('"'))
        );
    }
}
