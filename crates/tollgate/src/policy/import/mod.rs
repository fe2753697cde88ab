//! Imports the configuration of another rate limiter as a policy that decides identically.
//!
//! Each format is read into its own types with positions, which become rules; `yaml_writer` writes them. A
//! configuration that a policy cannot express is an error at its position.

mod comparison;
mod descriptor_tree;
mod envoy;
mod imported_rule;
mod limitador;
mod tree_rules;
mod yaml_writer;

use std::collections::{BTreeMap, HashMap};

use super::Policy;
use super::error::{FieldError, FieldErrors, PolicyError, PolicyErrorKind};
use super::node_ref::NodeRef;
use super::parse::warnings::max_takes;
use super::rule::Rule;
use super::yaml_tree::{IMPORTED, YamlTree};
use crate::plan::MAX_TAKES;
use imported_rule::{ImportedRule, Location};

/// A configuration format that [`import`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportFormat {
    /// The descriptors of `envoyproxy/ratelimit`.
    Envoy,
    /// The limits of Limitador.
    Limitador,
}

/// An imported policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedPolicy {
    /// The policy file.
    pub yaml: String,
    /// Settings that do not affect decisions and were left out: `FILE:LINE: warning: …`.
    pub warnings: Vec<String>,
}

/// Imports configuration files, each a name for messages and its text, as one policy that decides identically.
///
/// ```
/// use tollgate::policy::{self, ImportFormat};
///
/// let config = "
/// domain: messaging
/// descriptors:
///   - key: to_number
///     rate_limit: { unit: day, requests_per_unit: 100 }
/// ";
/// let imported = policy::import(ImportFormat::Envoy, &[("messaging.yaml", config)])?;
/// assert!(imported.yaml.contains("descriptor: \"to_number=*\""), "{}", imported.yaml);
///
/// let error = policy::import(ImportFormat::Envoy, &[("a.yaml", "domain: a\nlimits: []\n")]).unwrap_err();
/// assert!(error.to_string().starts_with("a.yaml:2:"), "{error}");
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
///
/// # Errors
/// A file is invalid or cannot be expressed as a policy, or two files have the same domain. The errors are those of
/// the first such file.
pub fn import(format: ImportFormat, files: &[(&str, &str)]) -> Result<ImportedPolicy, PolicyError> {
    let mut import =
        Import { files, file: 0, rules: Vec::new(), domains: HashMap::new(), warnings: Vec::new() };
    for (number, (file, text)) in files.iter().enumerate() {
        import.file = number;
        let mut errors = FieldErrors::default();
        let tree = errors.record(YamlTree::parse(text, IMPORTED));
        if let Some(root) = tree.as_ref().and_then(NodeRef::root) {
            match format {
                ImportFormat::Envoy => envoy::read(root, &mut import, &mut errors),
                ImportFormat::Limitador => limitador::read(root, &mut import, &mut errors),
            }
        }
        errors.into_result(file)?;
    }
    import.finish(format)
}

/// The rules and warnings of all files so far.
struct Import<'f> {
    /// The names and texts of the files.
    files: &'f [(&'f str, &'f str)],
    /// The number of the file that is read.
    file: usize,
    rules: Vec<ImportedRule>,
    /// The file of each domain.
    domains: HashMap<String, usize>,
    warnings: Vec<(Location, String)>,
}

impl Import<'_> {
    /// Records that the current file has this domain. It is an error if another file has it as well.
    fn add_domain(&mut self, domain: &str, node: NodeRef<'_>) -> Result<(), FieldError> {
        match self.domains.insert(domain.to_owned(), self.file) {
            Some(file) if file != self.file => {
                let (name, file) = (node.name(), self.file_name(file).escape_debug());
                let reason = format!("duplicate {name}; {file} has the same");
                Err(node.error(PolicyErrorKind::Duplicate, reason))
            }
            _ => Ok(()),
        }
    }

    fn file_name(&self, number: usize) -> &str {
        self.files.get(number).map_or("", |(file, _)| *file)
    }

    fn location(&self, node: NodeRef<'_>) -> Location {
        Location { file: self.file, position: node.position() }
    }

    /// Records a setting that is left out.
    fn warn(&mut self, node: NodeRef<'_>, reason: &str) {
        let location = self.location(node);
        self.warnings.push((location, format!("{}: {reason}", node.name())));
    }

    /// Writes the policy and validates it.
    fn finish(self, format: ImportFormat) -> Result<ImportedPolicy, PolicyError> {
        let error_at = |location: Location, kind, reason| {
            let error = FieldError::new(kind, location.position, "", reason);
            PolicyError::of(self.file_name(location.file), error)
        };
        let yaml = yaml_writer::write(format, self.files, &self.rules);
        let policy = Policy::from_yaml("policy", &yaml, Policy::builtin_limit());
        let policy = policy.map_err(|error| {
            let reason = format!("the imported policy is not valid: {error}");
            error_at(Location::START, error.kind(), reason)
        })?;
        for (location, takes) in self.takes_by_domain(&policy) {
            if takes > MAX_TAKES {
                let reason = format!(
                    "up to {takes} limits of this namespace can apply to one request; a policy \
                     supports {MAX_TAKES}"
                );
                return Err(error_at(location, PolicyErrorKind::TooLarge, reason));
            }
        }
        let warning = |(location, reason): &(Location, String)| {
            let (file, line) = (self.file_name(location.file), location.position.line());
            format!("{file}:{line}: warning: {reason}")
        };
        let warnings = self.warnings.iter().map(warning).collect();
        Ok(ImportedPolicy { yaml, warnings })
    }

    /// Returns the maximum number of takes of the rules with `continue: true` of each domain, with the location of the
    /// first.
    fn takes_by_domain(&self, policy: &Policy) -> Vec<(Location, usize)> {
        let mut domains: BTreeMap<&str, (Location, Vec<&Rule>)> = BTreeMap::new();
        for (imported, rule) in self.rules.iter().zip(policy.rules()) {
            if rule.continues() {
                let domain = domains.entry(&imported.domain);
                domain.or_insert_with(|| (imported.location, Vec::new())).1.push(rule);
            }
        }
        domains.into_values().map(|(location, rules)| (location, max_takes(&rules))).collect()
    }
}
