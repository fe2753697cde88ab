//! A policy file as a tree of nodes that know where they stand: the only file that knows the parser.

use std::borrow::Cow;

use granit_parser::{Event, Parser, ScalarStyle, Span, options};

use super::error::{Flaw, PolicyErrorKind, Position};

/// The longest file, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// The most values in a file: fifty for each of 20 000 rules.
const MAX_NODES: usize = 1_000_000;
/// The most fields in one map.
const MAX_FIELDS: usize = 1000;
/// The deepest nesting. The deepest field of a policy stands at seven.
const MAX_DEPTH: usize = 16;

/// Every node of a file; the first is the root.
pub(super) struct Tree<'t> {
    nodes: Vec<Node<'t>>,
}

pub(super) struct Node<'t> {
    /// The list or map it stands in; its own number for the root.
    pub(super) parent: usize,
    /// Its place there.
    pub(super) step: Step<'t>,
    pub(super) at: Position,
    pub(super) value: Value<'t>,
}

/// How to come to a node from its parent.
#[derive(Clone)]
pub(super) enum Step<'t> {
    Root,
    Item(usize),
    Field { name: Cow<'t, str>, at: Position },
}

pub(super) enum Value<'t> {
    Scalar {
        text: Cow<'t, str>,
        /// Without quotes, so that `true` is a boolean and nothing at all is a null.
        is_plain: bool,
    },
    List(Vec<usize>),
    Map(Vec<usize>),
}

impl<'t> Tree<'t> {
    /// Reads a file of one document. What could make a small file large, or mean something else
    /// than it says (anchors, aliases, tags, directives), is refused.
    pub(super) fn parse(text: &'t str) -> Result<Self, Flaw> {
        if text.len() > MAX_BYTES {
            return Err(Flaw::at_top(PolicyErrorKind::TooLarge, "a policy may have at most 4 MiB"));
        }
        let options = options! {
            disallow_directives: true,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        let mut builder = Builder { tree: Self { nodes: Vec::new() }, open: Vec::new() };
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.map_err(|error| {
                let at = Position::of(error.marker());
                Flaw::new(PolicyErrorKind::Syntax, at, "", printable(&error.info()))
            })?;
            builder.add(event, span)?;
        }
        if builder.tree.nodes.is_empty() {
            return Err(Flaw::at_top(
                PolicyErrorKind::MissingField,
                "the file is empty; the least there can be is \"version: 1\"",
            ));
        }
        Ok(builder.tree)
    }

    pub(super) fn node(&self, number: usize) -> Option<&Node<'t>> {
        self.nodes.get(number)
    }

    /// How errors call a node: `rules[2].limits[0].burst`.
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

/// Adds `.name`, whatever the name holds.
pub(super) fn push_name(field: &mut String, name: &str) {
    if !field.is_empty() {
        field.push('.');
    }
    field.extend(name.chars().take(80).flat_map(char::escape_debug));
}

/// The parser may quote a character of the file, and the file may be hostile.
fn printable(reason: &str) -> String {
    reason.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// Turns events into a tree.
struct Builder<'t> {
    tree: Tree<'t>,
    /// The lists and maps that have begun and not ended.
    open: Vec<Open<'t>>,
}

struct Open<'t> {
    number: usize,
    /// The name that waits for its value.
    name: Option<(Cow<'t, str>, Position)>,
}

impl<'t> Builder<'t> {
    fn add(&mut self, event: Event<'t>, span: Span) -> Result<(), Flaw> {
        let at = Position::of(&span.start);
        let (value, anchor, tag) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_bare = tag.is_none() && anchor == 0;
                if is_bare && self.awaits_name(&text, at)? {
                    if let Some(open) = self.open.last_mut() {
                        open.name = Some((text, at));
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
                return Err(self.unsupported(at, "aliases are not supported; write it out"));
            }
            Event::DocumentStart(..) if !self.tree.nodes.is_empty() => {
                return Err(
                    self.unsupported(at, "a policy is one document, and this begins another")
                );
            }
            _ => return Ok(()),
        };
        if anchor != 0 {
            return Err(self.unsupported(at, "anchors are not supported; write it out"));
        }
        if tag.is_some() {
            return Err(self.unsupported(at, "tags are not supported"));
        }
        self.place(value, at)
    }

    /// Whether a scalar stands where the name of a field is due.
    fn awaits_name(&self, text: &str, at: Position) -> Result<bool, Flaw> {
        let Some(Open { number, name: None }) = self.open.last() else { return Ok(false) };
        let Some(Node { value: Value::Map(fields), .. }) = self.tree.nodes.get(*number) else {
            return Ok(false);
        };
        let is_same = |field: &usize| {
            let step = self.tree.nodes.get(*field).map(|node| &node.step);
            matches!(step, Some(Step::Field { name, .. }) if *name == text)
        };
        let flaw = if fields.len() == MAX_FIELDS {
            Some((PolicyErrorKind::TooLarge, "a map may have at most 1000 fields"))
        } else if fields.iter().any(is_same) {
            Some((PolicyErrorKind::Duplicate, "this field comes twice"))
        } else {
            None
        };
        if let Some((kind, reason)) = flaw {
            let mut field = self.tree.field(*number);
            push_name(&mut field, text);
            return Err(Flaw::new(kind, at, field, reason.to_owned()));
        }
        Ok(true)
    }

    fn place(&mut self, value: Value<'t>, at: Position) -> Result<(), Flaw> {
        let number = self.tree.nodes.len();
        if number == MAX_NODES {
            let reason = "a policy may have at most 1000000 values";
            return Err(Flaw::new(PolicyErrorKind::TooLarge, at, "", reason.to_owned()));
        }
        let (mut parent, mut step) = (number, Step::Root);
        if let Some(open) = self.open.last_mut() {
            parent = open.number;
            let (name, place) = (open.name.take(), self.tree.nodes.get_mut(parent));
            step = match (place.map(|node| &mut node.value), name) {
                (Some(Value::List(items)), _) => {
                    items.push(number);
                    Step::Item(items.len() - 1)
                }
                (Some(Value::Map(fields)), Some((name, at))) => {
                    fields.push(number);
                    Step::Field { name, at }
                }
                _ => return Err(self.unsupported(at, "a field's name must be plain text")),
            };
        }
        if !matches!(value, Value::Scalar { .. }) {
            self.open.push(Open { number, name: None });
        }
        self.tree.nodes.push(Node { parent, step, at, value });
        Ok(())
    }

    /// A flaw in what YAML can do and policies do not need, at the field it stands in.
    fn unsupported(&self, at: Position, reason: &str) -> Flaw {
        let mut field = String::new();
        if let Some(Open { number, name }) = self.open.last() {
            field = self.tree.field(*number);
            if let Some((name, _)) = name {
                push_name(&mut field, name);
            }
        }
        Flaw::new(PolicyErrorKind::Syntax, at, field, reason.to_owned())
    }
}
