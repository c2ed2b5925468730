//! Stopping a run: by the clock, by another thread, or before a step that would take too long.
//!
//! A run counts its work in nanoseconds by upper bounds (`work`) and checks its watch whenever
//! enough has accumulated. The time between two checks is therefore bounded by completed work for
//! any code. The clock is read rarely, because reading it costs as much as ten opcodes.
//!
//! Some steps cannot be interrupted: hashing a megabyte, a precompile. A run that must not block
//! its thread sets a maximum step duration (`Limits::step`) and ends before a longer step.
//!
//! Transactions have two further limits: the gas they spend, and the number of items they touch,
//! because those stay in memory until the transaction ends (`allowance`).
//!
//! A stopped run has no outcome. It ends with `Error::DeadlineExceeded`, or with
//! `Error::OverBudget` for limits other than time, and its EVM is dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    cpu_slots::CpuSlot,
    error::{Error, Result},
};

/// Work between two checks of the clock.
const CHECK_AFTER_NS: u64 = 20_000;
/// No limit.
const ANY: u64 = u64::MAX;

/// The limits of a run. Unlimited by default.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// Another thread sets this to stop the run.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The maximum estimated duration of a step, for runs that must not block their thread.
    pub step: Option<Duration>,
    /// The CPU slot of the run, which waits for its turn when it checks its watch.
    pub share: Option<Arc<CpuSlot>>,
    /// Work in nanoseconds that may be done even after the deadline.
    pub least_work: u64,
    /// Maximum gas spent by all frames together, before refunds.
    pub gas: Option<u64>,
    /// Maximum number of loaded accounts and slots, writes and logs.
    pub touched: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Time,
    Gas,
    Touched,
}

