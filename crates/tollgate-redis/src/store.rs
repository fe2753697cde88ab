//! The store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tollgate::algorithm::Reply as StepReply;
use tollgate::{
    Decision, Key, Listing, Mode, Page, Permit, Plan, Status, Store, StoreError, Timestamp,
};

use crate::builder::RedisStoreBuilder;
use crate::call::{self, Answer, Ask, AskedTake, Call, Figures, Verb};
use crate::coalesce::Coalescer;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::refusals::Refusals;
use crate::resp::Reply;
use crate::script::Entry;
use crate::slot::Slot;
use crate::watch::Watch;
use crate::{Address, Directory, ServerInfo};

/// A century, as every algorithm has it: with today's date the end of a longer pause would pass 2^53.
const LONGEST_PAUSE: Duration = Duration::from_secs(36_525 * 86_400);

/// Counters in Redis, shared by every process that asks it.
///
/// Redis itself decides, in one script call a decision at most: exact whoever else asks at the same
/// moment, on the server's own clock. Plans that are asked while a call is under way share the next one.
/// A clone is the same store.
///
/// Every wait is bounded. A call that was sent is never sent again: if its answer is lost it counts as
/// spent, and whoever asked gets a [`StoreError`]. It needs a Tokio runtime with I/O and time.
///
/// ```no_run
/// use tollgate::{Key, Limit, Plan, Quota, Store, Subject, Take};
/// use tollgate_redis::{Address, RedisStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::new("redis://localhost:6379/0".parse::<Address>()?);
/// store.connect().await?;
///
/// let limit = Limit::sliding_window(Quota::per_second(4))?;
/// let igdb = Subject::of(["igdb:api"]);
/// let plan = Plan::new([Take::new(Key::new(&igdb, &limit), 1)])?;
/// if let Some(wait) = store.take(&plan).await?.retry_after() {
///     println!("come back in {wait:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedisStore {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) address: Address,
    pub(crate) keys: Keys,
    pub(crate) patience: Duration,
    pub(crate) coalescer: Arc<Coalescer>,
    pub(crate) refusals: Option<Arc<Refusals>>,
    pub(crate) watch: Watch,
}

impl RedisStore {
    /// The store at this address, with every setting at its default. Nothing is sent yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self::builder(address).build()
    }

    /// A store with other settings.
    pub fn builder(address: Address) -> RedisStoreBuilder {
        RedisStoreBuilder::new(address)
    }

    pub(crate) fn of(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Proves that the server can be reached and used, and tells what it is, if it says.
    ///
    /// # Errors
    /// It cannot: the reason is one line, and holds no secret.
    pub async fn connect(&self) -> Result<Option<ServerInfo>, StoreError> {
        self.shared.coalescer.router().open().await.map_err(Failure::into_store_error)
    }

    /// Where it is, without its secrets.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// What the deployment keeps beside its counters.
    #[must_use]
    pub fn directory(&self) -> Directory {
        Directory::new(Arc::clone(&self.shared))
    }

    async fn decide<'a>(&self, plan: &Plan<'a>, verb: Verb) -> Result<Decision<'a>, StoreError> {
        let time = self.shared.coalescer.time();
        if plan.takes().is_empty() {
            return Ok(Decision::new(time.about_now(), []));
        }
        let takes = || call::takes_of(plan, &self.shared.keys, time.about_now());
        let figures = self.shared.figures_anywhere(verb, takes).await?;
        let pairs = plan.takes().iter().zip(figures.replies);
        let status = |(take, reply): (&tollgate::Take<'a>, StepReply)| {
            Status::new(take.key().limit(), take.mode(), reply)
        };
        Ok(Decision::new(figures.at, pairs.map(status)))
    }

    /// A take that may be refused from memory.
    async fn take_or_remember<'a>(
        &self,
        plan: &Plan<'a>,
        refusals: &Refusals,
    ) -> Result<Decision<'a>, StoreError> {
        self.shared.watch.begin();
        let asked = match refusals.find(plan) {
            Ok(refused) => return Ok(refused),
            Err(asked) => asked,
        };
        let decision = self.decide(plan, Verb::Take).await?;
        if let Some(asked) = asked
            && !decision.is_allowed()
        {
            refusals.note(plan, &decision, &asked);
        }
        Ok(decision)
    }

    /// This process forgets at once what others forget when they hear of it.
    fn forget_refusals(&self, subjects: impl IntoIterator<Item = impl AsRef<str>>) {
        if let Some(refusals) = &self.shared.refusals {
            subjects.into_iter().for_each(|subject| refusals.forget(subject.as_ref()));
        }
    }
}

/// After this part of the time-out whoever still waits to be sent is sent.
const HASTE: u32 = 4;

impl Shared {
    async fn ask(&self, verb: Verb, takes: SmallVec<[AskedTake; 2]>) -> Result<Answer, Failure> {
        if Handle::try_current().is_err() {
            let why = "there is no Tokio runtime here to reach Redis from";
            return Err(Failure::Unreachable(why.to_owned()));
        }
        let slot =
            takes.first().map_or(Slot::ONLY, |take| self.coalescer.router().slot(take.key()));
        let (ask, answer) = Ask::new(verb, takes);
        self.coalescer.submit(slot, ask);
        let (soon, mut answer) = (self.patience / HASTE, pin!(answer));
        let answered = match timeout(soon, answer.as_mut()).await {
            Ok(answered) => Ok(answered),
            Err(_) => {
                self.coalescer.hurry(slot);
                timeout(self.patience - soon, answer).await
            }
        };
        match answered {
            Ok(Ok(answer)) => answer,
            // The link went away with the runtime that drove it.
            Ok(Err(_)) => {
                Err(Failure::Unreachable("the connection's runtime has ended".to_owned()))
            }
            Err(_) => Err(Failure::Timeout),
        }
    }

