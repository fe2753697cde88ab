//! Entries of Redis streams.

use crate::resp::Reply;

/// Returns the id of an entry and its alternating names and values, or `None` if it is malformed.
pub(super) fn id_and_fields(reply: &Reply) -> Option<(&str, &[Reply])> {
    let Reply::Array(parts) = reply else { return None };
    let [Reply::Bulk(id), Reply::Array(fields)] = parts.as_slice() else { return None };
    Some((std::str::from_utf8(id).ok()?, fields))
}

/// Returns the value of a field.
pub(super) fn field<'f>(fields: &'f [Reply], name: &str) -> Option<&'f str> {
    fields.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Bulk(field), Reply::Bulk(value)] if field == name.as_bytes() => {
            std::str::from_utf8(value).ok()
        }
        _ => None,
    })
}
