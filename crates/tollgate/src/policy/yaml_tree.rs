//! A YAML file as a tree of nodes with positions. Only this file and `yaml_error` use the YAML parser.

use std::borrow::Cow;

use granit_parser::{Event, Parser, ScalarStyle, Span, options};

use super::error::{FieldError, FieldErrors, PolicyErrorKind, Position};
use super::yaml_error;

/// The maximum file size, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// The maximum number of values in a file: 50 for each of 20 000 rules.
const MAX_NODES: usize = 1_000_000;
/// The maximum number of fields in one map.
const MAX_FIELDS: usize = 1000;

/// What a file contains.
#[derive(Clone, Copy)]
pub(super) struct FileKind {
    /// The maximum nesting depth.
    max_depth: usize,
    /// The error for an empty file.
    empty: &'static str,
}

/// A policy, whose deepest field is at depth 7.
pub(super) const POLICY: FileKind = FileKind {
    max_depth: 16,
    empty: "the file is empty; the smallest valid policy is \"version: 1\"",
};
/// The configuration of another rate limiter: up to 64 nested lists of maps.
pub(super) const IMPORTED: FileKind = FileKind { max_depth: 130, empty: "the file is empty" };

/// All nodes of a file; the first is the root.
pub(super) struct YamlTree<'t> {
    nodes: Vec<Node<'t>>,
}

pub(super) struct Node<'t> {
    /// The number of the list or map that contains the node; its own number for the root.
    pub(super) parent: usize,
    /// The index or field name within the parent.
    pub(super) step: Step<'t>,
    pub(super) position: Position,
    pub(super) value: Value<'t>,
}

/// The step from a parent to a node.
#[derive(Clone)]
pub(super) enum Step<'t> {
    Root,
    Item(usize),
    /// `position` is that of the field name.
    Field {
        name: Cow<'t, str>,
        position: Position,
    },
}

pub(super) enum Value<'t> {
    Scalar {
        text: Cow<'t, str>,
        /// Not quoted, so `true` is a boolean and an empty value is null.
        is_plain: bool,
    },
    List(Vec<usize>),
    Map(Vec<usize>),
}

impl<'t> YamlTree<'t> {
    /// Parses a file with one document. Anchors, aliases, tags and directives are errors: they could expand a
    /// small file to a large one, or change the meaning of a value.
    pub(super) fn parse(text: &'t str, kind: FileKind) -> Result<Self, FieldError> {
        let Builder { tree, duplicates, .. } = Self::build(text, kind)?;
        duplicates.into_first().map_or(Ok(tree), Err)
    }

    /// Like [`parse`](Self::parse), but records the errors. Duplicate fields do not end the search for other errors.
    pub(super) fn parse_all(
        text: &'t str,
        kind: FileKind,
        errors: &mut FieldErrors,
    ) -> Option<Self> {
        let Builder { tree, duplicates, .. } = errors.record(Self::build(text, kind))?;
        errors.append(duplicates);
        Some(tree)
    }

    fn build(text: &'t str, kind: FileKind) -> Result<Builder<'t>, FieldError> {
        if text.len() > MAX_BYTES {
            return Err(FieldError::whole_file(
                PolicyErrorKind::TooLarge,
                "the file is larger than the maximum of 4 MiB",
            ));
        }
        let options = options! {
            disallow_directives: true,
            flow_nesting_limit: kind.max_depth,
            block_nesting_limit: kind.max_depth,
        };
        let mut builder = Builder {
            tree: Self { nodes: Vec::new() },
            open: Vec::new(),
            duplicates: FieldErrors::default(),
        };
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(|error| {
                let position = yaml_error::position(&error, text);
                let reason = yaml_error::describe(&error, kind.max_depth);
                FieldError::new(PolicyErrorKind::Syntax, position, "", reason)
            })?;
            builder.add(event, span)?;
        }
        if builder.tree.nodes.is_empty() {
            return Err(FieldError::whole_file(PolicyErrorKind::MissingField, kind.empty));
        }
        Ok(builder)
    }

    pub(super) fn node(&self, number: usize) -> Option<&Node<'t>> {
        self.nodes.get(number)
    }

    /// Returns the field path of a node for error messages: `rules[2].limits[0].burst`.
    pub(super) fn field(&self, number: usize) -> String {
        let mut steps = Vec::new();
        let mut node = self.node(number);
        while let Some(Node { parent, step: step @ (Step::Item(_) | Step::Field { .. }), .. }) =
            node
        {
            steps.push(step);
            node = self.node(*parent);
        }
        let mut field = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Root => {}
                Step::Item(index) => field.push_str(&format!("[{index}]")),
                Step::Field { name, .. } => push_name(&mut field, name),
            }
        }
        field
    }
}

/// Appends `.name` to a field path: at most 80 characters, control characters escaped.
pub(super) fn push_name(field: &mut String, name: &str) {
    if !field.is_empty() {
        field.push('.');
    }
    field.extend(name.chars().take(80).flat_map(char::escape_debug));
}

