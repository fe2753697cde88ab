//! The worker processes on one limit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use tollgate_testkit::server::Cluster;
use tollgate_testkit::wait::eventually;

use super::worker::Work;
use super::worker_log::Totals;

#[derive(Debug)]
pub(super) struct Fleet {
    url: String,
    limit: usize,
    folder: PathBuf,
    workers: Vec<Child>,
    logs: Vec<PathBuf>,
}

impl Fleet {
    pub(super) fn start(cluster: &Cluster, limit: usize, processes: usize, folder: &Path) -> Self {
        let (workers, logs) = (Vec::new(), Vec::new());
        let mut fleet =
            Self { url: cluster.url(), limit, folder: folder.to_owned(), workers, logs };
        for _ in 0..processes {
            let worker = fleet.start_worker();
            fleet.workers.push(worker);
        }
        fleet
    }

    fn start_worker(&mut self) -> Child {
        let work = self.work(self.logs.len());
        self.logs.push(work.log.clone());
        work.start()
    }

    /// Returns the time of the leases of the limit.
    pub(super) fn hold(&self) -> Duration {
        self.work(0).leased_limit().lease_hold().unwrap()
    }

    fn work(&self, nth: usize) -> Work {
        Work {
            url: self.url.clone(),
            limit: self.limit,
            is_auto: nth.is_multiple_of(2),
            log: self.folder.join(format!("{}-{nth}", self.limit)),
        }
    }

    /// Returns the logs of all workers, also of those that were killed.
    pub(super) fn logs(&self) -> &[PathBuf] {
        &self.logs
    }

    /// Starts one more worker, and kills it after its first admissions.
    pub(super) fn kill_one(&mut self) {
        let mut victim = self.start_worker();
        let log = self.logs.len() - 1;
        eventually("the worker to kill has admitted", || {
            Totals::read(&self.logs[log..]).admitted > 0
        });
        victim.kill().unwrap();
        let status = victim.wait().unwrap();
        assert_eq!(status.code(), None, "the worker ended before it was killed");
    }

    /// Suspends a worker that admits requests until the returned value is dropped.
    pub(super) fn suspend_one(&self) -> Suspended<'_> {
        let log = &self.logs[1..2];
        wait_for_admission(log);
        let suspended = Suspended { worker: &self.workers[1], log };
        suspended.signal("-STOP");
        suspended
    }

    /// Waits until a worker admits a request that it begins after the call.
    pub(super) fn wait_for_admissions(&self) {
        self.logs[..self.workers.len()].chunks(1).for_each(wait_for_admission);
    }

    /// Stops the workers. Returns the logs of all.
    pub(super) fn stop(mut self) -> Vec<PathBuf> {
        // Their input ends for all before the first wait.
        self.workers.iter_mut().for_each(|worker| drop(worker.stdin.take()));
        for worker in &mut self.workers {
            assert!(worker.wait().unwrap().success(), "a worker has failed");
        }
        self.logs
    }
}

fn wait_for_admission(log: &[PathBuf]) {
    let before = Totals::read(log).admitted;
    eventually("a worker admits", || Totals::read(log).admitted > before);
}

/// A suspended worker.
#[derive(Debug)]
pub(super) struct Suspended<'a> {
    worker: &'a Child,
    log: &'a [PathBuf],
}

impl Suspended<'_> {
    /// Resumes the worker, and waits until it admits again.
    pub(super) fn resume(self) {
        let log = self.log;
        drop(self);
        wait_for_admission(log);
    }

    fn signal(&self, signal: &str) {
        let id = self.worker.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}