impl Limits {
    /// `DeadlineExceeded` if the first step exceeds the maximum step duration.
    pub(crate) fn check_step(&self, nanoseconds: u64) -> Result<()> {
        match self.step {
            Some(step) if u128::from(nanoseconds) > step.as_nanos() => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}

/// What a run spent of its limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    /// Work in nanoseconds.
    pub(crate) work: u64,
    /// What is left of `Limits::touched`.
    pub(crate) touched_left: Option<u64>,
}

/// The limits of the current run and its counters.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    /// Work since the last check.
    spent: u64,
    /// The gas left at the last jump.
    gas_left: u64,
    step_ns: u64,
    /// Work before the last check.
    done: u64,
    gas: u64,
    /// A check took place that did not cover gas: the next jump must check it.
    gas_is_due: bool,
    /// Gas spent by all enclosing frames, indexed by depth.
    below: Vec<u64>,
    touched_left: u64,
    stopped: Option<Stop>,
    /// The deepest frame that made a call; decides whether the EVM is kept.
    pub(crate) deepest: usize,
    /// The last executed byte that is not an opcode of the fork.
    pub(crate) undefined_opcode: Option<u8>,
    /// The reason of the most recent precompile failure.
    pub(crate) precompile_failure: Option<String>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        let step_ns = limits.step.map_or(u64::MAX, |step| step.as_nanos() as u64);
        let (gas, touched_left) = (limits.gas.unwrap_or(ANY), limits.touched.unwrap_or(ANY));
        Self {
            limits,
            spent: 0,
            gas_left: 0,
            step_ns,
            done: 0,
            gas,
            gas_is_due: false,
            below: Vec::new(),
            touched_left,
            stopped: None,
            deepest: 0,
            undefined_opcode: None,
            precompile_failure: None,
        }
    }

    /// The error of a stopped run; `None` if it was not stopped.
    pub(crate) fn error(&self) -> Option<Error> {
        let what = match self.stopped? {
            Stop::Time => return Some(Error::DeadlineExceeded),
            Stop::Gas => "gas",
            Stop::Touched => "accounts and slots",
        };
        Some(Error::OverBudget { index: 0, what })
    }

    fn total_work(&self) -> u64 {
        self.done.saturating_add(self.spent)
    }

    pub(crate) fn spent(&self) -> Spent {
        let touched_left = self.limits.touched.map(|_| self.touched_left);
        Spent { work: self.total_work(), touched_left }
    }

    /// Called before a step with the upper bound of its duration. Returns true if the run must end.
    #[inline]
    pub(crate) fn work(&mut self, nanoseconds: u64) -> bool {
        self.spent = self.spent.saturating_add(nanoseconds);
        self.spent >= CHECK_AFTER_NS && self.check(nanoseconds)
    }

    /// `work` outside of the EVM. Fails with `DeadlineExceeded` if the work must end.
    pub(crate) fn step(&mut self, nanoseconds: u64) -> Result<()> {
        if self.work(nanoseconds) { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }

    /// True if long steps must not be started, because other requests wait for the thread.
    pub(crate) fn in_place(&self) -> bool {
        self.limits.step.is_some()
    }

    /// `work` for a step that keeps something in memory.
    #[inline]
    pub(crate) fn charge_entry(&mut self, nanoseconds: u64) -> bool {
        match self.touched_left.checked_sub(1) {
            Some(left) => {
                self.touched_left = left;
                self.work(nanoseconds)
            }
            None => self.end(Stop::Touched),
        }
    }

    /// Called at a jump with the remaining gas. The code since the last jump took at most one
    /// nanosecond per gas or was counted separately. After a return to a frame with more gas left,
    /// the jump counts nothing. Returns true if a check by `check_at_jump` is due.
    #[inline]
    pub(crate) fn on_jump(&mut self, gas_left: u64) -> bool {
        let used = self.gas_left.saturating_sub(gas_left);
        self.gas_left = gas_left;
        self.spent = self.spent.saturating_add(used);
        self.spent >= CHECK_AFTER_NS || self.gas_is_due
    }

    /// `gas_spent` is the gas spent by the frame at this depth, including its calls.
    #[cold]
    pub(crate) fn check_at_jump(&mut self, depth: usize, gas_spent: u64) -> bool {
        self.gas_is_due = false;
        self.is_over_gas(depth, gas_spent) || self.spent >= CHECK_AFTER_NS && self.check(0)
    }

    /// Called before a frame is entered from this depth, with the gas spent there so far.
    #[inline]
    pub(crate) fn frame(&mut self, depth: usize, gas_spent: u64, nanoseconds: u64) -> bool {
        self.deepest = self.deepest.max(depth);
        self.gas != ANY && self.enter(depth, gas_spent) || self.work(nanoseconds)
    }

    #[inline(never)]
    fn enter(&mut self, depth: usize, gas_spent: u64) -> bool {
        let within = self.spent_below(depth).saturating_add(gas_spent);
        self.below.resize(depth + 2, 0);
        self.below[depth + 1] = within;
        within > self.gas && self.end(Stop::Gas)
    }

    fn is_over_gas(&mut self, depth: usize, gas_spent: u64) -> bool {
        let within = self.spent_below(depth).saturating_add(gas_spent);
        within > self.gas && self.end(Stop::Gas)
    }

    fn spent_below(&self, depth: usize) -> u64 {
        self.below.get(depth).copied().unwrap_or(0)
    }

    /// The gas limit for a precompile that was forwarded this much gas and takes `nanoseconds` per
    /// unit of gas.
    pub(crate) fn precompile_gas(&mut self, forwarded: u64, nanoseconds: u64) -> u64 {
        let left = self.limits.deadline.map_or(u64::MAX, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            let least = self.limits.least_work.saturating_sub(self.total_work());
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX).max(least)
        });
        forwarded.min(self.step_ns.min(left) / nanoseconds)
    }

    /// Counts work that could not be interrupted.
    pub(crate) fn charge(&mut self, nanoseconds: u64) {
        self.spent = self.spent.saturating_add(nanoseconds);
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = Some(Stop::Time);
    }

    #[cold]
    fn end(&mut self, why: Stop) -> bool {
        self.stopped = Some(why);
        true
    }

    #[cold]
    fn check(&mut self, nanoseconds: u64) -> bool {
        self.done = self.total_work();
        self.spent = 0;
        self.gas_is_due = self.gas != ANY;
        let Limits { deadline, cancel, share, .. } = &self.limits;
        let cancelled = || cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if let Some(share) = share {
            share.wait_for_turn(&cancelled);
        }
        let late = self.done >= self.limits.least_work
            && deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let stops = late || cancelled() || nanoseconds > self.step_ns;
        stops && self.end(Stop::Time)
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled() -> Limits {
        Limits { cancel: Some(Arc::new(AtomicBool::new(true))), ..Limits::default() }
    }

    #[test]
    fn a_deadline_that_is_over_stops_at_the_first_check() {
        let limits = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        assert!(Watch::new(limits).work(CHECK_AFTER_NS));
    }

    #[test]
    fn a_check_is_due_after_enough_work_of_any_kind() {
        let mut watch = Watch::new(cancelled());
        assert!(!watch.work(CHECK_AFTER_NS - 1));
        assert!(watch.work(1));
        let mut watch = Watch::new(cancelled());
        watch.charge(CHECK_AFTER_NS);
        assert!(watch.work(0));
    }

    #[test]
    fn jumps_count_the_gas_that_was_used_in_between() {
        let mut watch = Watch::new(Limits::default());
        assert!(!watch.on_jump(1_000_000), "the first of a frame");
        assert!(!watch.on_jump(1_000_000 - CHECK_AFTER_NS + 1));
        assert!(!watch.on_jump(2_000_000), "back in the frame above");
        assert!(watch.on_jump(2_000_000 - 1));
    }

    #[test]
    fn a_step_that_is_too_long_is_not_begun() {
        let limits = Limits { step: Some(Duration::from_micros(100)), ..Limits::default() };
        let mut watch = Watch::new(limits);
        assert!(!watch.work(100_000));
        assert!(watch.work(100_001));
        assert_eq!(watch.precompile_gas(1_000_000, 50), 2_000);
        assert_eq!(watch.precompile_gas(1_000, 50), 1_000);
    }

    #[test]
    fn a_precompile_is_offered_no_more_than_there_is_time_for() {
        let deadline = Some(Instant::now() + Duration::from_secs(1));
        let mut watch = Watch::new(Limits { deadline, ..Limits::default() });
        assert!(watch.precompile_gas(u64::MAX, 50) <= 20_000_000);
    }

    #[test]
    fn a_little_work_is_done_however_late_it_is() {
        let late = Some(Instant::now());
        let least_work = 3 * CHECK_AFTER_NS;
        let mut watch = Watch::new(Limits { deadline: late, least_work, ..Limits::default() });
        assert_eq!(watch.precompile_gas(u64::MAX, 1), least_work);
        assert!(!watch.work(CHECK_AFTER_NS));
        assert!(!watch.work(CHECK_AFTER_NS));
        assert_eq!(watch.precompile_gas(u64::MAX, 1), CHECK_AFTER_NS);
        assert!(watch.work(CHECK_AFTER_NS));
        assert_eq!(watch.error(), Some(Error::DeadlineExceeded));
    }

    #[test]
    fn what_is_touched_is_counted() {
        let mut watch = Watch::new(Limits { touched: Some(2), ..Limits::default() });
        assert!(!watch.charge_entry(1));
        assert_eq!(watch.spent().touched_left, Some(1));
        assert!(!watch.charge_entry(1));
        assert!(watch.charge_entry(1));
        let what = "accounts and slots";
        assert_eq!(watch.error(), Some(Error::OverBudget { index: 0, what }));
    }

    #[test]
    fn gas_is_counted_over_all_frames() {
        let mut watch = Watch::new(Limits { gas: Some(100), ..Limits::default() });
        assert!(!watch.check_at_jump(1, 100));
        assert!(!watch.frame(1, 60, 1), "calls");
        assert!(!watch.check_at_jump(2, 40));
        assert!(watch.check_at_jump(2, 41));
        assert!(!watch.frame(2, 30, 1), "calls in turn");
        assert!(!watch.check_at_jump(3, 10));
        assert!(watch.check_at_jump(3, 11));
        assert!(!watch.check_at_jump(1, 90), "back in the first");
        assert!(watch.frame(1, 101, 1));
        assert_eq!(watch.error(), Some(Error::OverBudget { index: 0, what: "gas" }));
    }
}
