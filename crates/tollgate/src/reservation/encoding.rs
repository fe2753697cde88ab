//! Binary encoding of records, for stores that keep them as text. `lua/reservations.lua` of the Redis store reads and writes
//! the same format:
//!
//! - a state byte, the time of the takes and that of the expiry;
//! - the number of takes, and for each: whether it took, its deficit, and the two parts of what had been given back;
//! - the length of the terms, and the terms, which Lua does not read;
//! - once settled: the length of the final costs, the final costs, and for each take what it got back and what was not
//!   collected.
//!
//! Numbers that Lua reads or writes have 7 bytes.

use std::time::Duration;

use smallvec::SmallVec;

use super::record::{Draft, Record, ReservedTake, TakenAmount};
use super::settlement::TakeOutcome;
use super::{GivenBack, ReservationToken};
use crate::algorithm::PermitId;
use crate::costs::Costs;
use crate::fields::{Fields, put_length, put_longs, put_text};
use crate::limit::Limit;
use crate::plan::Plan;
use crate::time::{Timestamp, saturating_micros};

/// State of a record that is not settled.
const OPEN: u8 = b'o';
/// State of a settled record.
const SETTLED: u8 = b's';
/// The format of the terms.
const VERSION: u8 = 1;

impl Draft {
    /// Encodes the terms of the reservation of a plan: all that its settlement needs besides what the store adds.
    ///
    /// Returns `None` for texts above 4 GiB, which no request has.
    #[must_use]
    pub fn encode_terms(&self, plan: &Plan<'_>) -> Option<Vec<u8>> {
        Record::new(self.clone(), plan, Timestamp::EPOCH, |_, _| None).encode_terms()
    }
}

impl Record {
    /// Encodes the record.
    ///
    /// Returns `None` for texts above 4 GiB, which no request has.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![if self.settled.is_some() { SETTLED } else { OPEN }];
        put_sevens(&mut out, [self.taken_at.as_micros(), self.expires_at.as_micros()]);
        out.push(u8::try_from(self.takes.len()).ok()?);
        for take in &self.takes {
            let taken = take.taken.unwrap_or_default();
            let (since, total) = taken.given_back.parts();
            out.push(u8::from(take.taken.is_some()));
            put_sevens(&mut out, [taken.deficit, since, total]);
        }
        put_block(&mut out, &self.encode_terms()?)?;
        if let Some((costs, outcomes)) = &self.settled {
            put_block(&mut out, &encode_costs(costs)?)?;
            for outcome in outcomes {
                put_sevens(&mut out, [outcome.given_back, outcome.uncollected]);
            }
        }
        Some(out)
    }

    /// Decodes a record. `token` has its place and hint; the secret is in the record. Returns `None` if the bytes are not
    /// a record of a known version.
    #[must_use]
    pub fn decode(token: ReservationToken, bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let state = fields.byte()?;
        let (taken_at, expires_at) = (seven(&mut fields)?, seven(&mut fields)?);
        let count = fields.byte()?;
        let taken: Vec<Option<TakenAmount>> =
            (0..count).map(|_| read_taken(&mut fields)).collect::<Option<_>>()?;
        let terms = block(&mut fields)?;
        let mut record = read_terms(token, terms)?;
        if record.takes.len() != taken.len() {
            return None;
        }
        record.takes.iter_mut().zip(taken).for_each(|(take, taken)| take.taken = taken);
        record.taken_at = Timestamp::from_micros(taken_at);
        record.expires_at = Timestamp::from_micros(expires_at);
        match state {
            OPEN => {}
            SETTLED => {
                let costs = decode_costs(block(&mut fields)?)?;
                let outcomes =
                    (0..count).map(|_| read_outcome(&mut fields)).collect::<Option<_>>()?;
                record.settled = Some((costs, outcomes));
            }
            _ => return None,
        }
        fields.is_empty().then_some(record)
    }

    fn encode_terms(&self) -> Option<Vec<u8>> {
        let Draft { token, tenant, ttl, costs, .. } = &self.draft;
        let mut out = vec![VERSION];
        out.extend_from_slice(&token.secret().to_be_bytes());
        put_longs(&mut out, [saturating_micros(*ttl)]);
        out.extend_from_slice(&self.permit.map_or(0, PermitId::as_u128).to_be_bytes());
        put_block(&mut out, tenant)?;
        put_block(&mut out, &encode_costs(costs)?)?;
        put_length(&mut out, self.takes.len())?;
        for take in &self.takes {
            put_text(&mut out, &take.limit.identity())?;
            put_block(&mut out, &take.limit.spec_bytes())?;
            put_text(&mut out, &take.subject)?;
            put_longs(&mut out, [take.cost, take.factor]);
            out.push(u8::from(take.is_enforced));
        }
        Some(out)
    }
}

fn read_terms(token: ReservationToken, bytes: &[u8]) -> Option<Record> {
    let mut fields = Fields::new(bytes);
    if fields.byte()? != VERSION {
        return None;
    }
    let token = token.with_secret(fields.wide()?);
    let ttl = Duration::from_micros(fields.long()?);
    let permit = PermitId::from_u128(fields.wide()?);
    let tenant = block(&mut fields)?.into();
    let costs = decode_costs(block(&mut fields)?)?;
    let count = fields.entries(25)?;
    let takes: Vec<ReservedTake> =
        (0..count).map(|_| read_take(&mut fields)).collect::<Option<_>>()?;
    let factors: SmallVec<[u64; 2]> = takes.iter().map(|take| take.factor).collect();
    let draft = Draft { token, tenant, ttl, costs, factors };
    let (taken_at, expires_at) = (Timestamp::EPOCH, Timestamp::EPOCH);
    let record = Record { draft, taken_at, expires_at, permit, takes, settled: None };
    fields.is_empty().then_some(record)
}

