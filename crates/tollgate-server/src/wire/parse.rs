//! JSON into types, with errors that name the field.

use serde::Deserialize;
use serde_json::Deserializer;
use serde_json::error::Category;

use super::scalar::Object;
use crate::error::ApiError;

/// Reads one JSON object and nothing after it.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    match serde_json::from_slice::<Object<T>>(body) {
        Ok(object) => Ok(object.0),
        Err(_) => Err(describe::<Object<T>>(body)),
    }
}

/// Reads it again, slowly, to tell where it went wrong.
#[cold]
fn describe<'a, T: Deserialize<'a>>(body: &'a [u8]) -> ApiError {
    let mut reader = Deserializer::from_slice(body);
    let (field, error) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => match reader.end() {
            Ok(()) => return ApiError::invalid("the body could not be read"),
            Err(error) => (None, error),
        },
        Err(error) => {
            let path = error.path().to_string();
            (Some(path).filter(|path| path != "." && path != "?"), error.into_inner())
        }
    };
    let detail = match error.classify() {
        Category::Data => error.to_string(),
        Category::Eof if body.is_empty() => "the body is empty; JSON is wanted".to_owned(),
        Category::Syntax | Category::Eof | Category::Io => format!("malformed JSON: {error}"),
    };
    let error = ApiError::invalid(detail);
    match field {
        Some(field) => error.at(field),
        None => error,
    }
}
