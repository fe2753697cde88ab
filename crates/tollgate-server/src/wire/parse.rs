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
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => match reader.end() {
            Ok(()) => return ApiError::invalid("the body could not be read"),
            Err(error) => (String::new(), error),
        },
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    let told = error.to_string();
    let detail = match error.classify() {
        Category::Data => told.clone(),
        Category::Eof if body.is_empty() => "the body is empty; JSON is wanted".to_owned(),
        Category::Syntax | Category::Eof | Category::Io => format!("malformed JSON: {told}"),
    };
    let error = ApiError::invalid(detail);
    match field(&path, &told) {
        Some(field) => error.at(field),
        None => error,
    }
}

/// The field at the path; of one that comes twice or not at all, the path is that of its object, and
/// only the message names it.
fn field(path: &str, told: &str) -> Option<String> {
    let outer = Some(path).filter(|path| !matches!(*path, "" | "." | "?"));
    let named = ["duplicate field `", "missing field `"].iter().find_map(|start| {
        let (name, _) = told.strip_prefix(start)?.split_once('`')?;
        Some(name)
    });
    match (outer, named) {
        (Some(outer), Some(name)) if !outer.ends_with(name) => Some(format!("{outer}.{name}")),
        (Some(outer), _) => Some(outer.to_owned()),
        (None, name) => name.map(str::to_owned),
    }
}
