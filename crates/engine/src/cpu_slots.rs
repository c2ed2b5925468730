//! Time-slicing of CPU cores between long runs, short runs first.
//!
//! More runs may be in progress than may execute at once. A run that has used its quantum yields
//! its slot to the next waiting run. Runs that have used little time precede runs that have used
//! much, so a call of milliseconds does not wait for calls of seconds. One turn in several is
//! reserved for long runs to prevent starvation.
//!
//! Runs yield where they check their watch (`deadline`).

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a run continues while others wait.
const QUANTUM: Duration = Duration::from_millis(4);
/// A run that has used more than this counts as long.
const SHORT: Duration = Duration::from_millis(12);
/// One turn in this many goes to a long run.
const TURNS: u32 = 4;
/// How quickly a waiting run notices that it was cancelled.
const NOTICED: Duration = Duration::from_millis(20);

/// The CPU slots and their waiting queues.
#[derive(Debug)]
pub struct CpuSlots {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    short: VecDeque<Arc<Place>>,
    long: VecDeque<Arc<Place>>,
    turns: u32,
}

/// The condition that a waiting run is notified by.
#[derive(Debug, Default)]
struct Place {
    given: Condvar,
}

/// The scheduling state of one run.
#[derive(Debug)]
pub struct CpuSlot {
    shares: Arc<CpuSlots>,
    place: Arc<Place>,
    own: Mutex<Own>,
}

#[derive(Debug)]
struct Own {
    /// When the run received its current slot; `None` while it has none.
    since: Option<Instant>,
    used: Duration,
    deadline: Option<Instant>,
}

