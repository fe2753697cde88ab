//! Reading one node: what it is, or an error that says where it stands.

use crate::error::QuotaError;

use super::error::{Flaw, PolicyErrorKind, Position, kind_of};
use super::nearest::did_you_mean;
use super::tree::{Node, Step, Tree, Value, push_name};

/// A node of a tree, and all that is needed to say where it stands.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    tree: &'t Tree<'t>,
    number: usize,
    node: &'t Node<'t>,
}

impl<'t> Cursor<'t> {
    pub(super) fn root(tree: &'t Tree<'t>) -> Option<Self> {
        Self::at(tree, 0)
    }

    fn at(tree: &'t Tree<'t>, number: usize) -> Option<Self> {
        tree.node(number).map(|node| Self { tree, number, node })
    }

    /// An error about this node.
    pub(super) fn flaw(self, kind: PolicyErrorKind, reason: impl Into<String>) -> Flaw {
        Flaw::new(kind, self.node.at, self.tree.field(self.number), reason.into())
    }

    /// An error about this node's value.
    pub(super) fn wrong(self, reason: impl Into<String>) -> Flaw {
        self.flaw(PolicyErrorKind::Value, reason)
    }

    /// An error of a limit, said of this node.
    pub(super) fn refused(self, error: &QuotaError) -> Flaw {
        self.flaw(kind_of(error), error.to_string())
    }

    /// The name it has in the map it stands in; empty elsewhere.
    pub(super) fn name(self) -> &'t str {
        match &self.node.step {
            Step::Field { name, .. } => name,
            Step::Root | Step::Item(_) => "",
        }
    }

    /// An error about the name it has, where the name stands.
    pub(super) fn misnamed(self, kind: PolicyErrorKind, reason: impl Into<String>) -> Flaw {
        let at = match &self.node.step {
            Step::Field { at, .. } => *at,
            Step::Root | Step::Item(_) => self.node.at,
        };
        Flaw::new(kind, at, self.tree.field(self.number), reason.into())
    }

    /// Text, with or without quotes: numbers and booleans as they are written.
    pub(super) fn text(self) -> Result<&'t str, Flaw> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.is_null() => Ok(text),
            _ => Err(self.expected("text")),
        }
    }

    /// Text of at least one character.
    pub(super) fn filled(self) -> Result<&'t str, Flaw> {
        match self.text()? {
            "" => Err(self.wrong("is empty")),
            text => Ok(text),
        }
    }

    pub(super) fn boolean(self) -> Result<bool, Flaw> {
        match self.plain() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number from `least` to 2^53 − 1.
    pub(super) fn number(self, least: u64) -> Result<u64, Flaw> {
        let wanted = || format!("must be a whole number from {least} to 2^53 - 1");
        let number = self.plain().and_then(|text| text.parse::<u64>().ok());
        let fits = |number: &u64| (least..crate::time::MAX_EXACT).contains(number);
        number.filter(fits).ok_or_else(|| match &self.node.value {
            Value::Scalar { text, .. } => self.wrong(format!("{}, not {}", wanted(), shown(text))),
            _ => self.wrong(wanted()),
        })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, Flaw> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let known = || words.iter().map(|(word, _)| *word);
        let list = known().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(text, known());
        Err(self.wrong(format!("{} is none of {list}{hint}", shown(text))))
    }

    pub(super) fn list(self) -> Result<Vec<Cursor<'t>>, Flaw> {
        self.items().ok_or_else(|| self.expected("a list"))
    }

    /// A list, or one value as a list of one.
    pub(super) fn one_or_more(self) -> Result<Vec<Cursor<'t>>, Flaw> {
        match self.items() {
            Some(items) if items.is_empty() => Err(self.wrong("needs at least one value")),
            Some(items) => Ok(items),
            None => Ok(vec![self]),
        }
    }

    fn items(self) -> Option<Vec<Cursor<'t>>> {
        match &self.node.value {
            Value::List(items) => Some(self.all(items)),
            _ => None,
        }
    }

    /// The fields of a map, in the file's order, whatever they are called.
    pub(super) fn entries(self) -> Result<Vec<Cursor<'t>>, Flaw> {
        match &self.node.value {
            Value::Map(fields) => Ok(self.all(fields)),
            _ => Err(self.expected("a map of fields")),
        }
    }

    /// The fields of a map that has only these.
    pub(super) fn fields(self, known: &'static [&'static str]) -> Result<Fields<'t>, Flaw> {
        let entries = self.entries()?;
        for entry in &entries {
            entry.known(known)?;
        }
        Ok(Fields { map: self, entries })
    }

    /// Errs if this is not one of the fields there are.
    pub(super) fn known(self, known: &[&str]) -> Result<(), Flaw> {
        let name = self.name();
        if known.contains(&name) {
            return Ok(());
        }
        let hint = if name == "<<" {
            "; merging is not supported, write it out".to_owned()
        } else {
            match did_you_mean(name, known.iter().copied()) {
                hint if hint.is_empty() => format!("; there are {}", known.join(", ")),
                hint => hint,
            }
        };
        Err(self.misnamed(PolicyErrorKind::UnknownField, format!("unknown field{hint}")))
    }

    /// A field of a map, if it is one and has it.
    pub(super) fn field(self, name: &str) -> Option<Cursor<'t>> {
        self.entries().ok()?.into_iter().find(|entry| entry.name() == name)
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    fn all(self, numbers: &[usize]) -> Vec<Cursor<'t>> {
        numbers.iter().filter_map(|number| Self::at(self.tree, *number)).collect()
    }

    fn plain(self) -> Option<&'t str> {
        match &self.node.value {
            Value::Scalar { text, is_plain: true } => Some(text),
            _ => None,
        }
    }

    fn is_null(self) -> bool {
        matches!(self.plain(), Some("" | "~" | "null" | "Null" | "NULL"))
    }

    fn expected(self, what: &str) -> Flaw {
        let found = match &self.node.value {
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map of fields",
        };
        self.wrong(format!("expected {what}, found {found}"))
    }
}

/// The fields of a map whose names are known.
pub(super) struct Fields<'t> {
    map: Cursor<'t>,
    entries: Vec<Cursor<'t>>,
}

impl<'t> Fields<'t> {
    pub(super) fn get(&self, name: &str) -> Option<Cursor<'t>> {
        self.entries.iter().find(|entry| entry.name() == name).copied()
    }

    /// What a field is read as, if it is there.
    pub(super) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(Cursor<'t>) -> Result<T, Flaw>,
    ) -> Result<Option<T>, Flaw> {
        self.get(name).map(read).transpose()
    }

    /// Errs if one of these is there.
    pub(super) fn refuse(&self, names: &[&str], reason: &str) -> Result<(), Flaw> {
        match names.iter().find_map(|name| self.get(name)) {
            Some(entry) => Err(entry.misnamed(PolicyErrorKind::Value, reason)),
            None => Ok(()),
        }
    }

    pub(super) fn require(&self, name: &str) -> Result<Cursor<'t>, Flaw> {
        self.get(name).ok_or_else(|| {
            let mut field = self.map.tree.field(self.map.number);
            push_name(&mut field, name);
            let (kind, at): (_, Position) = (PolicyErrorKind::MissingField, self.map.node.at);
            Flaw::new(kind, at, field, "is required".to_owned())
        })
    }
}

/// A value in quotes, at a length and in characters that a log line can carry.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}
