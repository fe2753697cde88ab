//! Strings and numbers of a body, and maps in which no name comes twice.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The largest number that every reader of JSON can tell from its neighbours.
pub(crate) const MAX_WHOLE: u64 = (1 << 53) - 1;

/// A whole number from 0 to 2^53 − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MAX_WHOLE}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
                if number > MAX_WHOLE {
                    return Err(E::invalid_value(serde::de::Unexpected::Unsigned(number), &self));
                }
                Ok(Whole(number))
            }
        }

        deserializer.deserialize_u64(Number)
    }
}

/// A string, borrowed from the body where it has no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Characters<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for Characters<'a> {
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

        deserializer.deserialize_str(Characters(PhantomData))
    }
}

/// Names and values in their order. A name that comes twice is an error, not the last one's victory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairs<'a>(pub(crate) Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for Map<'a> {
            type Value = Pairs<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<'a>, M::Error> {
                let mut pairs: Vec<(Text<'a>, Text<'a>)> = Vec::with_capacity(4);
                while let Some(name) = map.next_key::<Text<'a>>()? {
                    if pairs.iter().any(|(known, _)| known == &name) {
                        let name: String = name.as_str().chars().take(64).collect();
                        return Err(M::Error::custom(format!("duplicate field `{name}`")));
                    }
                    if pairs.len() == tollgate::MAX_FACTS {
                        let most = tollgate::MAX_FACTS;
                        return Err(M::Error::custom(format!("at most {most} facts may be given")));
                    }
                    pairs.push((name, map.next_value()?));
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Map(PhantomData))
    }
}

/// An object, and not a list of its fields' values in their order, which a derived type takes too.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Object<T>, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// A field that may be left out, but not be null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
