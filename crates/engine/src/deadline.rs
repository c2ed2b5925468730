//! Stopping a run: by the clock, by another thread, or at a costly precompile.
//!
//! The EVM looks at its watch at every jump and every new frame (`instructions`),
//! which together lie on every way to run for long: code without jumps is bounded by
//! its length, recursion passes through frames. The clock itself is read rarely,
//! because reading it costs as much as ten opcodes. A precompile cannot be stopped
//! once it runs, so a run may refuse to start one.
//!
//! A stopped run has no outcome: it ends as `Error::DeadlineExceeded` and its EVM is
//! thrown away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Ticks between two looks at the clock: a jump is one, a frame `FRAME_TICKS`.
const TICKS: u32 = 1024;
/// A frame may run its whole code without a jump, so frames weigh more than jumps.
const FRAME_TICKS: u32 = 128;

/// What a run may not exceed. Nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    pub deadline: Option<Instant>,
    /// Stops the run when another thread sets it.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The most gas one precompile may take: for runs that must not hold their
    /// thread for long. A precompile that needs more stops the run.
    pub precompile_gas: Option<u64>,
}

/// The limits of the run in progress and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    limits: Limits,
    ticks: u32,
    stopped: bool,
    /// The deepest frame entered, which decides whether the EVM is worth keeping.
    pub(crate) deepest: usize,
    /// The last byte executed that is no opcode of the fork.
    pub(crate) undefined_opcode: Option<u8>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        // The first tick looks, so that a deadline in the past stops at once.
        Self { limits, ticks: TICKS - 1, ..Self::default() }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// True when the run must end here.
    #[inline]
    pub(crate) fn jump(&mut self) -> bool {
        self.ticks += 1;
        self.ticks >= TICKS && self.look()
    }

    #[inline]
    pub(crate) fn frame(&mut self, depth: usize) -> bool {
        self.deepest = self.deepest.max(depth);
        self.ticks += FRAME_TICKS;
        self.ticks >= TICKS && self.look()
    }

    /// The gas to offer a precompile that was forwarded this much.
    pub(crate) fn precompile_gas(&self, forwarded: u64) -> u64 {
        forwarded.min(self.limits.precompile_gas.unwrap_or(u64::MAX))
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    #[cold]
    fn look(&mut self) -> bool {
        self.ticks = 0;
        let late = self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let cancelled =
            self.limits.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        self.stopped = late || cancelled;
        self.stopped
    }
}
