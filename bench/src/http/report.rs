//! All figures of the HTTP front end.

use std::fmt;

use super::contender::Stage;
use super::contest::Contest;
use super::figures::Figures;
use super::front::Front;
use super::scale::Scale;
use super::{growth, policies};
use crate::Outcome;
use crate::document::{Document, Section, by_turns};
use crate::machine::{self, Given};
use crate::scale::spoken;

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    given: Given,
    scale: Scale,
    peers: Vec<String>,
    front: Front,
    growth: Vec<growth::Row>,
    policies: [policies::Row; 4],
}

impl Report {
    /// Measures everything.
    ///
    /// # Errors
    /// A measurement that would not be one: a server that does not start, an answer that is not the
    /// right one.
    pub fn measure(scale: Scale, stage: &Stage, given: Given) -> Outcome<Self> {
        let contest = Contest { stage, scale: &scale };
        let peers = vec![stage.peer()?, machine::peer("axum")];
        eprintln!("front");
        let front = Front::measure(contest)?;
        eprintln!("growth");
        let growth = growth::measure(contest)?;
        eprintln!("policies");
        let policies = policies::measure(contest)?;
        Ok(Self { given, scale, peers, front, growth, policies })
    }

    /// Every figure in it.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        let Front { tollgate, throttlecrab, constant, .. } = &self.front;
        let growth = self.growth.iter().flat_map(|row| [&row.tollgate, &row.throttlecrab]);
        let policies = self.policies.iter().map(|row| &row.figures);
        let all = [tollgate, throttlecrab, constant].into_iter().chain(growth).chain(policies);
        let rounds = all.flat_map(Figures::all);
        rounds.flat_map(|rounds| [rounds.least(), rounds.median(), rounds.most()]).collect()
    }

    fn document(&self) -> Document<'_> {
        let Scale { rounds, window, warm_up, .. } = self.scale;
        Document {
            title: "HTTP, memory store",
            given: &self.given,
            peers: self.peers.clone(),
            figures: by_turns(rounds, window, warm_up),
            sections: vec![self.checks(), self.keys(), self.rules()],
        }
    }

    fn checks(&self) -> Section {
        let Scale { connections, keys, .. } = self.scale;
        let note = format!(
            "{connections} connections that are kept alive, each with one request on its way; {} keys, \
             drawn at random, all of which have asked before. Token bucket, every request allowed, no \
             key ever dropped; any other answer would have ended the run. The server has one core, the \
             load generator the other, of which it used {:.0} % at most.\n\n\
             - *tollgate*: `tollgate serve`, `POST /check` by the default limit of a policy file.\n\
             - *throttlecrab-server*: HTTP only, `POST /throttle` with the same quota in the request; its \
             default store, with room for all keys and no cleaning while it is measured.\n\
             - *axum answering a constant*: JSON of the same {} bytes as tollgate's answer, the request \
             unread.",
            spoken(keys),
            self.front.busiest_load() * 100.0,
            self.front.body_bytes,
        );
        let tables = vec![self.front.figures(), self.front.ratios()];
        Section { title: "Checks over HTTP", note, tables }
    }

    fn keys(&self) -> Section {
        let note = "As above, with other numbers of keys: every key has asked once before. Up to a million \
                    tollgate has its default of `--max-keys 1000000`, beyond that as many as there are \
                    keys; throttlecrab-server always has the number of keys as its capacity."
            .to_owned();
        Section {
            title: "Checks over HTTP, by keys",
            note,
            tables: vec![growth::table(&self.growth)],
        }
    }

    fn rules(&self) -> Section {
        let note = format!(
            "As above, {} keys. Under rules a request tells `client` and `path`; every rule has paths of \
             its own, and each is as likely. The two limits are token buckets, of a minute and of an hour.",
            spoken(self.scale.keys),
        );
        let tables = vec![policies::table(&self.policies)];
        Section { title: "Checks over HTTP, by policy", note, tables }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document().fmt(f)
    }
}