    /// Asks for figures; once more if the calendar windows that were sent are of another time.
    pub(crate) async fn figures(
        &self,
        verb: Verb,
        takes: impl Fn() -> SmallVec<[AskedTake; 2]>,
    ) -> Result<Figures, StoreError> {
        for _ in 0..2 {
            match self.ask(verb, takes()).await.map_err(Failure::into_store_error)? {
                Answer::Figures(figures) => return Ok(figures),
                Answer::Stale => {}
                Answer::Number(_) => return Err(Failure::unexpected().into_store_error()),
            }
        }
        let reason = "its clock moves faster than calendar windows can be told";
        Err(Failure::Unreachable(reason.to_owned()).into_store_error())
    }

    pub(crate) async fn number(
        &self,
        verb: Verb,
        takes: SmallVec<[AskedTake; 2]>,
    ) -> Result<i64, StoreError> {
        match self.ask(verb, takes).await.map_err(Failure::into_store_error)? {
            Answer::Number(number) => Ok(number),
            _ => Err(Failure::unexpected().into_store_error()),
        }
    }

    /// Runs one program for one caller.
    pub(crate) async fn run(
        &self,
        entry: Entry,
        keys: Vec<Vec<u8>>,
        arguments: Vec<Vec<u8>>,
    ) -> Result<Reply, StoreError> {
        let reply = self.coalescer.router().run(Call { entry, keys, arguments }).await;
        reply.map_err(Failure::into_store_error)
    }
}

impl Store for RedisStore {
    async fn take<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        match (plan.permit(), &self.shared.refusals) {
            (Some(permit), _) => self.decide(plan, Verb::Hold(permit)).await,
            (None, Some(refusals)) => self.take_or_remember(plan, refusals).await,
            (None, None) => self.decide(plan, Verb::Take).await,
        }
    }

    async fn peek<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Verb::Peek).await
    }

    async fn refund<'a>(&self, plan: &Plan<'a>) -> Result<Decision<'a>, StoreError> {
        let decision = self.decide(plan, Verb::Refund).await;
        self.forget_refusals(plan.takes().iter().map(|take| take.key().subject()));
        decision
    }

    async fn debit<'a>(&self, plan: &Plan<'a>, age: Duration) -> Result<Decision<'a>, StoreError> {
        self.decide(plan, Verb::Debit { age }).await
    }

    async fn pause(&self, key: &Key<'_>, length: Duration) -> Result<(), StoreError> {
        let now = self.shared.coalescer.time().about_now();
        let take = call::take_of(key, 0, &self.shared.keys, now);
        let length = length.min(LONGEST_PAUSE);
        self.shared.number(Verb::Pause { length }, SmallVec::from_iter([take])).await.map(|_| ())
    }

    async fn reset(&self, key: &Key<'_>) -> Result<(), StoreError> {
        let now = self.shared.coalescer.time().about_now();
        let take = call::take_of(key, 0, &self.shared.keys, now);
        let done = self.shared.number(Verb::Reset, SmallVec::from_iter([take])).await;
        self.forget_refusals([key.subject()]);
        done.map(|_| ())
    }

    async fn release(&self, permit: &Permit) -> Result<bool, StoreError> {
        let takes = call::takes_of_permit(permit, &self.shared.keys);
        let released = self.shared.numbers_anywhere(Verb::Release(permit.id()), takes).await?;
        Ok(released.contains(&1))
    }

    async fn renew(&self, permit: &Permit) -> Result<Option<Timestamp>, StoreError> {
        let takes = call::takes_of_permit(permit, &self.shared.keys);
        // In a cluster slots are asked one after the other, so none is renewed before all are known to be held.
        if self.shared.coalescer.router().is_cluster() {
            let verb = Verb::Holds(permit.id());
            if self.shared.numbers_anywhere(verb, takes.clone()).await?.contains(&0) {
                return Ok(None);
            }
        }
        let ends = self.shared.numbers_anywhere(Verb::Renew(permit.id()), takes).await?;
        let first = ends.into_iter().min().and_then(|end| u64::try_from(end).ok());
        Ok(first.map(Timestamp::from_micros))
    }

    async fn stats<'a>(&self, key: &Key<'a>) -> Result<Status<'a>, StoreError> {
        let time = self.shared.coalescer.time();
        let takes =
            || SmallVec::from_iter([call::take_of(key, 0, &self.shared.keys, time.about_now())]);
        let figures = self.shared.figures(Verb::Peek, takes).await?;
        let reply =
            figures.replies.first().ok_or_else(|| Failure::unexpected().into_store_error())?;
        Ok(Status::new(key.limit(), Mode::Enforce, *reply))
    }

    async fn list(&self, listing: &Listing) -> Result<Page, StoreError> {
        self.shared.list(listing).await
    }
}
