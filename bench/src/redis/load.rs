//! The load generator: each caller sends its next request as soon as it has the reply.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime;
use tokio::task::{JoinSet, yield_now};

use super::admin::AdminConnection;
use super::caller::Caller;
use super::run_state::RunState;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;
use crate::keys::digits;

/// A caller whose decisions complete without waiting yields after this many decisions.
const YIELD_INTERVAL: u32 = 64;

/// Executes the task on a runtime with one worker, since the process has one core.
///
/// # Errors
/// A decision is wrong or fails.
pub fn run(task: &Task) -> Outcome<Sample> {
    let mut admins = task.servers().map(AdminConnection::connect).collect::<Outcome<Vec<_>>>()?;
    let servers = admins.iter_mut().map(AdminConnection::process).collect::<Outcome<Vec<_>>>()?;
    let mut counts = || {
        let commands = admins.iter_mut().map(AdminConnection::commands).sum::<Outcome<f64>>()?;
        let calls = admins.iter_mut().map(AdminConnection::script_calls).sum::<Outcome<f64>>()?;
        Outcome::Ok([commands, calls])
    };
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let caller = Caller::connect(task).await?;
        let [commands_before, calls_before] = counts()?;
        let run_state = Arc::new(Mutex::new(RunState::new(task, &servers)?));
        let mut callers = JoinSet::new();
        for _ in 0..task.callers {
            callers.spawn(call(caller.clone(), Arc::clone(&run_state)));
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        let now = Instant::now();
        let [commands, calls] = counts()?;
        let counts = [commands - commands_before, calls - calls_before];
        let run_state = Arc::into_inner(run_state).ok_or("a caller is still running")?;
        run_state.into_inner().unwrap_or_else(PoisonError::into_inner).finish(now, counts)
    })
}

/// Runs one caller until the run is over.
async fn call(mut caller: Caller, run_state: Arc<Mutex<RunState>>) -> Outcome<()> {
    let mut text = String::new();
    let mut sent = Instant::now();
    for turn in 1.. {
        let next = run_state.lock().unwrap_or_else(PoisonError::into_inner).next(sent)?;
        let Some(number) = next else { break };
        text.clear();
        text.push_str("user");
        text.extend(digits(number));
        let reply = caller.decide(&text).await?;
        let now = Instant::now();
        run_state.lock().unwrap_or_else(PoisonError::into_inner).record(reply, sent, now);
        sent = now;
        if turn % YIELD_INTERVAL == 0 {
            yield_now().await;
            // The time of the other callers is not part of the next latency.
            sent = Instant::now();
        }
    }
    Ok(())
}
