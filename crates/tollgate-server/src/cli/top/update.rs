//! Background task that follows `/api/live`, reconnects, and sends updates.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::sleep;
use tollgate::jittered;

use super::super::request::NOT_TOLLGATE;
use super::super::response::Problem;
use super::response::{Frame, History, Policy};
use crate::cli::client::{ClientError, Event, EventStream, FollowReply, Server};

/// Time without data after which the connection counts as lost: ten frames.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum and maximum delay before a reconnect, without jitter. With jitter the maximum is 5 s.
const MIN_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(4);

/// A change of the state.
#[derive(Debug)]
pub(super) enum Update {
    Policy(Box<Policy>),
    History(History),
    Frame(Box<Frame>),
    /// The connection is lost for this reason; the task reconnects.
    Lost(String),
}

impl Update {
    /// Parses an event; returns none for events of later versions.
    pub(super) fn from_event(event: &Event) -> Result<Option<Self>, serde_json::Error> {
        let data = &event.data;
        Ok(match event.name.as_str() {
            "policy" => Some(Self::Policy(Box::new(serde_json::from_str(data)?))),
            "history" => Some(Self::History(serde_json::from_str(data)?)),
            "frame" => Some(Self::Frame(Box::new(serde_json::from_str(data)?))),
            _ => None,
        })
    }
}

/// An update and the event that it comes from, or the error that stopped the task.
pub(super) type Message = Result<(Update, Option<Event>), ClientError>;

/// Follows a service and reconnects when the connection is lost. Stops when the receiver is dropped, when the
/// first connection fails, or when the service refuses the token.
pub(super) async fn follow(server: Server, token: Option<String>, sender: Sender<Message>) {
    let mut follower = Follower { sender, has_frame: false, failures: 0 };
    loop {
        let reply = server.follow("/api/live", token.as_deref(), IDLE_TIMEOUT).await;
        let error = match reply {
            Ok(FollowReply::Events(stream)) => follower.forward(stream).await,
            Ok(FollowReply::Other(status, body)) => refusal(status, &body),
            Err(error) => error,
        };
        if !follower.wait_for_retry(error).await {
            return;
        }
    }
}

struct Follower {
    sender: Sender<Message>,
    /// Whether a frame was ever received.
    has_frame: bool,
    /// Consecutive failures since the last frame.
    failures: u32,
}

impl Follower {
    /// Sends all events of a stream on, and returns why it ended.
    async fn forward(&mut self, mut stream: EventStream) -> ClientError {
        loop {
            let event = match stream.next().await {
                Ok(event) => event,
                Err(reason) => return ClientError::NoAnswer(reason),
            };
            let update = match Update::from_event(&event) {
                Ok(Some(update)) => update,
                Ok(None) => continue,
                Err(error) => {
                    return ClientError::NoAnswer(format!("{NOT_TOLLGATE} ({error})"));
                }
            };
            if matches!(update, Update::Frame(_)) {
                (self.has_frame, self.failures) = (true, 0);
            }
            if self.sender.send(Ok((update, Some(event)))).await.is_err() {
                return ClientError::NoAnswer("the receiver is closed".to_owned());
            }
        }
    }

    /// Waits before the next attempt. Returns false, after sending the error, if there is no next attempt.
    async fn wait_for_retry(&mut self, error: ClientError) -> bool {
        let reason = match error {
            ClientError::NoAnswer(reason) if self.has_frame => reason,
            error => {
                let _ = self.sender.send(Err(error)).await;
                return false;
            }
        };
        let delay = jittered(delay(self.failures));
        self.failures = self.failures.saturating_add(1);
        if self.sender.send(Ok((Update::Lost(reason), None))).await.is_err() {
            return false;
        }
        tokio::select! {
            () = sleep(delay) => true,
            () = self.sender.closed() => false,
        }
    }
}

fn delay(failures: u32) -> Duration {
    MIN_DELAY.saturating_mul(2_u32.saturating_pow(failures)).min(MAX_DELAY)
}

/// Returns the error of a response without events. A 4xx status other than 429 is final.
fn refusal(status: u16, body: &str) -> ClientError {
    let reason = match serde_json::from_str::<Problem>(body) {
        Ok(problem) => format!("{status}: {}", problem.detail),
        Err(_) if status == 404 => {
            format!("{status}: the service has no /api/live; check the address in --server")
        }
        Err(_) => format!("{status}: {NOT_TOLLGATE}"),
    };
    let is_transient = status == 429 || !(400..500).contains(&status);
    if is_transient { ClientError::NoAnswer(reason) } else { ClientError::Usage(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_four_seconds() {
        let delays: Vec<u128> = (0..6).map(|failures| delay(failures).as_millis()).collect();
        assert_eq!(delays, [250, 500, 1000, 2000, 4000, 4000]);
        assert!((0..100).all(|_| jittered(delay(u32::MAX)) <= Duration::from_secs(5)));
    }

    #[test]
    fn client_errors_are_final() {
        let problem = r#"{"title":"x","status":401,"detail":"the token is not valid here"}"#;
        let error = refusal(401, problem);
        assert!(
            matches!(error, ClientError::Usage(text) if text == "401: the token is not valid here")
        );
        assert!(matches!(refusal(404, "<html>"), ClientError::Usage(_)));
        assert!(matches!(refusal(429, problem), ClientError::NoAnswer(_)));
        assert!(matches!(refusal(503, ""), ClientError::NoAnswer(_)));
        assert!(matches!(refusal(200, "<html>"), ClientError::NoAnswer(_)));
    }

    #[test]
    fn ignores_unknown_events_and_fields() {
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
        assert!(Update::from_event(&event("weather", "sunny")).unwrap().is_none());
        assert!(Update::from_event(&event("frame", "{}")).is_err());
        let history = Update::from_event(&event("history", r#"{"points":[],"new":1}"#)).unwrap();
        assert!(matches!(history, Some(Update::History(_))));
    }
}
