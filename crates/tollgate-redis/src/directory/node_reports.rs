//! Pulses: what nodes counted lately, told by themselves, so that any of them can show the whole fleet.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use super::stream::{field, id_and_fields};
use crate::failure::Failure;
use crate::limit_code::millis;
use crate::resp::{Command, Reply};
use crate::script::Entry;

/// For how long pulses are kept.
pub const REPORT_HISTORY: Duration = Duration::from_secs(15 * 60);

/// How many are asked for at once, and how long those may be together.
const AT_ONCE: usize = 1000;
const PAGE_REPLY: usize = 16 << 20;
/// Of how many nodes the states are asked for at once.
const STATES_AT_ONCE: usize = 16;

/// What a node tells of itself, as texts that only nodes understand.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingReport<'a> {
    /// By what the node is told from others.
    pub node: &'a str,
    /// Which beat of the node this is. One that may have been told is told again under the same number, as it was.
    pub number: u64,
    /// What it counted since its last beat. It is kept for [`REPORT_HISTORY`].
    pub figures: &'a str,
    /// How it fares now, in place of what it said before.
    pub state: &'a str,
    /// For how long that holds.
    pub lifetime: Duration,
}

/// What a node counted in a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// Where it stands among all.
    pub id: ReportId,
    /// Whose it is.
    pub node: String,
    /// As it was given.
    pub figures: String,
}

/// Some of what was told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportPage {
    /// Those that can be read, oldest first.
    pub reports: Vec<NodeReport>,
    /// Where the page ends; none if nothing was told.
    pub last: Option<ReportId>,
}

/// A place among the pulses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportId(String);

impl ReportId {
    /// The place just before everything told at a moment.
    #[must_use]
    pub fn before(moment: Timestamp) -> Self {
        let earlier = (moment.as_micros() / 1000).saturating_sub(1);
        Self(format!("{earlier}-{}", u64::MAX))
    }

    /// When, by the clock of Redis.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let millis = self.0.split('-').next().and_then(|text| text.parse().ok());
        Timestamp::EPOCH + Duration::from_millis(millis.unwrap_or_default())
    }
}

impl Directory {
    /// Tells what a node counted and how it fares. Returns when that was, by the clock of Redis.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tollgate_redis::{Address, OutgoingReport, ReportId, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let directory = RedisStore::new(Address::local()).directory();
    /// let lifetime = Duration::from_secs(10);
    /// let beat = OutgoingReport { node: "web-1", number: 1, figures: "7 checks", state: "well", lifetime };
    /// let now = directory.report(&beat).await?;
    /// let told = directory.node_reports(&ReportId::before(now)).await?;
    /// assert_eq!(told.reports[0].figures, "7 checks");
    /// assert_eq!(directory.node_states(&["web-1"]).await?, [Some("well".to_owned())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Redis could not be told.
    pub async fn report(&self, beat: &OutgoingReport<'_>) -> Result<Timestamp, StoreError> {
        let keys = [self.shared.keys.node_reports(), self.shared.keys.node_state(beat.node)];
        let (history, lifetime) =
            (millis(REPORT_HISTORY).to_string(), millis(beat.lifetime).max(1).to_string());
        let number = beat.number.to_string();
        let arguments = [beat.node, &number, beat.figures, beat.state, &history, &lifetime];
        let keys = keys.map(String::into_bytes).to_vec();
        let arguments = arguments.map(|text| text.as_bytes().to_vec()).to_vec();
        let reply = self.shared.run(Entry::NodeReport, keys, arguments).await?;
        let unexpected = || Failure::unexpected().into_store_error();
        let Reply::Integer(millis) = reply else { return Err(unexpected()) };
        let millis = u64::try_from(millis).map_err(|_| unexpected())?;
        Ok(Timestamp::EPOCH + Duration::from_millis(millis))
    }

    /// What was told after this place, oldest first: all of it, or as much as comes at once.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn node_reports(&self, after: &ReportId) -> Result<ReportPage, StoreError> {
        let key = self.shared.keys.node_reports();
        let command = Command::new("XRANGE").arg(&key).arg(format!("({}", after.0)).arg("+");
        let command = command.arg("COUNT").number(AT_ONCE as u64).reply_up_to(PAGE_REPLY);
        let reply = self.shared.coalescer.router().ask(key.as_bytes(), command).await;
        match reply.map_err(Failure::into_store_error)? {
            Reply::Array(entries) => Ok(ReportPage {
                reports: entries.iter().filter_map(read).collect(),
                last: entries.last().and_then(id_of),
            }),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }

    /// How each of these nodes says that it fares; none of one that said nothing lately.
    ///
    /// # Errors
    /// Redis could not be asked.
    pub async fn node_states(&self, nodes: &[&str]) -> Result<Vec<Option<String>>, StoreError> {
        let mut states = Vec::with_capacity(nodes.len());
        for some in nodes.chunks(STATES_AT_ONCE) {
            states.extend(self.some_states(some).await?);
        }
        Ok(states)
    }

    async fn some_states(&self, nodes: &[&str]) -> Result<Vec<Option<String>>, StoreError> {
        let keys: Vec<String> =
            nodes.iter().map(|node| self.shared.keys.node_state(node)).collect();
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let command = Command::new("MGET").reply_up_to(PAGE_REPLY);
        let command = keys.iter().fold(command, Command::arg);
        let reply = self.shared.coalescer.router().ask(first.as_bytes(), command).await;
        match reply.map_err(Failure::into_store_error)? {
            Reply::Array(states) => Ok(states.into_iter().map(text).collect()),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }
}

/// What is kept, behind the number of the beat.
fn text(reply: Reply) -> Option<String> {
    let Reply::Bulk(bytes) = reply else { return None };
    let kept = String::from_utf8(bytes).ok()?;
    kept.split_once(' ').map(|(_, state)| state.to_owned())
}

fn id_of(reply: &Reply) -> Option<ReportId> {
    id_and_fields(reply).map(|(id, _)| ReportId(id.to_owned()))
}

fn read(reply: &Reply) -> Option<NodeReport> {
    let (id, fields) = id_and_fields(reply)?;
    let told = |name: &str| field(fields, name).map(str::to_owned);
    Some(NodeReport { id: ReportId(id.to_owned()), node: told("node")?, figures: told("figures")? })
}
