//! Threads for long work, so that it does not block other requests.
//!
//! Jobs are submitted with a number and the requesting address; results are returned in order of
//! completion. A file descriptor is readable while results are available, for use in an event loop.
//! Addresses are served in turn (`queue`), and only a limited number of started jobs run at once,
//! also in turn (`cpu_slots`). The threads run at low priority, so that long work does not take a
//! core from short requests.
//!
//! The queue is bounded, and a job that could not start before its deadline is rejected at
//! submission. Jobs can be cancelled by number.
//!
//! Stopping or dropping the pool cancels running jobs and discards waiting ones. It waits briefly
//! for the threads; a thread inside an uninterruptible step is left running.

mod queue;
mod signal;

use std::{
    collections::HashMap,
    fmt,
    os::fd::{AsRawFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    cpu_slots::{CpuSlot, CpuSlots},
    deadline::Limits,
    error::{Error, Result},
    evm::machine::panicked,
};
use queue::{Pushed, Queue};
use signal::Signal;

/// A job receives the limits under which it must run.
type Job<T> = Box<dyn FnOnce(Limits) -> Result<T> + Send>;

/// Maximum number of threads. No machine has more cores, so more would not help.
const MAX_THREADS: usize = 1024;
/// How long a stopped pool waits for its threads.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum bytes of results not yet taken; above it no more jobs are started.
const MOST_HELD: usize = 16 << 20;
/// Weight of the latest job in the moving average of run times.
const WEIGHT: f64 = 0.1;

/// The capacity of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Maximum number of jobs running at the same time.
    pub running: usize,
    /// Maximum number of jobs started and not finished; each has a thread.
    pub begun: usize,
    /// Maximum number of jobs waiting to be started.
    pub waiting: usize,
    /// The nice value of the threads, 0 to 19.
    pub nice: u8,
}

/// The requester of a job, and its deadline.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    pub address: u64,
    pub deadline: Option<Instant>,
}

pub struct Pool<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    size: Size,
    /// Returns the size of a result in bytes.
    weigh: fn(&T) -> usize,
    shares: Arc<CpuSlots>,
    state: Mutex<State<T>>,
    work: Condvar,
    ended: Condvar,
    taken: Condvar,
    signal: Signal,
}

struct State<T> {
    queue: Queue<(Asker, Job<T>)>,
    /// The cancellation flags of started jobs.
    begun: HashMap<u64, Arc<AtomicBool>>,
    threads: usize,
    idle: usize,
    results: Vec<(u64, Result<T>)>,
    /// Bytes of `results`.
    held: usize,
    /// Moving average of the CPU time of jobs, in seconds.
    mean: f64,
    over: bool,
}

