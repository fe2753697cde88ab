//! The commands of one connection: decodes them in order, runs them, and collects their replies.

use std::time::Instant;

use super::builtin::{self, After, BuiltinContext};
use super::commands::{Command, CommandSpec};
use super::decide::DecisionCall;
use super::decode::{Arguments, Decoded, Decoder};
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::input::Input;
use super::limit_cache::LimitCache;
use super::pipeline::Pipeline;
use super::policy_commands::read_client;
use super::repeated_command::RepeatedCommand;
use super::session::Session;
use crate::access::Role;
use crate::api::admin::ChangeRequest;
use crate::api::{DecisionSeries, Service};
use crate::listener::{Connection, RequestInProgress};
use crate::node::overrides::Author;

/// Length of the unsent replies in bytes after which they are sent before the next command runs.
const MAX_REPLIES: usize = 64 * 1024;

const NO_AUTH: ErrorReply = ErrorReply::fixed("NOAUTH Authentication required.");
const NO_PERMISSION: ErrorReply =
    ErrorReply::fixed("NOPERM this command requires the admin token; send AUTH admin TOKEN");
const NO_ADMIN_TOKEN: ErrorReply = ErrorReply::fixed(
    "NOPERM this command requires the admin token, and none is configured: set TOLLGATE_ADMIN_TOKEN",
);

/// Why commands are no longer answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// No complete command is left in the input.
    NeedsInput,
    /// There are enough replies to send them.
    NeedsSending,
    /// The connection ends when the replies are sent.
    Ends,
}

/// The commands that arrived in one read.
#[derive(Debug, Default)]
struct ReadBatch<'s> {
    /// Set by the first command.
    in_progress: Option<RequestInProgress>,
    /// The number of decisions.
    decisions: u64,
    /// The decisions with inline limits. Set by the first one.
    series: Option<DecisionSeries<'s>>,
}

/// The commands of one connection that are answered, and their replies.
#[derive(Debug)]
pub(super) struct Conversation<'s> {
    service: &'s Service,
    started: Instant,
    session: Session,
    decoder: Decoder,
    limits: LimitCache,
    repeated: RepeatedCommand,
    pub(super) input: Input,
    pub(super) replies: Replies,
    pub(super) pipeline: Pipeline<'s>,
}

impl<'s> Conversation<'s> {
    pub(super) fn new(service: &'s Service, started: Instant, session: Session) -> Self {
        Self {
            service,
            started,
            session,
            decoder: Decoder::default(),
            limits: LimitCache::default(),
            repeated: RepeatedCommand::default(),
            input: Input::default(),
            replies: Replies::default(),
            pipeline: Pipeline::new(service),
        }
    }

    /// Returns the maximum number of unread bytes.
    pub(super) fn max_input(&self) -> usize {
        self.session.bounds().length
    }

    /// Answers the complete commands in the input, in order.
    pub(super) async fn answer(&mut self, connection: &Connection) -> Pause {
        let mut batch = ReadBatch::default();
        let pause = loop {
            if self.replies.len() >= MAX_REPLIES {
                break Pause::NeedsSending;
            }
            if let Some((call, length)) = self.repeated.find(self.input.unread()) {
                batch.in_progress.get_or_insert_with(|| connection.begin_request());
                batch.decisions += 1;
                self.pipeline.decide_throttle(call, &mut batch.series, &mut self.replies).await;
                self.input.advance(length);
                continue;
            }
            let bounds = self.session.bounds();
            let length = match self.decoder.decode(self.input.unread(), bounds) {
                Ok(Decoded::Command { length }) => length,
                Ok(Decoded::Incomplete) if self.input.unread().len() < bounds.length => {
                    break Pause::NeedsInput;
                }
                Ok(Decoded::Empty { length }) => {
                    self.input.advance(length);
                    continue;
                }
                invalid => {
                    self.pipeline.finish(&mut self.replies).await;
                    self.replies.error(&invalid.err().unwrap_or_else(|| bounds.too_long()));
                    break Pause::Ends;
                }
            };
            batch.in_progress.get_or_insert_with(|| connection.begin_request());
            let after = self.run_command(length, &mut batch).await;
            self.input.advance(length);
            if after == After::Close {
                break Pause::Ends;
            }
        };
        if batch.decisions > 0 {
            connection.count_requests(batch.decisions);
        }
        self.pipeline.finish(&mut self.replies).await;
        pause
    }

