//! What an override does with the limits that it does not replace.

/// What an [`Override`](crate::Override) does with the rule's limits that it does not replace.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{OtherLimits, Override, OverrideLimit};
///
/// let raised = Override::new(vec![OverrideLimit::new(20, Duration::from_secs(60))])?;
/// assert_eq!(raised.other_limits, OtherLimits::Keep);
/// assert_eq!(raised.only().other_limits, OtherLimits::Remove);
/// # Ok::<(), tollgate::OverrideError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OtherLimits {
    /// They stay. Blocks never stay.
    #[default]
    Keep,
    /// They do not apply to the client.
    Remove,
}
