//! One pass over the logs: one thread reads and parses, the caller's thread decides.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use tollgate::{Costs, Facts};

use super::batch::Batch;
use super::error::ReplayError;
use super::line::{CostField, FactNames, JsonFields};
use super::progress::Progress;
use super::request_facts::RequestFacts;
use super::source::{Input, LogFile, Merged, SkippedLines, is_stdin};

/// Number of batches between the two threads.
const BATCHES: usize = 8;

/// The logs to read, and how.
#[derive(Debug)]
pub(crate) struct Logs {
    paths: Vec<PathBuf>,
    fields: JsonFields,
    names: FactNames,
}

/// Result of a pass.
#[derive(Debug)]
pub(crate) struct PassResult {
    pub(crate) skipped: SkippedLines,
    pub(crate) facts: RequestFacts,
}

impl Logs {
    /// Describes logs whose lines have these facts in addition to `ip`, `method` and `path`, and these costs. `renamed` has
    /// pairs of fact and JSON field.
    pub(crate) fn new(
        paths: &[PathBuf],
        facts: &[&str],
        renamed: &[(String, String)],
        costs: &[CostField],
    ) -> Result<Self, ReplayError> {
        CostField::check_distinct(costs)?;
        let given = renamed.iter().map(|(fact, _)| fact.as_str()).filter(|fact| *fact != "time");
        let cost_names: Vec<String> = costs.iter().map(CostField::name).collect();
        let cost_names = cost_names.iter().map(String::as_str);
        let names = FactNames::new(facts.iter().copied().chain(given).chain(cost_names))?;
        let fields = JsonFields::new(names.clone(), renamed, costs);
        Ok(Self { paths: paths.to_vec(), fields, names })
    }

    /// Returns whether the logs can be read again.
    pub(crate) fn can_repeat(&self) -> bool {
        // A pipe or another special file has its content only once.
        let is_file = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.is_file());
        self.paths.iter().all(is_file)
    }

    /// Returns an error if a log cannot be opened, other than standard input.
    pub(crate) fn check_readable(&self) -> Result<(), ReplayError> {
        let mut files = self.paths.iter().filter(|path| !is_stdin(path));
        files.try_for_each(|path| Input::open(path, &Arc::default()).map(drop))
    }

    /// Reads all logs and calls `decide` with the time in microseconds, the facts and the costs of each request, in
    /// order.
    pub(crate) fn read(
        &self,
        title: &str,
        mut decide: impl FnMut(u64, Facts<'_>, Costs),
    ) -> Result<PassResult, ReplayError> {
        let read = Arc::new(AtomicU64::new(0));
        let open = |path: &PathBuf| Input::open(path, &read);
        let inputs: Vec<Input> = self.paths.iter().map(open).collect::<Result<_, _>>()?;
        let files = inputs.into_iter().map(|input| LogFile::new(input, &self.fields)).collect();
        let mut progress = Progress::new(title, &self.paths, &read);
        let facts = RequestFacts::new(self.names.clone());
        let (full, batches) = sync_channel::<Batch>(BATCHES);
        let (empty, spare) = channel();
        thread::scope(|scope| {
            let reader = scope.spawn(move || read_all(Merged::new(files), &full, &spare));
            for batch in batches {
                for (at, values) in batch.iter() {
                    let (facts, costs) = facts.build(values);
                    decide(at, facts, costs);
                }
                progress.add(batch.len());
                // The reader may have ended.
                let _ = empty.send(batch);
            }
            progress.end();
            let skipped = reader
                .join()
                .map_err(|_| ReplayError::new("internal error: the reader failed"))??;
            Ok(PassResult { skipped, facts })
        })
    }
}

fn read_all(
    mut logs: Merged<'_>,
    full: &SyncSender<Batch>,
    spare: &Receiver<Batch>,
) -> Result<SkippedLines, ReplayError> {
    loop {
        let mut batch: Batch = spare.try_recv().unwrap_or_default();
        batch.clear();
        if !logs.fill(&mut batch)? || full.send(batch).is_err() {
            return Ok(logs.skipped());
        }
    }
}