impl<T: Send + 'static> Pool<T> {
    /// `weigh` returns the size of a result in bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a size out of range, `Execution` if no file descriptor can be created.
    pub fn new(size: Size, weigh: fn(&T) -> usize) -> Result<Self> {
        let threads = 1..=MAX_THREADS;
        if !threads.contains(&size.running) || !threads.contains(&size.begun) || size.nice > 19 {
            return Err(Error::invalid(format!(
                "a pool has 1 to {MAX_THREADS} threads of priority 0 to 19"
            )));
        }
        let state = State {
            queue: Queue::new(size.waiting),
            begun: HashMap::new(),
            threads: 0,
            idle: 0,
            results: Vec::new(),
            held: 0,
            mean: 0.0,
            over: false,
        };
        let shared = Shared {
            size,
            weigh,
            shares: CpuSlots::new(size.running),
            state: Mutex::new(state),
            work: Condvar::new(),
            ended: Condvar::new(),
            taken: Condvar::new(),
            signal: Signal::new()?,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// # Errors
    ///
    /// `PoolFull` if the queue is full, the job would start after its deadline, or the pool is
    /// stopped. `Execution` if no thread can be started.
    pub fn submit(
        &self,
        number: u64,
        asker: Asker,
        job: impl FnOnce(Limits) -> Result<T> + Send + 'static,
    ) -> Result<()> {
        let mut state = self.shared.state();
        if state.over {
            return Err(Error::PoolFull(0));
        }
        let (waiting, address) = (state.queue.len(), asker.address);
        let free = self.shared.size.begun - state.begun.len();
        if waiting >= free && self.shared.begins_too_late(&state, &asker) {
            return Err(Error::PoolFull(waiting));
        }
        match state.queue.push(address, number, (asker, Box::new(job)), free) {
            Pushed::Waits => {}
            Pushed::InPlaceOf(other) => {
                state.results.push((other, Err(Error::PoolFull(waiting))));
                self.shared.signal.set();
            }
            Pushed::Refused => return Err(Error::PoolFull(waiting)),
        }
        if state.idle < state.queue.len() && state.threads < self.shared.size.begun {
            self.shared.start_thread(&mut state)?;
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Stops the job if it is running, or removes it from the queue.
    pub fn cancel(&self, number: u64) {
        let mut state = self.shared.state();
        if let Some(cancel) = state.begun.get(&number) {
            cancel.store(true, Ordering::Relaxed);
        }
        let forgotten = state.queue.remove(number);
        drop(state);
        drop(forgotten); // may free much memory, so after unlocking
    }

    /// Takes all available results; each is returned once.
    pub fn take(&self) -> Vec<(u64, Result<T>)> {
        // Cleared first: a result that arrives in between sets it again, at worst causing one extra
        // call that finds no results.
        self.shared.signal.clear();
        let mut state = self.shared.state();
        let taken = std::mem::take(&mut state.results);
        state.held = 0;
        drop(state);
        self.shared.taken.notify_all();
        taken
    }

    /// The number of jobs that are not started yet.
    pub fn waiting(&self) -> usize {
        self.shared.state().queue.len()
    }
}

/// Readable while results are available.
impl<T> AsRawFd for Pool<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.signal.as_raw_fd()
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T> Pool<T> {
    /// Cancels running jobs, discards waiting ones, starts no more, and waits briefly for the
    /// threads. Can be called again.
    pub fn stop(&self) {
        let mut state = lock(&self.shared.state);
        state.over = true;
        for cancel in state.begun.values() {
            cancel.store(true, Ordering::Relaxed);
        }
        state.queue.clear();
        self.shared.work.notify_all();
        self.shared.taken.notify_all();
        let ended = self.shared.ended.wait_timeout_while(state, GRACE, |state| state.threads > 0);
        drop(ended);
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.shared.size).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Estimated from recent run times and the number of jobs ahead.
    fn begins_too_late(&self, state: &State<T>, asker: &Asker) -> bool {
        let ahead = state.queue.ahead_of(asker.address) as f64;
        let expected = ahead * state.mean / self.size.running as f64;
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        asker.deadline.is_some_and(|deadline| expected > left(deadline).as_secs_f64())
    }

    fn start_thread(self: &Arc<Self>, state: &mut State<T>) -> Result<()> {
        let shared = Arc::clone(self);
        let named = thread::Builder::new().name(format!("long-{}", state.threads));
        match named.spawn(move || shared.serve()) {
            Ok(_) => state.threads += 1,
            // The existing threads will run the job.
            Err(_) if state.threads > 0 => {}
            Err(error) => return Err(Error::Execution(format!("no thread: {error}"))),
        }
        Ok(())
    }

    fn serve(&self) {
        lower_priority(self.size.nice);
        while let Some((number, asker, job, cancel)) = self.next() {
            let share = CpuSlot::new(&self.shares, asker.deadline);
            let limits = Limits {
                deadline: asker.deadline,
                cancel: Some(cancel.clone()),
                share: Some(share.clone()),
                ..Limits::default()
            };
            share.wait_for_turn(&|| cancel.load(Ordering::Relaxed));
            let result = catch_unwind(AssertUnwindSafe(|| job(limits)))
                .unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            share.leave();
            self.done(number, &share, result);
        }
        let mut state = self.state();
        state.threads -= 1;
        self.ended.notify_all();
    }

    fn next(&self) -> Option<(u64, Asker, Job<T>, Arc<AtomicBool>)> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if state.held > MOST_HELD {
                state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if let Some((number, (asker, job))) = state.queue.pop() {
                let cancel = Arc::new(AtomicBool::new(false));
                state.begun.insert(number, cancel.clone());
                return Some((number, asker, job, cancel));
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn done(&self, number: u64, share: &CpuSlot, result: Result<T>) {
        let mut state = self.state();
        state.begun.remove(&number);
        state.held += result.as_ref().map_or(0, self.weigh);
        state.mean += WEIGHT * (share.used().as_secs_f64() - state.mean);
        state.results.push((number, result));
        drop(state);
        self.signal.set();
    }
}

/// No job code runs under these locks, so the guarded data is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On Linux a priority belongs to a thread, and 0 means the calling thread. Elsewhere it belongs to
/// the process and is not changed. A failure is ignored: it affects only scheduling.
fn lower_priority(nice: u8) {
    #[cfg(target_os = "linux")]
    // SAFETY: setpriority takes plain integers and accesses no memory of this process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, nice.into());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

#[cfg(test)]
mod tests;
