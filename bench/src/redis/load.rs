//! The load: every caller asks again as soon as it is answered.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime;
use tokio::task::{JoinSet, yield_now};

use super::asker::Asker;
use super::course::Course;
use super::inside::Inside;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;
use crate::keys::digits;

/// A caller who never has to wait lets others go on after so many decisions.
const STRETCH: u32 = 64;

/// Does what the task says, with as many workers as the one core it gets.
///
/// # Errors
/// A decision that is not the right one, or none.
pub fn run(task: &Task) -> Outcome<Sample> {
    let mut insides = task.servers().map(Inside::connect).collect::<Outcome<Vec<_>>>()?;
    let servers = insides.iter_mut().map(Inside::process).collect::<Outcome<Vec<_>>>()?;
    let mut commands = || insides.iter_mut().map(Inside::commands).sum::<Outcome<f64>>();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let asker = Asker::connect(task).await?;
        let before = commands()?;
        let course = Arc::new(Mutex::new(Course::new(task, &servers)?));
        let mut callers = JoinSet::new();
        for _ in 0..task.callers {
            callers.spawn(call(asker.clone(), Arc::clone(&course)));
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        let now = Instant::now();
        let commands = commands()? - before;
        let course = Arc::into_inner(course).ok_or("somebody still asks")?;
        course.into_inner().unwrap_or_else(PoisonError::into_inner).finish(now, commands)
    })
}

/// One caller, until nobody asks any more.
async fn call(mut asker: Asker, course: Arc<Mutex<Course>>) -> Outcome<()> {
    let mut text = String::new();
    let mut sent = Instant::now();
    for turn in 1.. {
        let next = course.lock().unwrap_or_else(PoisonError::into_inner).next(sent)?;
        let Some(number) = next else { break };
        text.clear();
        text.push_str("user");
        text.extend(digits(number));
        let answer = asker.ask(&text).await?;
        let now = Instant::now();
        course.lock().unwrap_or_else(PoisonError::into_inner).answered(answer, sent, now);
        sent = now;
        if turn % STRETCH == 0 {
            yield_now().await;
            // The others' turns are nothing that this one waited for.
            sent = Instant::now();
        }
    }
    Ok(())
}
