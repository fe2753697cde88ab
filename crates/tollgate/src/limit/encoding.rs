//! Binary encoding of limits in snapshots and in stores: a tag, the unit if it is not `requests`, and the fields of the
//! specification in the order of [`Letter::fields`].

use std::time::Duration;

use super::identity::Identity;
use super::{Limit, LimitSpec};
use crate::algorithm::{CalendarUnit, Letter, LimitField};
use crate::fields::{Fields, put_longs, put_text};
use crate::time::saturating_micros;
use crate::unit::Unit;

// First byte of an encoded limit. Limits in requests have the tags of versions without units, which can read them.
const UNNAMED: u8 = 1;
const NAMED: u8 = 2;
const UNNAMED_IN_UNIT: u8 = 3;
const NAMED_IN_UNIT: u8 = 4;

impl Limit {
    /// Encodes the limit's parameters, so that a store can list inline limits, which are in no policy.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// let limit = Limit::token_bucket(Quota::per_minute(10).burst(20))?;
    /// assert_eq!(Limit::from_spec_bytes(&limit.identity(), &limit.spec_bytes()), Some(limit));
    /// # Ok::<(), tollgate::QuotaError>(())
    /// ```
    #[must_use]
    pub fn spec_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Fails only for a text above 4 GiB, and time zone names are short.
        self.write_spec(&mut out).map_or_else(Vec::new, |()| out)
    }

    /// Rebuilds a limit from its [identity](Self::identity) and [`spec_bytes`](Self::spec_bytes). Returns
    /// `None` if they are invalid.
    #[must_use]
    pub fn from_spec_bytes(identity: &str, bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let tag = fields.byte()?;
        let limit = Self::read_spec(&Identity::parse(identity)?, tag, &mut fields)?;
        fields.is_empty().then_some(limit)
    }

    pub(crate) fn write_spec(&self, out: &mut Vec<u8>) -> Option<()> {
        out.push(match (self.is_named(), self.unit().is_requests()) {
            (false, true) => UNNAMED,
            (true, true) => NAMED,
            (false, false) => UNNAMED_IN_UNIT,
            (true, false) => NAMED_IN_UNIT,
        });
        if !self.unit().is_requests() {
            put_text(out, self.unit().as_str())?;
        }
        self.unnamed_spec().save(self.letter(), out)
    }

    pub(crate) fn read_spec(
        identity: &Identity<'_>,
        tag: u8,
        fields: &mut Fields<'_>,
    ) -> Option<Self> {
        let unit = match tag {
            UNNAMED | NAMED => None,
            UNNAMED_IN_UNIT | NAMED_IN_UNIT => Some(Unit::new(fields.text()?).ok()?),
            _ => return None,
        };
        let spec = LimitSpec { unit, ..LimitSpec::load(identity.letter, fields)? };
        // A count of 0 would build a block.
        let limit = spec.build().ok().filter(|limit| limit.letter() == identity.letter)?;
        let limit = limit.in_rule(identity.rule).ok()?;
        match tag {
            NAMED | NAMED_IN_UNIT => limit.named(identity.name).ok(),
            _ => Some(limit.with_default_name(identity.name.to_owned())),
        }
    }
}

impl LimitSpec {
    fn save(&self, letter: Letter, out: &mut Vec<u8>) -> Option<()> {
        for field in letter.fields() {
            match field {
                LimitField::Count => put_longs(out, self.count),
                LimitField::Window => put_longs(out, self.window.map(saturating_micros)),
                LimitField::Burst => put_longs(out, self.burst),
                LimitField::Align => out.extend(self.align.map(unit_code)),
                LimitField::Tz => put_text(out, self.tz.as_deref()?)?,
                LimitField::Ttl => put_longs(out, self.ttl.map(saturating_micros)),
                // The tag says whether there is a unit, and the identity contains the name.
                LimitField::Unit | LimitField::Name => {}
            }
        }
        Some(())
    }

    fn load(letter: Letter, fields: &mut Fields<'_>) -> Option<Self> {
        let mut spec = Self { algorithm: Some(letter.algorithm()), ..Self::default() };
        for field in letter.fields() {
            match field {
                LimitField::Count => spec.count = Some(fields.long()?),
                LimitField::Window => spec.window = Some(Duration::from_micros(fields.long()?)),
                LimitField::Burst => spec.burst = Some(fields.long()?),
                LimitField::Align => {
                    let code = fields.byte()?;
                    let mut units = CalendarUnit::ALL.into_iter();
                    spec.align = Some(units.find(|unit| unit_code(*unit) == code)?);
                }
                LimitField::Tz => spec.tz = Some(fields.text()?.to_owned()),
                LimitField::Ttl => spec.ttl = Some(Duration::from_micros(fields.long()?)),
                LimitField::Unit | LimitField::Name => {}
            }
        }
        Some(spec)
    }
}

/// Byte that encodes a calendar unit.
const fn unit_code(unit: CalendarUnit) -> u8 {
    match unit {
        CalendarUnit::Second => 0,
        CalendarUnit::Minute => 1,
        CalendarUnit::Hour => 2,
        CalendarUnit::Day => 3,
        CalendarUnit::Week => 4,
        CalendarUnit::Month => 5,
        CalendarUnit::Year => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quota;

    fn limits() -> [Limit; 2] {
        let limit = Limit::token_bucket(Quota::per_minute(10).burst(20)).unwrap();
        [limit.clone().named("n").unwrap(), limit]
    }

    #[test]
    fn limits_in_requests_are_encoded_as_before_units() {
        for (limit, tag) in limits().into_iter().zip([NAMED, UNNAMED]) {
            let mut bytes = vec![tag];
            put_longs(&mut bytes, [10, 60_000_000, 20]);
            assert_eq!(limit.spec_bytes(), bytes);
            assert_eq!(Limit::from_spec_bytes(&limit.identity(), &bytes), Some(limit));
        }
    }

    #[test]
    fn units_are_kept_and_validated() {
        for limit in limits() {
            let limit = limit.in_unit(Unit::new("tokens").unwrap()).unwrap();
            let bytes = limit.spec_bytes();
            assert_eq!(Limit::from_spec_bytes(&limit.identity(), &bytes), Some(limit.clone()));
            let invalid: Vec<u8> =
                bytes.iter().map(|byte| if *byte == b'k' { b' ' } else { *byte }).collect();
            assert_eq!(Limit::from_spec_bytes(&limit.identity(), &invalid), None);
        }
        let slots = Limit::concurrency(5, Duration::from_secs(1)).unwrap();
        let mut bytes = vec![UNNAMED_IN_UNIT];
        put_text(&mut bytes, "tokens").unwrap();
        bytes.extend(slots.spec_bytes().iter().skip(1));
        assert_eq!(Limit::from_spec_bytes(&slots.identity(), &bytes), None);
    }
}
