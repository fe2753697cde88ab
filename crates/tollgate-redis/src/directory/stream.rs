//! The entries of Redis's streams.

use crate::resp::Reply;

/// An entry's id, and its names and values in turn; none if it is no entry.
pub(super) fn id_and_fields(reply: &Reply) -> Option<(&str, &[Reply])> {
    let Reply::Array(parts) = reply else { return None };
    let [Reply::Bulk(id), Reply::Array(fields)] = parts.as_slice() else { return None };
    Some((std::str::from_utf8(id).ok()?, fields))
}

/// The value of a name.
pub(super) fn field<'f>(fields: &'f [Reply], wanted: &str) -> Option<&'f str> {
    fields.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Bulk(name), Reply::Bulk(value)] if name == wanted.as_bytes() => {
            std::str::from_utf8(value).ok()
        }
        _ => None,
    })
}
