//! Binary encoding of limits in snapshots and in stores: the fields of the specification in the order of
//! [`Letter::fields`].

use std::time::Duration;

use super::identity::Identity;
use super::{Limit, LimitSpec};
use crate::algorithm::{CalendarUnit, Letter, LimitField};
use crate::fields::{Fields, put_longs, put_text};
use crate::time::saturating_micros;

// First byte of an encoded limit.
const UNNAMED: u8 = 1;
const NAMED: u8 = 2;

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
        out.push(if self.is_named() { NAMED } else { UNNAMED });
        self.unnamed_spec().save(self.letter(), out)
    }

    pub(crate) fn read_spec(
        identity: &Identity<'_>,
        tag: u8,
        fields: &mut Fields<'_>,
    ) -> Option<Self> {
        let spec = LimitSpec::load(identity.letter, fields)?;
        // A count of 0 would build a block.
        let limit = spec.build().ok().filter(|limit| limit.letter() == identity.letter)?;
        let limit = limit.in_rule(identity.rule).ok()?;
        match tag {
            NAMED => limit.named(identity.name).ok(),
            UNNAMED => Some(limit.with_default_name(identity.name.to_owned())),
            _ => None,
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
                // The identity contains the name.
                LimitField::Name => {}
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
                LimitField::Name => {}
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