impl CpuSlots {
    /// At most `places` runs execute at once.
    pub fn new(places: usize) -> Arc<Self> {
        let (short, long) = (VecDeque::new(), VecDeque::new());
        let state = Mutex::new(State { free: places, short, long, turns: 0 });
        Arc::new(Self { state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, used: Duration) -> &mut VecDeque<Arc<Place>> {
        if used > SHORT { &mut self.long } else { &mut self.short }
    }

    /// Passes a released slot to the next waiting run, or marks it free.
    fn give(&mut self) {
        self.turns = (self.turns + 1) % TURNS;
        let (first, second) = match self.turns {
            0 => (&mut self.long, &mut self.short),
            _ => (&mut self.short, &mut self.long),
        };
        match first.pop_front().or_else(|| second.pop_front()) {
            Some(next) => next.given.notify_one(),
            None => self.free += 1,
        }
    }

    /// True if the run no longer waits because it was given a slot.
    fn is_given(&self, place: &Arc<Place>) -> bool {
        !self.short.iter().chain(&self.long).any(|waiting| Arc::ptr_eq(waiting, place))
    }

    fn give_up(&mut self, place: &Arc<Place>) {
        self.short.retain(|waiting| !Arc::ptr_eq(waiting, place));
        self.long.retain(|waiting| !Arc::ptr_eq(waiting, place));
    }
}

impl CpuSlot {
    /// `deadline` bounds the time spent waiting for a slot.
    pub fn new(shares: &Arc<CpuSlots>, deadline: Option<Instant>) -> Arc<Self> {
        let own = Mutex::new(Own { since: None, used: Duration::ZERO, deadline });
        Arc::new(Self { shares: shares.clone(), place: Arc::default(), own })
    }

    /// Called where a run checks its watch. Returns immediately, or after other runs had a turn.
    /// Returns without a slot if the run is cancelled or past its deadline.
    pub fn wait_for_turn(&self, cancelled: &dyn Fn() -> bool) {
        let mut own = self.own();
        let now = Instant::now();
        if let Some(since) = own.since {
            let ran = now - since;
            if ran < QUANTUM {
                return;
            }
            own.used += ran;
            own.since = Some(now);
        }
        self.take_turn(&mut own, cancelled);
    }

    /// Releases the slot when the run ends or continues without the CPU.
    pub fn leave(&self) {
        let mut own = self.own();
        if let Some(since) = own.since.take() {
            own.used += since.elapsed();
            self.shares.state().give();
        }
    }

    /// The total time with a slot, excluding the current turn.
    pub fn used(&self) -> Duration {
        self.own().used
    }

    fn take_turn(&self, own: &mut Own, cancelled: &dyn Fn() -> bool) {
        let mut state = self.shares.state();
        if own.since.take().is_some() {
            state.give();
        }
        if state.free > 0 {
            state.free -= 1;
            own.since = Some(Instant::now());
            return;
        }
        state.queue(own.used).push_back(self.place.clone());
        while !state.is_given(&self.place) {
            let late = own.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if late || cancelled() {
                state.give_up(&self.place);
                return;
            }
            let wait = self.place.given.wait_timeout(state, NOTICED);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        own.since = Some(Instant::now());
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CpuSlot {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    fn used(share: &CpuSlot, time: Duration) {
        share.own().used = time;
    }

    const HOUR: Duration = Duration::from_secs(3600);

    /// Moves the start of its quantum into the future, so that it does not end on a slow machine.
    fn refresh(share: &CpuSlot) {
        let mut own = share.own();
        own.since = own.since.map(|_| Instant::now() + HOUR);
    }

    /// Ends its quantum.
    fn tire(share: &CpuSlot) {
        let mut own = share.own();
        own.since = own.since.map(|_| Instant::now() - QUANTUM);
    }

    const NEVER: &dyn Fn() -> bool = &|| false;

    fn has_place(share: &CpuSlot) -> bool {
        share.own().since.is_some()
    }

    #[test]
    fn a_run_alone_goes_on() {
        let shares = CpuSlots::new(1);
        let share = CpuSlot::new(&shares, None);
        for _ in 0..3 {
            share.wait_for_turn(NEVER);
            assert!(has_place(&share));
            tire(&share);
        }
        share.leave();
        assert_eq!(shares.state().free, 1);
        drop(share);
        assert_eq!(shares.state().free, 1, "a place is given back once");
    }

    /// Threads that wait for a turn; `got` receives the names in the order of their turns.
    struct Waiting {
        shares: Arc<CpuSlots>,
        got: mpsc::Receiver<(&'static str, Arc<CpuSlot>)>,
        tell: mpsc::Sender<(&'static str, Arc<CpuSlot>)>,
    }

    impl Waiting {
        fn new(shares: Arc<CpuSlots>) -> Self {
            let (tell, got) = mpsc::channel();
            Self { shares, got, tell }
        }

        fn wait(&self, name: &'static str, time: Duration) {
            let share = CpuSlot::new(&self.shares, None);
            used(&share, time);
            let (tell, before) = (self.tell.clone(), self.waiting());
            thread::spawn(move || {
                share.wait_for_turn(NEVER);
                tell.send((name, share)).unwrap();
            });
            while self.waiting() == before {
                thread::yield_now();
            }
        }

        fn waiting(&self) -> usize {
            let state = self.shares.state();
            state.short.len() + state.long.len()
        }
    }

    #[test]
    fn short_runs_go_first_and_long_ones_have_their_turn() {
        let shares = CpuSlots::new(1);
        let first = CpuSlot::new(&shares, None);
        first.wait_for_turn(NEVER);
        let waiting = Waiting::new(shares.clone());
        waiting.wait("long", SHORT * 2);
        for name in ["a", "b", "c", "d", "e"] {
            waiting.wait(name, Duration::ZERO);
        }
        first.leave();
        let order: Vec<_> = (0..6).map(|_| waiting.got.recv().unwrap().0).collect();
        assert_eq!(order, ["a", "b", "c", "long", "d", "e"]);
    }

    #[test]
    fn a_run_gives_its_place_up_after_a_quantum_only() {
        let shares = CpuSlots::new(1);
        let first = CpuSlot::new(&shares, None);
        first.wait_for_turn(NEVER);
        let waiting = Waiting::new(shares.clone());
        waiting.wait("next", Duration::ZERO);
        refresh(&first);
        first.wait_for_turn(NEVER);
        assert!(has_place(&first) && waiting.got.try_recv().is_err());
        tire(&first);
        let other = thread::spawn(move || {
            first.wait_for_turn(NEVER);
            has_place(&first)
        });
        let (name, next) = waiting.got.recv().unwrap();
        assert_eq!(name, "next");
        next.leave();
        assert!(other.join().unwrap());
    }

    #[test]
    fn who_is_cancelled_or_late_waits_no_more() {
        let shares = CpuSlots::new(1);
        let first = CpuSlot::new(&shares, None);
        first.wait_for_turn(NEVER);
        let cancelled = CpuSlot::new(&shares, None);
        cancelled.wait_for_turn(&|| true);
        assert!(!has_place(&cancelled));
        let late = CpuSlot::new(&shares, Some(Instant::now()));
        late.wait_for_turn(NEVER);
        assert!(!has_place(&late));
        drop((cancelled, late));
        first.leave();
        assert_eq!(shares.state().free, 1);
        assert!(shares.state().short.is_empty());
    }
}
