//! Threads for calls that take long, never touching Python.
//!
//! Work goes in with an id, results come out in the order they were done. A file
//! descriptor is readable while there are results, so that an event loop can wait for
//! them. The queue is bounded; full is an error for whoever submits. The threads run
//! at low priority: a long call must not take a core from the short ones.
//!
//! Dropping the pool cancels what runs, forgets what waits and joins the threads.

mod signal;

use std::{
    collections::VecDeque,
    fmt,
    os::fd::{AsRawFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{
    error::{Error, Result},
    evm::panicked,
    outcome::Outcome,
};
use signal::Signal;

/// A job is handed the pool's cancel flag, to be put into its `Limits`.
type Job = Box<dyn FnOnce(&Arc<AtomicBool>) -> Result<Outcome> + Send>;

/// More would only wait for each other: machines have no more cores than this.
const MAX_THREADS: usize = 1024;

pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    capacity: usize,
}

struct Shared {
    waiting: Mutex<VecDeque<(u64, Job)>>,
    work: Condvar,
    results: Mutex<Vec<(u64, Result<Outcome>)>>,
    signal: Signal,
    cancel: Arc<AtomicBool>,
}

impl Pool {
    /// `capacity` bounds the jobs that wait, not those that run. `nice` is added to
    /// the priority of the threads, 0 to 19.
    pub fn new(threads: usize, capacity: usize, nice: u8) -> Result<Self> {
        if !(1..=MAX_THREADS).contains(&threads) || nice > 19 {
            return Err(Error::invalid(format!(
                "a pool has 1 to {MAX_THREADS} threads of priority 0 to 19"
            )));
        }
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            work: Condvar::new(),
            results: Mutex::default(),
            signal: Signal::new()?,
            cancel: Arc::default(),
        });
        let mut pool = Self { shared, threads: Vec::new(), capacity };
        for number in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new()
                .name(format!("call-{number}"))
                .spawn(move || shared.serve(nice))
                .map_err(|error| Error::Execution(format!("no thread for calls: {error}")))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub fn submit(
        &self,
        id: u64,
        job: impl FnOnce(&Arc<AtomicBool>) -> Result<Outcome> + Send + 'static,
    ) -> Result<()> {
        let mut waiting = lock(&self.shared.waiting);
        if waiting.len() >= self.capacity {
            return Err(Error::PoolFull(waiting.len()));
        }
        waiting.push_back((id, Box::new(job)));
        drop(waiting);
        self.shared.work.notify_one();
        Ok(())
    }

    /// All results there are. Whoever takes them has them alone.
    pub fn take(&self) -> Vec<(u64, Result<Outcome>)> {
        // Cleared first: a result that arrives in between sets it again, and the worst
        // is one look at an empty list.
        self.shared.signal.clear();
        std::mem::take(&mut *lock(&self.shared.results))
    }

    /// How many jobs no thread has begun yet.
    pub fn waiting(&self) -> usize {
        lock(&self.shared.waiting).len()
    }
}

/// Readable when there are results.
impl AsRawFd for Pool {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.signal.as_raw_fd()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.cancel.store(true, Ordering::Relaxed);
        lock(&self.shared.waiting).clear();
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread only ends by panic outside a job, and then it has nothing to say.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn serve(&self, nice: u8) {
        lower_priority(nice);
        while let Some((id, job)) = self.next() {
            let result = catch_unwind(AssertUnwindSafe(|| job(&self.cancel)))
                .unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            lock(&self.results).push((id, result));
            self.signal.set();
        }
    }

    fn next(&self) -> Option<(u64, Job)> {
        let mut waiting = lock(&self.waiting);
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(job) = waiting.pop_front() {
                return Some(job);
            }
            waiting = self.work.wait(waiting).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// No code of a job runs under these locks, so what they guard is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// On Linux a priority belongs to a thread and 0 means the calling one. Elsewhere it
/// belongs to the process and stays as it is. Failing costs politeness only.
fn lower_priority(nice: u8) {
    #[cfg(target_os = "linux")]
    // SAFETY: setpriority takes plain numbers and touches no memory of ours.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, nice.into());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

#[cfg(test)]
mod tests;
