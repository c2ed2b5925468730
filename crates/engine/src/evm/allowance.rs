//! Limits on time, gas and touched state for all transactions of a block together.
//!
//! Used for unverified blocks received from others, and for blocks built while requests wait. A
//! header states the gas used; a transaction that exceeds it is stopped while it runs, because it
//! cannot belong to that block. Time is wall-clock time, but a minimum amount of work, counted by
//! upper bounds (`work`), is done before the clock is checked. A temporary stall of the machine
//! therefore does not stop small blocks.

use std::time::{Duration, Instant};

use op_revm::OpSpecId;
use revm::primitives::hardfork::SpecId;

use crate::{
    deadline::{Limits, Spent},
    error::{Error, Result},
    evm::rules::Rules,
};

pub(crate) const TIME: &str = "time";

/// The remaining allowance. Unlimited by default.
#[derive(Debug, Clone, Default)]
pub struct Allowance {
    /// `gas` is not set here: it applies to the block and is stored below.
    limits: Limits,
    /// Maximum gas used by the block.
    gas: Option<u64>,
    /// The remaining time while paused.
    paused: Option<Duration>,
}

impl Allowance {
    /// Starts the clock. `least` is the amount of work that may be done even after the deadline.
    pub fn new(
        time: Option<Duration>,
        least: Duration,
        gas: Option<u64>,
        touched: Option<u64>,
    ) -> Self {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let least_work = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        let limits = Limits { deadline, least_work, touched, ..Limits::default() };
        Self { limits, gas, paused: None }
    }

    /// Stops the clock until `resume`.
    pub fn pause(&mut self) {
        if let Some(deadline) = self.limits.deadline.take() {
            self.paused = Some(deadline.saturating_duration_since(Instant::now()));
        }
    }

    pub fn resume(&mut self) {
        if let Some(left) = self.paused.take() {
            self.limits.deadline = Instant::now().checked_add(left);
        }
    }

    /// Returns an allowance with twice the remaining gas for a probe. A probe runs with defaults in
    /// place of unknown state and may spend more gas than the block reports.
    pub(crate) fn for_probe(&self, gas_used: u64) -> Self {
        let doubled = |gas: u64| gas.saturating_add(gas.saturating_sub(gas_used));
        Self { gas: self.gas.map(doubled), ..self.clone() }
    }

    /// Deducts the work of a probe. Its memory has been freed, so touched state is not deducted.
    pub(crate) fn probed(&mut self, probe: &Self) {
        self.limits.least_work = probe.limits.least_work;
    }

    /// Returns what transactions touched whose changes were taken back: its memory has been freed.
    pub(crate) fn took_back(&mut self, before: &Self) {
        self.limits.touched = before.limits.touched;
    }

    /// Records that a run was stopped, which uses up the minimum work.
    pub(crate) fn stopped(&mut self) {
        self.limits.least_work = 0;
    }

    /// Checks the deadline between transactions, which may each be too small to check the clock.
    pub(crate) fn check_time(&self, index: usize) -> Result<()> {
        let Limits { deadline: Some(deadline), least_work: 0, .. } = self.limits else {
            return Ok(());
        };
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(Error::OverBudget { index, what: TIME })
    }

    /// The limits of the next transaction, given the block's gas used so far.
    pub(crate) fn limits(&self, gas_used: u64, rules: Rules) -> Limits {
        let gas = self.gas.filter(|_| counts_gas(rules)).map(|gas| {
            let left = gas.saturating_sub(gas_used);
            // Refunds apply only at the end: at most a fifth (EIP-3529), before London a half.
            let refunded =
                if rules.spec_id().is_enabled_in(SpecId::LONDON) { left / 4 } else { left };
            left.saturating_add(refunded).saturating_add(1)
        });
        Limits { gas, ..self.limits.clone() }
    }

    /// Deducts a finished transaction. `gas_used` is the block's gas used including it.
    pub(crate) fn spend(&mut self, spent: Spent, gas_used: u64) -> Result<()> {
        if self.gas.is_some_and(|gas| gas_used > gas) {
            return Err(Error::OverBudget { index: 0, what: "gas" });
        }
        self.limits.touched = spent.touched_left;
        self.limits.least_work = self.limits.least_work.saturating_sub(spent.work);
        Ok(())
    }
}

impl From<Limits> for Allowance {
    fn from(limits: Limits) -> Self {
        Self { limits, gas: None, paused: None }
    }
}

/// Before Regolith, system deposits reported no gas used regardless of what they spent.
fn counts_gas(rules: Rules) -> bool {
    !matches!(rules, Rules::Optimism(OpSpecId::BEDROCK))
}
