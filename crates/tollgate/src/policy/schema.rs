//! The JSON schema of policies, for editors and other tools.

/// The JSON schema (draft 2020-12) of a policy, with a description of every field.
///
/// [`Policy::from_yaml`](super::Policy::from_yaml) also checks rules that the schema cannot express, such as
/// unique names and maximum counts.
///
/// ```
/// assert!(tollgate::policy::SCHEMA.contains("2020-12"));
/// ```
pub const SCHEMA: &str = include_str!("../../policy.schema.json");
