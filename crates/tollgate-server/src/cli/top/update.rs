//! What is heard of a service, until there is nothing more to hear.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::sleep;
use tollgate::jittered;

use super::super::response::ToldProblem;
use super::response::{Frame, History, Policy};
use crate::client::{AskError, Event, EventStream, Followed, Server};

/// Silence that counts as a loss: ten frames.
const SILENCE: Duration = Duration::from_secs(10);

/// The first wait before coming back, and the longest; with jitter up to five seconds.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);

/// What can change what is known.
#[derive(Debug)]
pub(super) enum Update {
    Policy(Box<Policy>),
    History(History),
    Frame(Box<Frame>),
    /// Nothing is heard, for this reason; it is tried again.
    Lost(String),
}

impl Update {
    /// What an event says; nothing if it is of a later version.
    pub(super) fn of(event: &Event) -> Result<Option<Self>, serde_json::Error> {
        let data = &event.data;
        Ok(match event.name.as_str() {
            "policy" => Some(Self::Policy(Box::new(serde_json::from_str(data)?))),
            "history" => Some(Self::History(serde_json::from_str(data)?)),
            "frame" => Some(Self::Frame(Box::new(serde_json::from_str(data)?))),
            _ => None,
        })
    }
}

/// What is told to those who look: an update with the event it is from, if any, or the end.
pub(super) type Heard = Result<(Update, Option<Event>), AskError>;

/// Follows a service, and comes back to it when it is lost, until nobody listens or there is no use: it was never
/// there, or does not let us in.
pub(super) async fn follow(server: Server, token: Option<String>, to: Sender<Heard>) {
    let mut following = OverrideFollower { to, knows_it: false, failures: 0 };
    loop {
        let followed = server.follow("/api/live", token.as_deref(), SILENCE).await;
        let lost = match followed {
            Ok(Followed::Events(stream)) => following.listen(stream).await,
            Ok(Followed::Otherwise(status, body)) => refused(status, &body),
            Err(error) => error,
        };
        if !following.goes_on(lost).await {
            return;
        }
    }
}

struct OverrideFollower {
    to: Sender<Heard>,
    /// Whether there ever was a frame.
    knows_it: bool,
    /// Since the last frame.
    failures: u32,
}

impl OverrideFollower {
    /// Tells what it hears, and why it hears no more.
    async fn listen(&mut self, mut stream: EventStream) -> AskError {
        loop {
            let event = match stream.next().await {
                Ok(event) => event,
                Err(reason) => return AskError::NoAnswer(reason),
            };
            let update = match Update::of(&event) {
                Ok(Some(update)) => update,
                Ok(None) => continue,
                Err(error) => return AskError::NoAnswer(foreign(&error)),
            };
            if matches!(update, Update::Frame(_)) {
                (self.knows_it, self.failures) = (true, 0);
            }
            if self.to.send(Ok((update, Some(event)))).await.is_err() {
                return AskError::NoAnswer("nobody listens".to_owned());
            }
        }
    }

    /// Waits before the next try, unless there is none.
    async fn goes_on(&mut self, lost: AskError) -> bool {
        let reason = match lost {
            AskError::NoAnswer(reason) if self.knows_it => reason,
            end => {
                let _ = self.to.send(Err(end)).await;
                return false;
            }
        };
        let wait = jittered(wait(self.failures));
        self.failures = self.failures.saturating_add(1);
        if self.to.send(Ok((Update::Lost(reason), None))).await.is_err() {
            return false;
        }
        tokio::select! {
            () = sleep(wait) => true,
            () = self.to.closed() => false,
        }
    }
}

fn wait(failures: u32) -> Duration {
    SHORTEST.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST)
}

/// A service that cannot answer now may later; one that does not let us in will not.
fn refused(status: u16, body: &str) -> AskError {
    let told = match serde_json::from_str::<ToldProblem>(body) {
        Ok(problem) => format!("{status}: {}", problem.detail),
        Err(_) if status == 404 => format!("{status}: that service has no /api/live"),
        Err(_) => format!("{status}: that is no answer of a tollgate service"),
    };
    let may_come_in_later = status == 429 || !(400..500).contains(&status);
    if may_come_in_later { AskError::NoAnswer(told) } else { AskError::Usage(told) }
}

fn foreign(error: &serde_json::Error) -> String {
    format!("that is no answer of a tollgate service: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_below_five_seconds() {
        let waits: Vec<u128> = (0..6).map(|failures| wait(failures).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 4000]);
        assert!((0..100).all(|_| jittered(wait(u32::MAX)) <= Duration::from_secs(5)));
    }

    #[test]
    fn who_is_not_let_in_does_not_come_back() {
        let problem = r#"{"title":"x","status":401,"detail":"the token is not valid here"}"#;
        let told = refused(401, problem);
        assert!(
            matches!(told, AskError::Usage(told) if told == "401: the token is not valid here")
        );
        assert!(matches!(refused(404, "<html>"), AskError::Usage(_)));
        assert!(matches!(refused(429, problem), AskError::NoAnswer(_)));
        assert!(matches!(refused(503, ""), AskError::NoAnswer(_)));
        assert!(matches!(refused(200, "<html>"), AskError::NoAnswer(_)));
    }

    #[test]
    fn events_of_later_versions_are_passed_over() {
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
        assert!(Update::of(&event("weather", "sunny")).unwrap().is_none());
        assert!(Update::of(&event("frame", "{}")).is_err());
        let history = Update::of(&event("history", r#"{"points":[],"new":1}"#)).unwrap();
        assert!(matches!(history, Some(Update::History(_))));
    }
}
