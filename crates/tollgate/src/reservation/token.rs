//! Tokens: the handles of reservations.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::algorithm::permit_id::PermitId;

/// Handle of a reservation, which only its holder can know: it contains 128 random bits, and no key.
///
/// ```
/// use tollgate::reservation::ReservationToken;
///
/// let token = ReservationToken::random();
/// assert_eq!(token.to_string().parse(), Ok(token));
/// assert!("r1".parse::<ReservationToken>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationToken {
    place: u128,
    secret: u128,
    hint: u32,
}

/// A text that is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "invalid reservation token; use the value of `reservation` in the response to the reserve call"
)]
pub struct TokenError;

impl ReservationToken {
    /// Creates the token of a new reservation.
    #[must_use]
    pub fn random() -> Self {
        Self::at(PermitId::random().as_u128())
    }

    /// Creates the token of a reservation whose record has a certain place, with a random secret.
    pub(crate) fn at(place: u128) -> Self {
        Self { place, secret: PermitId::random().as_u128(), hint: 0 }
    }

    /// Where a store keeps the record. Two reservations with the same id of one caller have the same place.
    #[must_use]
    pub const fn place(&self) -> u128 {
        self.place
    }

    /// The random part. A store accepts a token only with the secret of the record.
    #[must_use]
    pub const fn secret(&self) -> u128 {
        self.secret
    }

    /// A number by which a store finds the server of the record; 0 unless the store has set it.
    #[must_use]
    pub const fn hint(&self) -> u32 {
        self.hint
    }

    /// Returns the same token with a hint of the store.
    #[must_use]
    pub const fn with_hint(self, hint: u32) -> Self {
        Self { hint, ..self }
    }

    /// Returns the token of the same place and hint with the secret of a record.
    #[must_use]
    pub const fn with_secret(self, secret: u128) -> Self {
        Self { secret, ..self }
    }
}

/// `r`, the hint, `-`, and 64 hexadecimal digits.
impl fmt::Display for ReservationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}-{:032x}{:032x}", self.hint, self.place, self.secret)
    }
}

impl FromStr for ReservationToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let parse = || {
            let (hint, digits) = text.strip_prefix('r')?.split_once('-')?;
            let (place, secret) = digits.split_at_checked(32)?;
            let number = |digits: &str| u128::from_str_radix(digits, 16).ok();
            let token =
                Self { place: number(place)?, secret: number(secret)?, hint: hint.parse().ok()? };
            // Only the text that was issued: no signs, capitals or leading zeros.
            (token.to_string() == text).then_some(token)
        };
        parse().ok_or(TokenError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_issued_text_is_a_token() {
        let token = ReservationToken { place: 0xab, secret: 7, hint: 12 };
        let text = token.to_string();
        assert_eq!(text.parse(), Ok(token));
        let invalid = [
            text.to_uppercase(),
            text.replacen("r12", "r012", 1),
            text.replacen("r12", "r+12", 1),
            text.replacen("-0", "-+", 1),
            format!("{text}0"),
            text[..text.len() - 1].to_owned(),
            text.replacen('-', "-é", 1),
            String::new(),
        ];
        for text in invalid {
            assert_eq!(text.parse::<ReservationToken>(), Err(TokenError), "{text}");
        }
    }

    #[test]
    fn tokens_differ_in_both_parts() {
        let (first, second) = (ReservationToken::random(), ReservationToken::random());
        assert!(first.place() != second.place() && first.secret() != second.secret());
        assert_eq!(ReservationToken::at(7).place(), 7);
    }
}
