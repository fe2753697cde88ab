//! Messages as gRPC frames them in a body: a compression flag, the length and the encoded message.

use bytes::Bytes;

use super::protobuf::Encoder;

/// Length of the prefix of a message in bytes.
const PREFIX: usize = 5;
const UNCOMPRESSED: u8 = 0;

/// Returns the encoded message of a body that consists of one complete message, which is not compressed.
pub(super) fn only_message(body: &Bytes) -> Option<Bytes> {
    let (&[flag, length @ ..], message) = body.split_first_chunk::<PREFIX>()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    (flag == UNCOMPRESSED && length == message.len()).then(|| body.slice(PREFIX..))
}

/// Returns a body that consists of one message, which `write` encodes. `capacity` is its expected length in bytes.
pub(super) fn body_of(capacity: usize, write: impl FnOnce(&mut Encoder)) -> Bytes {
    let mut encoder = Encoder::with_capacity(PREFIX.saturating_add(capacity));
    encoder.append(&[UNCOMPRESSED; PREFIX]);
    write(&mut encoder);
    let mut body = encoder.into_bytes();
    if let Some(([_, length @ ..], message)) = body.split_first_chunk_mut::<PREFIX>() {
        // A response has at most 100 statuses, so it is far shorter than 4 GiB.
        *length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    }
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_contains_its_message() {
        for length in [0, 1, 300, 70_000] {
            let body = body_of(10, |encoder| encoder.append(&vec![7; length]));
            assert_eq!(only_message(&body).unwrap(), vec![7; length]);
        }
    }

    #[test]
    fn only_one_complete_uncompressed_message_is_returned() {
        let valid = [0, 0, 0, 0, 2, 8, 1];
        assert_eq!(only_message(&Bytes::copy_from_slice(&valid)).unwrap(), [8, 1][..]);
        let compressed = [1, 0, 0, 0, 2, 8, 1];
        let two = [valid, valid].concat();
        for body in [&[][..], &valid[..4], &valid[..6], &compressed, &two] {
            assert_eq!(only_message(&Bytes::copy_from_slice(body)), None, "{body:?}");
        }
    }
}
