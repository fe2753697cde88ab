//! Typed access to one node of a YAML document. Errors contain the position and field of the node.

use crate::algorithm::Algorithm;
use crate::quota::QuotaError;

use super::error::{FieldError, FieldErrors, PolicyErrorKind, Position, kind_of};
use super::suggestion::did_you_mean;
use super::yaml_tree::{Node, Step, Value, YamlTree, push_name};

/// A reference to a node of a [`YamlTree`], with the tree, so that errors can name its field.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'t> {
    tree: &'t YamlTree<'t>,
    number: usize,
    node: &'t Node<'t>,
}

impl<'t> NodeRef<'t> {
    pub(super) fn root(tree: &'t YamlTree<'t>) -> Option<Self> {
        Self::at(tree, 0)
    }

    fn at(tree: &'t YamlTree<'t>, number: usize) -> Option<Self> {
        tree.node(number).map(|node| Self { tree, number, node })
    }

    /// An error about this node.
    pub(super) fn error(self, kind: PolicyErrorKind, reason: impl Into<String>) -> FieldError {
        FieldError::new(kind, self.node.position, self.tree.field(self.number), reason.into())
    }

    /// An error about this node's value.
    pub(super) fn invalid(self, reason: impl Into<String>) -> FieldError {
        self.error(PolicyErrorKind::Value, reason)
    }

    /// An error from building a limit, reported at this node.
    pub(super) fn limit_error(self, error: &QuotaError) -> FieldError {
        self.error(kind_of(error), error.to_string())
    }

    /// Returns the position of this node.
    pub(super) const fn position(self) -> Position {
        self.node.position
    }

    /// Returns the field name if the node is a value in a map; else an empty string.
    pub(super) fn name(self) -> &'t str {
        match &self.node.step {
            Step::Field { name, .. } => name,
            Step::Root | Step::Item(_) => "",
        }
    }

    /// An error about the field name of this node, at the position of the name.
    pub(super) fn name_error(self, kind: PolicyErrorKind, reason: impl Into<String>) -> FieldError {
        let position = match &self.node.step {
            Step::Field { position, .. } => *position,
            Step::Root | Step::Item(_) => self.node.position,
        };
        FieldError::new(kind, position, self.tree.field(self.number), reason.into())
    }

    /// Returns the text of a scalar, quoted or not. Numbers and booleans are returned as written.
    pub(super) fn text(self) -> Result<&'t str, FieldError> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.is_null() => Ok(text),
            _ => Err(self.expected("text")),
        }
    }

    /// Returns text of at least one character.
    pub(super) fn non_empty_text(self) -> Result<&'t str, FieldError> {
        match self.text()? {
            "" => Err(self.invalid("must not be empty")),
            text => Ok(text),
        }
    }

    pub(super) fn boolean(self) -> Result<bool, FieldError> {
        match self.plain() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(match &self.node.value {
                Value::Scalar { text, .. } if !self.is_null() => {
                    self.invalid(format!("must be true or false, not {}", quoted(text)))
                }
                _ => self.expected("true or false"),
            }),
        }
    }

    /// Returns a whole number from `min` to 2^53 − 1.
    pub(super) fn number(self, min: u64) -> Result<u64, FieldError> {
        let expected = || format!("must be a whole number from {min} to 2^53 - 1");
        let number = self.plain().and_then(|text| text.parse::<u64>().ok());
        let fits = |number: &u64| (min..crate::time::MAX_EXACT).contains(number);
        number.filter(fits).ok_or_else(|| match &self.node.value {
            Value::Scalar { text, .. } => {
                self.invalid(format!("{}, not {}", expected(), quoted(text)))
            }
            _ => self.invalid(expected()),
        })
    }

    /// Returns the value of one of the given words.
    pub(super) fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T, FieldError> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let known = || words.iter().map(|(word, _)| *word);
        let list = known().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(text, known());
        Err(self.invalid(format!("unknown value {} (valid: {list}){hint}", quoted(text))))
    }

    /// Returns the algorithm of which this is the name, out of those that `is_valid`.
    pub(super) fn algorithm(
        self,
        is_valid: impl Fn(Algorithm) -> bool,
    ) -> Result<Algorithm, FieldError> {
        let named = |name: &&'static str| Some((*name, Algorithm::from_name(name)?));
        let named = Algorithm::NAMES.iter().filter_map(named);
        self.word(&named.filter(|(_, algorithm)| is_valid(*algorithm)).collect::<Vec<_>>())
    }

    pub(super) fn list(self) -> Result<Vec<NodeRef<'t>>, FieldError> {
        self.items().ok_or_else(|| self.expected("a list"))
    }

    /// Returns the items of a list, or a single limit as a list of one.
    pub(super) fn one_or_more_limits(self) -> Result<Vec<NodeRef<'t>>, FieldError> {
        match self.items() {
            Some(items) => Ok(items),
            None if self.is_null() => Err(self.expected("a limit or a list of limits")),
            None => Ok(vec![self]),
        }
    }

    /// Returns the items of a list, or a single value as a list of one.
    pub(super) fn one_or_more(self) -> Result<Vec<NodeRef<'t>>, FieldError> {
        match self.items() {
            Some(items) if items.is_empty() => {
                Err(self
                    .invalid("must have at least one value (remove the field to match any value)"))
            }
            Some(items) => Ok(items),
            None => Ok(vec![self]),
        }
    }

    fn items(self) -> Option<Vec<NodeRef<'t>>> {
        match &self.node.value {
            Value::List(items) => Some(self.all(items)),
            _ => None,
        }
    }

    /// Returns the fields of a map in file order. Any field name is accepted.
    pub(super) fn entries(self) -> Result<Vec<NodeRef<'t>>, FieldError> {
        match &self.node.value {
            Value::Map(fields) => Ok(self.all(fields)),
            _ => Err(self.expected("a map of fields")),
        }
    }

    /// Returns the fields of a map. Field names that are not in `known` are errors.
    pub(super) fn fields(self, known: &'static [&'static str]) -> Result<Fields<'t>, FieldError> {
        let entries = self.entries()?;
        for entry in &entries {
            entry.check_name(known)?;
        }
        Ok(Fields { map: self, entries, has_unknown: false })
    }

    /// Returns the fields of a map that are in `known`. Records an error for each of the others.
    pub(super) fn known_fields(
        self,
        known: &'static [&'static str],
        errors: &mut FieldErrors,
    ) -> Option<Fields<'t>> {
        let entries = errors.record(self.entries())?;
        let (entries, unknown): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| known.contains(&entry.name()));
        for entry in &unknown {
            errors.record(entry.check_name(known));
        }
        Some(Fields { map: self, entries, has_unknown: !unknown.is_empty() })
    }

    /// Returns an error if the field name of this node is not in `known`.
    pub(super) fn check_name(self, known: &[&str]) -> Result<(), FieldError> {
        let name = self.name();
        if known.contains(&name) {
            return Ok(());
        }
        let hint = if name == "<<" {
            "; YAML merge keys are not supported, repeat the fields".to_owned()
        } else {
            match did_you_mean(name, known.iter().copied()) {
                hint if hint.is_empty() => format!(" (valid: {})", known.join(", ")),
                hint => hint,
            }
        };
        Err(self.name_error(PolicyErrorKind::UnknownField, format!("unknown field{hint}")))
    }

    /// Returns the field `name` if the node is a map that has it.
    pub(super) fn field(self, name: &str) -> Option<NodeRef<'t>> {
        self.entries().ok()?.into_iter().find(|entry| entry.name() == name)
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    fn all(self, numbers: &[usize]) -> Vec<NodeRef<'t>> {
        numbers.iter().filter_map(|number| Self::at(self.tree, *number)).collect()
    }

    fn plain(self) -> Option<&'t str> {
        match &self.node.value {
            Value::Scalar { text, is_plain: true } => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_null(self) -> bool {
        matches!(self.plain(), Some("" | "~" | "null" | "Null" | "NULL"))
    }

    fn expected(self, what: &str) -> FieldError {
        let found = match &self.node.value {
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map of fields",
        };
        self.invalid(format!("expected {what}, found {found}"))
    }
}

