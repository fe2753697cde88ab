//! The field names of a type, in the order of its definition, as its derived `Deserialize` reports them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of all fields that a struct reads.
pub(super) fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    match T::deserialize(Recorder) {
        Err(Recorded::Fields(fields)) => fields,
        Err(Recorded::Other) => panic!("{} is not a struct", std::any::type_name::<T>()),
        Ok(_) => panic!("{} reads no field", std::any::type_name::<T>()),
    }
}

/// A deserializer that stops at the first struct and returns its field names as the error.
struct Recorder;

#[derive(Debug)]
enum Recorded {
    Fields(&'static [&'static str]),
    Other,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Recorded {}

impl Error for Recorded {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

impl<'de> Deserializer<'de> for Recorder {
    type Error = Recorded;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Recorded> {
        Err(Recorded::Fields(fields))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Recorded> {
        Err(Recorded::Other)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
