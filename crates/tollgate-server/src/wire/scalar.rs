//! Strict JSON values of request bodies: integers, strings, objects without duplicate fields.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The largest integer that every JSON reader represents exactly.
pub(crate) const MAX_INTEGER: u64 = (1 << 53) - 1;

/// An integer from 0 to 2^53 − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer(pub(crate) u64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntegerVisitor;

        impl Visitor<'_> for IntegerVisitor {
            type Value = Integer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an integer from 0 to {MAX_INTEGER}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Integer, E> {
                if number > MAX_INTEGER {
                    return Err(E::invalid_value(serde::de::Unexpected::Unsigned(number), &self));
                }
                Ok(Integer(number))
            }
        }

        deserializer.deserialize_u64(IntegerVisitor)
    }
}

/// A string, borrowed from the body if it contains no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
            type Value = Text<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// An object with string values, in order. A duplicate name is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairs<'a>(pub(crate) Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for PairsVisitor<'a> {
            type Value = Pairs<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with string values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<'a>, M::Error> {
                let mut pairs: Vec<(Text<'a>, Text<'a>)> = Vec::with_capacity(4);
                while let Some(name) = map.next_key::<Text<'a>>()? {
                    if pairs.iter().any(|(known, _)| known == &name) {
                        let name: String = name.as_str().chars().take(64).collect();
                        return Err(M::Error::custom(format!("duplicate field `{name}`")));
                    }
                    if pairs.len() == tollgate::MAX_FACTS {
                        let max = tollgate::MAX_FACTS;
                        return Err(M::Error::custom(format!("at most {max} facts are allowed")));
                    }
                    pairs.push((name, map.next_value()?));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

/// A JSON object. Unlike a derived type, it does not accept a list of the fields' values.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<T>, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Deserializes an optional field that may be omitted but not null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
