//! The items of a batch.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The items of a batch as JSON texts. Those above `MAX` are counted and not kept: a list of references takes
/// eight times the length of short items.
#[derive(Debug)]
pub(crate) struct Items<'a, const MAX: usize> {
    /// The first items, at most `MAX`.
    pub(crate) kept: Vec<&'a RawValue>,
    /// The number of all items.
    pub(crate) count: usize,
}

impl<'de: 'a, 'a, const MAX: usize> Deserialize<'de> for Items<'a, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor<'a, const MAX: usize>(PhantomData<&'a str>);

        impl<'de: 'a, 'a, const MAX: usize> Visitor<'de> for ItemsVisitor<'a, MAX> {
            type Value = Items<'a, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Items<'a, MAX>, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < MAX {
                    match items.next_element()? {
                        Some(item) => kept.push(item),
                        None => return Ok(Items { count: kept.len(), kept }),
                    }
                }
                let mut count = kept.len();
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Items { kept, count })
            }
        }

        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::Items;

    const MAX: usize = 1000;

    #[test]
    fn items_above_the_maximum_are_counted_and_not_kept() {
        for count in [0, 1, MAX - 1, MAX, MAX + 1, 100_000] {
            let text = format!("[{}]", vec!["1"; count].join(","));
            let items: Items<'_, MAX> = serde_json::from_str(&text).unwrap();
            assert_eq!((items.count, items.kept.len()), (count, count.min(MAX)));
            assert!(items.kept.capacity() <= 2 * MAX, "{}", items.kept.capacity());
        }
    }

    #[test]
    fn text_after_the_maximum_is_checked_too() {
        let text = format!("[{}1,]", "1,".repeat(MAX));
        assert!(serde_json::from_str::<Items<'_, MAX>>(&text).is_err());
    }
}
