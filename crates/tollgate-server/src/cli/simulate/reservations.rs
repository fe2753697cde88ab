//! Reservations of a simulation.

use tollgate::reservation::{FinalCosts, ReservationToken};
use tollgate::{LimiterError, ReserveOutcome};

use super::line::Line;
use super::{Simulation, block_on};
use crate::api::Held;
use crate::error::{ApiError, ApiErrorKind};
use crate::wire::decision::{HandleText, decision_json, decision_json_with};
use crate::wire::reservation::{build_finals, reservation_text};
use crate::wire::scalar::Text;
use crate::wire::settled::SettleResponse;

impl Simulation {
    pub(super) fn reserve(&mut self, line: Line<'_>) -> Result<Vec<u8>, ApiError> {
        let at = line.time()?;
        let (query, terms) = line.into_reservation()?;
        self.set_clock(at);
        let reserving = self.limiter.reserve_with(&query, &terms, |reserved| self.encode(reserved));
        let (response, made) = block_on(reserving).map_err(|error| ApiError::from(&error))?;
        self.held.extend(made.map(|(name, token)| (name, Held::Reservation(token))));
        Ok(response)
    }

    /// Returns the response, and the name and the token of the reservation.
    fn encode(
        &self,
        reserved: &ReserveOutcome<'_, '_>,
    ) -> (Vec<u8>, Option<(String, ReservationToken)>) {
        let (Some(mut text), Some(record)) = (reservation_text(reserved), reserved.record) else {
            return (decision_json(reserved.outcome), None);
        };
        let token = record.token();
        text.text = self.name_of(&token);
        let response = decision_json_with(reserved.outcome, HandleText::Reservation(&text));
        (response, Some((text.text, token)))
    }

    /// Returns the name of a reservation: that of the first call with its id, or the next one.
    fn name_of(&self, token: &ReservationToken) -> String {
        let is_known = |held: &Held| *held == Held::Reservation(*token);
        let known = self.held.iter().find(|(_, held)| is_known(held));
        known.map_or_else(|| format!("l{}", self.held.len() + 1), |(name, _)| name.clone())
    }

    pub(super) fn settle(&self, line: &Line<'_>) -> Result<Vec<u8>, ApiError> {
        let at = line.time()?;
        line.check_settlement()?;
        let token = self.find_reservation(line.reservation.as_ref())?;
        let finals = build_finals(line.cost, line.costs.as_ref())?;
        self.set_clock(at);
        let tenant = line.tenant.as_ref().map(|tenant| tenant.as_str().as_bytes());
        let settled = block_on(self.limiter.settle(&token, tenant, &finals));
        let settled = settled.map_err(|error| ApiError::from(&error))?.ok_or_else(|| {
            let detail = "its record has ended, or it is of another tenant";
            ApiError::new(ApiErrorKind::NotFound, detail).at("reservation")
        })?;
        Ok(serde_json::to_vec(&SettleResponse::new(&settled)).unwrap_or_default())
    }

    /// Settles a reservation with costs of 0. Returns whether it was open.
    pub(super) fn cancel(&self, token: &ReservationToken) -> Result<bool, LimiterError> {
        let settled = block_on(self.limiter.settle(token, None, &FinalCosts::cancelled()))?;
        Ok(settled.is_some_and(|settled| !settled.is_repeated))
    }

    pub(super) fn find_reservation(
        &self,
        name: Option<&Text<'_>>,
    ) -> Result<ReservationToken, ApiError> {
        match self.find(name, "reservation")? {
            Held::Reservation(token) => Ok(token),
            // Unreachable: only reservations are found under this field.
            Held::Permit(_) => Err(ApiError::invalid("is a permit").at("reservation")),
        }
    }
}
