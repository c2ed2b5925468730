//! Stopping a run: by the clock, by another thread, or before a step that would take long.
//!
//! A run counts its work in nanoseconds, by what each thing takes at most (`work`), and
//! looks at its watch whenever enough has come together. So the time between two looks
//! is bounded by work that was done, whatever the code is made of. The clock is read
//! rarely, because reading it costs as much as ten opcodes.
//!
//! Some steps cannot be stopped once they have begun: hashing a megabyte, a precompile.
//! A run that must not hold its thread says how long a step may take (`Limits::step`),
//! and ends before one that would take longer.
//!
//! A stopped run has no outcome: it ends as `Error::DeadlineExceeded` and its EVM is
//! thrown away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    error::{Error, Result},
    shares::Share,
};

/// Work between two looks at the clock.
const LOOK_AFTER_NS: u64 = 20_000;

/// What a run may not exceed. Nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// Stops the run when another thread sets it.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The longest step that may be begun, by estimate: for runs that must not hold
    /// their thread for long.
    pub step: Option<Duration>,
    /// The part of the machine that the run has; it waits for its turn where it looks.
    pub share: Option<Arc<Share>>,
}

impl Limits {
    /// `DeadlineExceeded` when the first step takes longer than a step may take.
    pub(crate) fn check_step(&self, nanoseconds: u64) -> Result<()> {
        match self.step {
            Some(step) if u128::from(nanoseconds) > step.as_nanos() => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}

/// The limits of the run in progress and what became of them.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: Limits,
    /// Work since the last look.
    spent: u64,
    /// The gas that was left at the last jump.
    gas_left: u64,
    step_ns: u64,
    stopped: bool,
    /// The deepest frame entered, which decides whether the EVM is worth keeping.
    pub(crate) deepest: usize,
    /// The last byte executed that is no opcode of the fork.
    pub(crate) undefined_opcode: Option<u8>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        let step_ns = limits.step.map_or(u64::MAX, |step| step.as_nanos() as u64);
        Self {
            limits,
            spent: 0,
            gas_left: 0,
            step_ns,
            stopped: false,
            deepest: 0,
            undefined_opcode: None,
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Called before a step, with how long it takes at most. True: the run must end here.
    #[inline]
    pub(crate) fn work(&mut self, nanoseconds: u64) -> bool {
        self.spent = self.spent.saturating_add(nanoseconds);
        self.spent >= LOOK_AFTER_NS && self.look(nanoseconds)
    }

    /// At a jump, with what gas is left. What ran since the last one cost a nanosecond
    /// for each gas at most, or has said so itself. Of another frame there may be more
    /// left; its first jump counts nothing.
    #[inline]
    pub(crate) fn jump(&mut self, gas_left: u64) -> bool {
        let used = self.gas_left.saturating_sub(gas_left);
        self.gas_left = gas_left;
        self.work(used)
    }

    #[inline]
    pub(crate) fn frame(&mut self, depth: usize, nanoseconds: u64) -> bool {
        self.deepest = self.deepest.max(depth);
        self.work(nanoseconds)
    }

    /// The gas to offer a precompile that was forwarded this much and takes so long for
    /// each gas.
    pub(crate) fn precompile_gas(&mut self, forwarded: u64, nanoseconds: u64) -> u64 {
        let left = self.limits.deadline.map_or(u64::MAX, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
        });
        forwarded.min(self.step_ns.min(left) / nanoseconds)
    }

    /// After work that could not be stopped.
    pub(crate) fn worked(&mut self, nanoseconds: u64) {
        self.spent = self.spent.saturating_add(nanoseconds);
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    #[cold]
    fn look(&mut self, nanoseconds: u64) -> bool {
        self.spent = 0;
        let Limits { deadline, cancel, share, .. } = &self.limits;
        let cancelled = || cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if let Some(share) = share {
            share.wait_for_turn(&cancelled);
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.stopped = late || cancelled() || nanoseconds > self.step_ns;
        self.stopped
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
    fn a_deadline_that_is_over_stops_at_the_first_look() {
        let limits = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        assert!(Watch::new(limits).work(LOOK_AFTER_NS));
    }

    #[test]
    fn a_look_is_due_after_enough_work_of_any_kind() {
        let mut watch = Watch::new(cancelled());
        assert!(!watch.work(LOOK_AFTER_NS - 1));
        assert!(watch.work(1));
        let mut watch = Watch::new(cancelled());
        watch.worked(LOOK_AFTER_NS);
        assert!(watch.work(0));
    }

    #[test]
    fn jumps_count_the_gas_that_was_used_in_between() {
        let mut watch = Watch::new(cancelled());
        assert!(!watch.jump(1_000_000), "the first of a frame");
        assert!(!watch.jump(1_000_000 - LOOK_AFTER_NS + 1));
        assert!(!watch.jump(2_000_000), "back in the frame above");
        assert!(watch.jump(2_000_000 - 1));
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
}