    /// Releases the slots of the permits that are not sent yet. An error takes the place of each.
    pub(super) fn withhold_permits(&mut self) {
        self.pipeline.withhold_permits(&mut self.replies);
    }

    /// Runs the command of `length` bytes that was decoded last.
    async fn run_command(&mut self, length: usize, batch: &mut ReadBatch<'s>) -> After {
        let Self { service, session, decoder, limits, repeated, input, replies, pipeline, .. } =
            self;
        let arguments = decoder.arguments(input.unread());
        if is_http(&arguments, decoder.is_inline()) {
            return After::Close;
        }
        let other = match check_command(service, session, &arguments) {
            Ok(spec) => match DecisionCall::read(spec.command, &arguments, limits) {
                Some(Ok(call)) => {
                    batch.decisions += 1;
                    match (call, decoder.parts(input.unread(), length)) {
                        (DecisionCall::Throttle(call), Some(parts)) => {
                            let call = repeated.remember(call, &parts);
                            pipeline.decide_throttle(call, &mut batch.series, replies).await;
                        }
                        (call, _) => {
                            // Its time must not count for the next decision of the series.
                            batch.series = None;
                            pipeline.decide(call, replies).await;
                        }
                    }
                    return After::Continue;
                }
                Some(Err(error)) => {
                    batch.decisions += 1;
                    Err(error)
                }
                None => Ok(spec.command),
            },
            Err(error) => Err(error),
        };
        // A command that decides nothing is answered after all calls before it. It may change the access of the client.
        repeated.forget();
        batch.series = None;
        pipeline.finish(replies).await;
        let after = match other {
            Ok(command) => self.run_builtin(command).await,
            Err(error) => Err(error),
        };
        after.unwrap_or_else(|error| {
            self.replies.error(&error);
            After::Continue
        })
    }

    /// Runs the command that was decoded last and decides nothing.
    async fn run_builtin(&mut self, command: Command) -> Result<After, ErrorReply> {
        let Self { service, started, session, decoder, input, replies, .. } = self;
        let arguments = decoder.arguments(input.unread());
        if command == Command::ResetClient {
            // Boxed, because it is rare and its future is large.
            return Box::pin(reset_client(service, session, &arguments, replies)).await;
        }
        let mut context = BuiltinContext { service, session, replies, started: *started };
        builtin::run(command, &arguments, &mut context)
    }
}

/// Returns whether a web page makes a browser send HTTP to this port. `POST` and `Host:` are Redis's own checks; the third
/// word of a request line is the version.
fn is_http(arguments: &Arguments<'_>, is_inline: bool) -> bool {
    let name = arguments.name();
    let is_version = |word: &[u8]| word.starts_with(b"HTTP/");
    name.eq_ignore_ascii_case(b"POST")
        || name.eq_ignore_ascii_case(b"Host:")
        || (is_inline && arguments.get(2).is_some_and(is_version))
}

/// Finds the command, and checks the number of its arguments and the authentication of the client, in the order of Redis.
fn check_command(
    service: &Service,
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<&'static CommandSpec, ErrorReply> {
    let spec = CommandSpec::find(arguments.name());
    let spec = spec.ok_or_else(|| ErrorReply::unknown_command(arguments))?;
    if !spec.accepts(arguments.len()) {
        return Err(ErrorReply::wrong_arity(spec.name));
    }
    if !session.is_authenticated() && !spec.is_open() {
        session.note_unauthenticated(service);
        return Err(NO_AUTH);
    }
    Ok(spec)
}

/// Runs TOLLGATE.RESET. The service records it in the audit log.
async fn reset_client(
    service: &Service,
    session: &Session,
    arguments: &Arguments<'_>,
    replies: &mut Replies,
) -> Result<After, ErrorReply> {
    let is_possible = !service.is_open(Role::Admin);
    let token = session.admin_token();
    let token = token.ok_or(if is_possible { NO_PERMISSION } else { NO_ADMIN_TOKEN })?;
    let client = read_client(service, arguments)?;
    let author = Author { name: String::new(), token: Some(token), peer: session.peer.ip() };
    service.reset(client, ChangeRequest { author, reason: String::new() }).await?;
    replies.status("OK");
    Ok(After::Continue)
}