fn read_take(fields: &mut Fields<'_>) -> Option<ReservedTake> {
    let identity = fields.text()?;
    let limit = Limit::from_spec_bytes(identity, block(fields)?)?;
    let subject = fields.text()?.into();
    let (cost, factor) = (fields.exact()?, fields.exact()?);
    let is_enforced = fields.byte()? != 0;
    Some(ReservedTake { limit, subject, cost, factor, is_enforced, taken: None })
}

fn read_taken(fields: &mut Fields<'_>) -> Option<Option<TakenAmount>> {
    let took = fields.byte()?;
    let (deficit, since, total) = (seven(fields)?, seven(fields)?, seven(fields)?);
    let given_back = GivenBack::from_parts(since, total);
    Some((took != 0).then_some(TakenAmount { deficit, given_back }))
}

fn read_outcome(fields: &mut Fields<'_>) -> Option<TakeOutcome> {
    Some(TakeOutcome { given_back: seven(fields)?, uncollected: seven(fields)? })
}

/// Encodes costs: the number of units, then each unit and its amount.
#[must_use]
pub(super) fn encode_costs(costs: &Costs) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    put_length(&mut out, costs.iter().count())?;
    for (unit, amount) in costs.iter() {
        put_text(&mut out, unit.as_str())?;
        put_longs(&mut out, [amount]);
    }
    Some(out)
}

fn decode_costs(bytes: &[u8]) -> Option<Costs> {
    let mut fields = Fields::new(bytes);
    let count = fields.entries(12)?;
    let amounts: Vec<(&str, u64)> =
        (0..count).map(|_| Some((fields.text()?, fields.exact()?))).collect::<Option<_>>()?;
    Costs::of(amounts).ok().filter(|_| fields.is_empty())
}

/// Writes numbers of 7 bytes, which is what Lua reads and writes.
fn put_sevens(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let [_, seven @ ..] = number.min((1 << 56) - 1).to_be_bytes();
        out.extend_from_slice(&seven);
    }
}

fn seven(fields: &mut Fields<'_>) -> Option<u64> {
    let bytes = fields.bytes(7)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn put_block(out: &mut Vec<u8>, block: &[u8]) -> Option<()> {
    put_length(out, block.len())?;
    out.extend_from_slice(block);
    Some(())
}

fn block<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(fields.word()?).ok()?;
    fields.bytes(length)
}

impl Costs {
    /// Encodes the final costs of a settlement, for [`Record`]s that a store keeps as text.
    #[doc(hidden)]
    #[must_use]
    pub fn encode_final(&self) -> Option<Vec<u8>> {
        encode_costs(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Quota, Subject, Take, Unit};

    fn record() -> Record {
        let tokens =
            Limit::token_bucket(Quota::per_minute(90_000)).unwrap().in_rule("llm").unwrap();
        let tokens = tokens.in_unit(Unit::new("tokens").unwrap()).unwrap();
        let slots = Limit::concurrency(5, Duration::from_secs(60)).unwrap();
        let subject = Subject::in_tenant("acme", ["key 1"]);
        let takes = [
            Take::new(Key::new(&subject, &tokens), 1800),
            Take::new(Key::new(&subject, &slots), 1),
        ];
        let plan = Plan::new(takes).unwrap().with_permit(PermitId::random());
        let draft = Draft {
            token: ReservationToken::random().with_hint(9),
            tenant: b"acme".as_slice().into(),
            ttl: Duration::from_secs(30),
            costs: Costs::requests(1).and("tokens", 1800).unwrap(),
            factors: SmallVec::from_slice(&[1, 3]),
        };
        let taken = TakenAmount { deficit: 77, given_back: GivenBack::from_parts(5, 6) };
        Record::new(draft, &plan, Timestamp::from_micros(1_000), |index, _| {
            (index == 0).then_some(taken)
        })
    }

    #[test]
    fn records_round_trip() {
        let mut record = record();
        let place = ReservationToken::at(record.token().place()).with_hint(9);
        assert_eq!(Record::decode(place, &record.encode().unwrap()), Some(record.clone()));
        assert_eq!(record.expires_at(), Timestamp::from_micros(30_001_000));
        let outcome = TakeOutcome { given_back: 3, uncollected: 4 };
        record.settle(Costs::of([("tokens", 420)]).unwrap(), vec![outcome, TakeOutcome::default()]);
        assert_eq!(Record::decode(place, &record.encode().unwrap()), Some(record));
    }

    #[test]
    fn truncated_or_changed_records_are_rejected_or_valid_but_never_panic() {
        let (record, token) = (record(), ReservationToken::random());
        let bytes = record.encode().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(Record::decode(token, &bytes[..length]), None, "{length} bytes");
        }
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 0xff;
            let _ = Record::decode(token, &changed);
        }
        assert_eq!(Record::decode(token, &[&bytes[..], b"x"].concat()), None);
    }
}