/// The fields of a map, all with known names.
pub(super) struct Fields<'t> {
    map: NodeRef<'t>,
    entries: Vec<NodeRef<'t>>,
    /// Whether the map also has fields with unknown names, which were recorded as errors.
    has_unknown: bool,
}

impl<'t> Fields<'t> {
    pub(super) fn get(&self, name: &str) -> Option<NodeRef<'t>> {
        self.entries.iter().find(|entry| entry.name() == name).copied()
    }

    /// Returns all fields, in file order.
    pub(super) fn entries(&self) -> &[NodeRef<'t>] {
        &self.entries
    }

    /// Returns the field `name` unless it is missing or null.
    pub(super) fn non_null(&self, name: &str) -> Option<NodeRef<'t>> {
        self.get(name).filter(|entry| !entry.is_null())
    }

    /// Parses the field `name` with `parse`; `None` if the map does not have it.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        parse: impl FnOnce(NodeRef<'t>) -> Result<T, FieldError>,
    ) -> Result<Option<T>, FieldError> {
        self.get(name).map(parse).transpose()
    }

    /// Parses the field `name` with `parse` and records an error; `None` if the map does not have it or it is invalid.
    pub(super) fn parse<T>(
        &self,
        name: &str,
        errors: &mut FieldErrors,
        parse: impl FnOnce(NodeRef<'t>) -> Result<T, FieldError>,
    ) -> Option<T> {
        errors.record(self.optional(name, parse)).flatten()
    }

    /// Returns the field `name`, or records that it is missing.
    pub(super) fn require(&self, name: &str, errors: &mut FieldErrors) -> Option<NodeRef<'t>> {
        let missing = self.required(name);
        if missing.is_err() && self.has_unknown {
            return None;
        }
        errors.record(missing)
    }

    /// Returns whether the map has an unknown field, which may be the misspelled name of a missing one.
    pub(super) const fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Returns an error with `reason` if the map has one of the fields `names`.
    pub(super) fn forbid(&self, names: &[&str], reason: &str) -> Result<(), FieldError> {
        match names.iter().find_map(|name| self.get(name)) {
            Some(entry) => Err(entry.name_error(PolicyErrorKind::Value, reason)),
            None => Ok(()),
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<NodeRef<'t>, FieldError> {
        self.get(name).ok_or_else(|| {
            let mut field = self.map.tree.field(self.map.number);
            push_name(&mut field, name);
            let (kind, position) = (PolicyErrorKind::MissingField, self.map.node.position);
            FieldError::new(kind, position, field, "required field is missing".to_owned())
        })
    }
}

/// Quotes a value for an error message: at most 80 characters, control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut start: String = text.chars().take(80).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}
