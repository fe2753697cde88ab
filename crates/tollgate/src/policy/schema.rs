//! The format of policies for editors and other programs.

/// The JSON schema (draft 2020-12) of a policy, with a description of every field.
///
/// It is stricter than YAML and looser than [`Policy::from_yaml`](super::Policy::from_yaml), which
/// also knows that names must differ and numbers fit.
///
/// ```
/// assert!(tollgate::policy::SCHEMA.contains("2020-12"));
/// ```
pub const SCHEMA: &str = include_str!("../../policy.schema.json");
