//! JSON lines, with our field names or those of nginx.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::payload::{FactNames, MAX_NAMES, Payload};
use super::{CostField, LineError, access_log, cost_field, forwarded, time};

/// Number of values that a line can supply: the facts, and the three below.
const SLOTS: usize = MAX_NAMES + 3;
const TIME: usize = MAX_NAMES;
const FORWARDED: usize = MAX_NAMES + 1;
const REQUEST: usize = MAX_NAMES + 2;

/// Names that nginx gives its variables, and other usual ones, after our own name.
const ALIASES: [(&str, &[&str]); 8] = [
    ("time", &["time_iso8601", "timestamp", "@timestamp", "ts", "msec", "time_local"]),
    ("ip", &["remote_addr", "client_ip"]),
    ("method", &["request_method"]),
    ("path", &["request_uri", "uri"]),
    ("user", &["remote_user"]),
    ("host", &["http_host"]),
    ("forwarded", &["http_x_forwarded_for", "x_forwarded_for"]),
    ("request", &[]),
];

/// Which JSON fields supply which facts.
#[derive(Debug, Clone)]
pub(crate) struct JsonFields {
    names: FactNames,
    /// Field, slot, and rank: of several fields for one slot, the lowest rank counts.
    fields: Vec<(String, usize, u8)>,
    has_renamed: bool,
    costs: Vec<CostField>,
}

impl JsonFields {
    /// Returns the fields for these facts and costs. `renamed` has pairs of fact and field, which replace the usual names.
    pub(crate) fn new(names: FactNames, renamed: &[(String, String)], costs: &[CostField]) -> Self {
        let facts = names.iter().map(|(index, name)| (name.to_owned(), usize::from(index)));
        let others = [("time", TIME), ("forwarded", FORWARDED), ("request", REQUEST)];
        let slots: Vec<(String, usize)> =
            facts.chain(others.map(|(name, slot)| (name.to_owned(), slot))).collect();
        let mut fields = Vec::new();
        for (name, slot) in slots {
            let given = renamed.iter().find(|(fact, _)| *fact == name).map(|(_, field)| field);
            let of_cost = costs.iter().find(|cost| cost.name() == name).map(|cost| &cost.field);
            match given.or(of_cost) {
                Some(field) => fields.push((field.clone(), slot, 0)),
                None => fields
                    .extend(usual_fields(&name).zip(0..).map(|(field, rank)| (field, slot, rank))),
            }
        }
        Self { names, fields, has_renamed: !renamed.is_empty(), costs: costs.to_vec() }
    }

    /// Returns whether the command line names fields.
    pub(crate) const fn has_renamed(&self) -> bool {
        self.has_renamed
    }

    /// Returns whether a cost is in a field that access logs do not have.
    pub(crate) fn has_costs_of_json(&self) -> bool {
        self.costs.iter().any(|cost| cost.field != cost_field::SIZE)
    }

    pub(super) const fn names(&self) -> &FactNames {
        &self.names
    }

    fn find(&self, field: &str) -> impl Iterator<Item = (usize, u8)> {
        let fields = self.fields.iter().filter(move |(name, ..)| name == field);
        fields.map(|(_, slot, rank)| (*slot, *rank))
    }
}

/// Returns the names under which a fact is looked up, the preferred one first.
fn usual_fields(name: &str) -> impl Iterator<Item = String> {
    let aliases =
        ALIASES.iter().find(|(fact, _)| *fact == name).map_or(&[][..], |(_, aliases)| aliases);
    let header =
        name.strip_prefix("header:").map(|header| format!("http_{}", header.replace('-', "_")));
    // `client` is the address, unless a field is named for it.
    let own = (name != "client").then(|| name.to_owned());
    own.into_iter().chain(aliases.iter().map(|alias| (*alias).to_owned())).chain(header)
}

#[derive(Debug, Clone)]
enum Scalar<'d> {
    Text(Cow<'d, str>),
    Whole(u64),
    Negative,
    Float(f64),
}

type Slots<'d> = [Option<(u8, Scalar<'d>)>; SLOTS];

