//! Header values of numbers, written into a buffer that each thread reuses.

use std::cell::RefCell;

use bytes::BytesMut;
use http::HeaderValue;

/// The size of a buffer, in bytes: it holds some 400 values. A buffer is reused once all its values are dropped, so a
/// thread allocates a new one only if values live long.
const BUFFER_SIZE: usize = 4096;

/// The maximum length of a number, in bytes.
const MAX_DIGITS: usize = 20;

thread_local! {
    static BUFFER: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Formats numbers as header values. A value is a part of the thread's buffer: it is not allocated on its own.
pub(super) fn number_values<const N: usize>(numbers: [u64; N]) -> [HeaderValue; N] {
    let shared = BUFFER.try_with(|buffer| {
        let mut buffer = buffer.try_borrow_mut().ok()?;
        if buffer.capacity() < N * MAX_DIGITS {
            buffer.reserve(BUFFER_SIZE);
        }
        Some(numbers.map(|number| {
            buffer.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            HeaderValue::from_maybe_shared(buffer.split().freeze()).unwrap_or(EMPTY)
        }))
    });
    // While a thread ends, its buffer does not exist any more.
    shared.ok().flatten().unwrap_or_else(|| numbers.map(HeaderValue::from))
}

/// The value of a text that is not valid in a header. Numbers and texts of limits are always valid.
pub(super) const EMPTY: HeaderValue = HeaderValue::from_static("");

#[cfg(test)]
mod tests {
    use super::number_values;

    #[test]
    fn formats_numbers() {
        let numbers = [0, 7, 10, 4711, u64::MAX];
        assert_eq!(number_values(numbers), numbers.map(|number| number.to_string()));
    }

    #[test]
    fn kept_values_do_not_change_when_buffers_are_reused() {
        let kept: Vec<_> = (0..2000).map(|number| number_values([number])).collect();
        for (number, [value]) in (0_u64..).zip(&kept) {
            assert_eq!(value, &number.to_string());
        }
    }
}
