//! JSON parsing with errors that name the field.

use serde::Deserialize;
use serde_json::Deserializer;
use serde_json::error::Category;

use super::scalar::Object;
use crate::error::ApiError;

/// Parses exactly one JSON object.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    // One validation of the whole body is faster than one of each string.
    let parsed = match str::from_utf8(body) {
        Ok(text) => serde_json::from_str::<Object<T>>(text),
        Err(_) => serde_json::from_slice(body),
    };
    match parsed {
        Ok(object) => Ok(object.0),
        Err(_) => Err(describe::<Object<T>>(body)),
    }
}

/// Parses an invalid body again with path tracking, which is slower, and describes the error.
#[cold]
fn describe<'a, T: Deserialize<'a>>(body: &'a [u8]) -> ApiError {
    let mut reader = Deserializer::from_slice(body);
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => match reader.end() {
            Ok(()) => return ApiError::invalid("invalid request body"),
            Err(error) => (String::new(), error),
        },
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    let message = error.to_string();
    let detail = match error.classify() {
        Category::Data => message.clone(),
        Category::Eof if body.is_empty() => "the request body is empty; send JSON".to_owned(),
        Category::Syntax | Category::Eof | Category::Io => format!("malformed JSON: {message}"),
    };
    let error = ApiError::invalid(detail);
    match field(&path, &message) {
        Some(field) => error.at(field),
        None => error,
    }
}

/// Returns the name of the invalid field. For a duplicate or missing field, the path is that of the enclosing object
/// and only the message names the field.
fn field(path: &str, message: &str) -> Option<String> {
    let outer = Some(path).filter(|path| !matches!(*path, "" | "." | "?"));
    let named = ["duplicate field `", "missing field `"].iter().find_map(|start| {
        let (name, _) = message.strip_prefix(start)?.split_once('`')?;
        Some(name)
    });
    match (outer, named) {
        (Some(outer), Some(name)) if !outer.ends_with(name) => Some(format!("{outer}.{name}")),
        (Some(outer), _) => Some(outer.to_owned()),
        (None, name) => name.map(str::to_owned),
    }
}