pub(super) fn parse(
    line: &[u8],
    fields: &JsonFields,
    facts: &mut Payload,
) -> Result<u64, LineError> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let slots = Fields(fields)
        .deserialize(&mut deserializer)
        .map_err(|_| "the line is not a JSON object")?;
    deserializer.end().map_err(|_| "the line has text after the JSON object")?;
    let slot = |index: usize| slots.get(index).and_then(Option::as_ref).map(|(_, scalar)| scalar);
    let at =
        match slot(TIME).ok_or("the field `time` is missing; name it with --field time=NAME")? {
            Scalar::Text(text) => time::text(text.as_bytes())?,
            Scalar::Whole(number) => time::unix(*number)?,
            Scalar::Negative => return Err("a negative number is not a valid time"),
            Scalar::Float(number) => time::unix_float(*number)?,
        };
    let text = |index| slot(index).and_then(Scalar::text);
    let forwarded = text(FORWARDED).and_then(|list| forwarded::client(list.as_bytes()));
    let ip = forwarded.or_else(|| text(usize::from(FactNames::IP)).map(str::as_bytes));
    let ip = ip
        .filter(|ip| !ip.is_empty())
        .ok_or("the field `ip` is missing; name it with --field ip=NAME")?;
    facts.put(FactNames::IP, ip)?;
    let request_text = text(REQUEST);
    let request = request_text.and_then(|request| access_log::request_line(request.as_bytes()));
    let method = text(usize::from(FactNames::METHOD))
        .map(str::as_bytes)
        .or(request.map(|(method, _)| method));
    let path =
        text(usize::from(FactNames::PATH)).map(str::as_bytes).or(request.map(|(_, target)| target));
    let path = path.ok_or(match request_text {
        Some(_) => access_log::NO_REQUEST,
        None => "the field `path` is missing; name it with --field path=NAME",
    })?;
    facts.put_request(method.unwrap_or_default(), path)?;
    for (index, name) in fields.names.iter().skip(3) {
        let value = slot(usize::from(index));
        if cost_field::unit(name).is_some() {
            put_cost(index, value, facts)?;
            continue;
        }
        match value {
            Some(Scalar::Text(text)) if text != "-" => facts.put(index, text.as_bytes())?,
            Some(Scalar::Whole(number)) => {
                facts.put(index, itoa::Buffer::new().format(*number).as_bytes())?;
            }
            _ => {}
        }
    }
    Ok(at)
}

/// Adds a cost. Without a value it is 0.
fn put_cost(index: u8, value: Option<&Scalar<'_>>, facts: &mut Payload) -> Result<(), LineError> {
    let mut digits = itoa::Buffer::new();
    let text = match value {
        None => return Ok(()),
        Some(Scalar::Text(text)) => text.as_bytes(),
        Some(Scalar::Whole(number)) => digits.format(*number).as_bytes(),
        Some(Scalar::Negative | Scalar::Float(_)) => return Err(cost_field::INVALID),
    };
    facts.put(index, cost_field::amount(text)?.unwrap_or_default())
}

impl Scalar<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Whole(_) | Self::Negative | Self::Float(_) => None,
        }
    }
}

/// Reads the wanted fields of an object and skips the others.
struct Fields<'f>(&'f JsonFields);

impl<'d> DeserializeSeed<'d> for Fields<'_> {
    type Value = Slots<'d>;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Slots<'d>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'d> Visitor<'d> for Fields<'_> {
    type Value = Slots<'d>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Slots<'d>, A::Error> {
        let mut slots: Slots<'d> = [const { None }; SLOTS];
        while let Some(Scalar::Text(key)) = map.next_key_seed(Value)?.flatten() {
            if self.0.find(&key).next().is_none() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Some(value) = map.next_value_seed(Value)? else { continue };
            for (slot, rank) in self.0.find(&key) {
                if let Some(found) = slots.get_mut(slot)
                    && found.as_ref().is_none_or(|(known, _)| rank < *known)
                {
                    *found = Some((rank, value.clone()));
                }
            }
        }
        Ok(slots)
    }
}

/// Reads a text or a number without a copy; other values are `None`.
struct Value;

impl<'d> DeserializeSeed<'d> for Value {
    type Value = Option<Scalar<'d>>;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'d> Visitor<'d> for Value {
    type Value = Option<Scalar<'d>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'d str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Whole(number)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Negative))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Float(number)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}