/// Builds a tree from parser events.
struct Builder<'t> {
    tree: YamlTree<'t>,
    /// The lists and maps that are not closed yet.
    open: Vec<Open<'t>>,
    /// Errors about fields that occur twice in a map.
    duplicates: FieldErrors,
}

struct Open<'t> {
    number: usize,
    /// A field name whose value has not been parsed yet.
    name: Option<(Cow<'t, str>, Position)>,
}

impl<'t> Builder<'t> {
    fn add(&mut self, event: Event<'t>, span: Span) -> Result<(), FieldError> {
        let position = Position::of(&span.start);
        let (value, anchor, tag) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_bare = tag.is_none() && anchor == 0;
                if is_bare && self.is_field_name(&text, position)? {
                    if let Some(open) = self.open.last_mut() {
                        open.name = Some((text, position));
                    }
                    return Ok(());
                }
                let is_plain = style == ScalarStyle::Plain;
                (Value::Scalar { text, is_plain }, anchor, tag)
            }
            Event::SequenceStart(_, anchor, tag) => (Value::List(Vec::new()), anchor, tag),
            Event::MappingStart(_, anchor, tag) => (Value::Map(Vec::new()), anchor, tag),
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                return Ok(());
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let reason = "YAML aliases are not supported; repeat the value";
                return Err(self.unsupported(position, reason));
            }
            Event::DocumentStart(..) if !self.tree.nodes.is_empty() => {
                let reason = "a second YAML document starts here; the file must be one document";
                return Err(self.unsupported(position, reason));
            }
            _ => return Ok(()),
        };
        if anchor != 0 {
            let reason = "YAML anchors are not supported; remove the anchor and repeat the value";
            return Err(self.unsupported(position, reason));
        }
        if tag.is_some() {
            return Err(self.unsupported(position, "YAML tags are not supported; remove the tag"));
        }
        self.insert(value, position)
    }

    /// Returns whether a scalar at this point is a field name. Duplicate names are recorded; too many fields are an error.
    fn is_field_name(&mut self, text: &str, position: Position) -> Result<bool, FieldError> {
        let Some(Open { number, name: None }) = self.open.last() else { return Ok(false) };
        let Some(Node { value: Value::Map(fields), .. }) = self.tree.nodes.get(*number) else {
            return Ok(false);
        };
        let is_same = |field: &usize| {
            let step = self.tree.nodes.get(*field).map(|node| &node.step);
            matches!(step, Some(Step::Field { name, .. }) if *name == text)
        };
        let error = |kind, reason: &str| {
            let mut field = self.tree.field(*number);
            push_name(&mut field, text);
            Err::<(), _>(FieldError::new(kind, position, field, reason.to_owned()))
        };
        if fields.len() == MAX_FIELDS {
            error(PolicyErrorKind::TooLarge, "a map must have at most 1000 fields")?;
        }
        if fields.iter().any(is_same) {
            let reason = "duplicate field; remove one of the two";
            let duplicate = error(PolicyErrorKind::Duplicate, reason);
            self.duplicates.record(duplicate);
        }
        Ok(true)
    }

    fn insert(&mut self, value: Value<'t>, position: Position) -> Result<(), FieldError> {
        let number = self.tree.nodes.len();
        if number == MAX_NODES {
            let reason = "a file must have at most 1000000 values";
            return Err(FieldError::new(
                PolicyErrorKind::TooLarge,
                position,
                "",
                reason.to_owned(),
            ));
        }
        let (mut parent, mut step) = (number, Step::Root);
        if let Some(open) = self.open.last_mut() {
            parent = open.number;
            let (name, container) = (open.name.take(), self.tree.nodes.get_mut(parent));
            step = match (container.map(|node| &mut node.value), name) {
                (Some(Value::List(items)), _) => {
                    items.push(number);
                    Step::Item(items.len() - 1)
                }
                (Some(Value::Map(fields)), Some((name, position))) => {
                    fields.push(number);
                    Step::Field { name, position }
                }
                _ => {
                    let reason = "a field name must be a string, not a list or a map";
                    return Err(self.unsupported(position, reason));
                }
            };
        }
        if !matches!(value, Value::Scalar { .. }) {
            self.open.push(Open { number, name: None });
        }
        self.tree.nodes.push(Node { parent, step, position, value });
        Ok(())
    }

    /// A syntax error about a YAML feature that policies do not support, at the current field.
    fn unsupported(&self, position: Position, reason: &str) -> FieldError {
        let mut field = String::new();
        if let Some(Open { number, name }) = self.open.last() {
            field = self.tree.field(*number);
            if let Some((name, _)) = name {
                push_name(&mut field, name);
            }
        }
        FieldError::new(PolicyErrorKind::Syntax, position, field, reason.to_owned())
    }
}
