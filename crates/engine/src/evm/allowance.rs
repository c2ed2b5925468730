//! What the transactions of a block may take together: time, gas, and what they touch.
//!
//! For blocks that others have made and nobody has proven, and for those that are built
//! while others wait. A block says how much gas it has used; what spends more is stopped
//! while it runs, and is not that block. The time is the clock's, but the clock is not
//! looked at before a little work is done, counted from above (`work`): so a machine that
//! stands still for a while stops nothing that is small.

use std::time::{Duration, Instant};

use op_revm::OpSpecId;
use revm::primitives::hardfork::SpecId;

use crate::{
    error::{Error, Result},
    evm::{
        deadline::{Limits, Watch},
        rules::Rules,
    },
};

pub(crate) const TIME: &str = "time";

/// What is left. Nothing is limited by default.
#[derive(Debug, Clone, Default)]
pub struct Allowance {
    /// `gas` is not among them: it is the block's, and here.
    limits: Limits,
    /// What the block may have used in all.
    gas: Option<u64>,
    /// The time that is left of one that is paused.
    paused: Option<Duration>,
}

impl Allowance {
    /// From now on. `least` is work that may be done however late it is.
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

    /// Stops its clock until `resume`.
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

    /// For a run with defaults in place of what is not known, which may spend more gas than the
    /// block says.
    pub(crate) fn for_probe(&self, gas_used: u64) -> Self {
        let doubled = |gas: u64| gas.saturating_add(gas.saturating_sub(gas_used));
        Self { gas: self.gas.map(doubled), ..self.clone() }
    }

    /// Counts the work of a probe. Its memory is free again, so what it touched does not count.
    pub(crate) fn probed(&mut self, probe: &Self) {
        self.limits.least_work = probe.limits.least_work;
    }

    /// A run was stopped, which has done all work that is done whatever the time.
    pub(crate) fn stopped(&mut self) {
        self.limits.least_work = 0;
    }

    /// One transaction after the other may be too small to look at the clock.
    pub(crate) fn check_time(&self, index: usize) -> Result<()> {
        let Limits { deadline: Some(deadline), least_work: 0, .. } = self.limits else {
            return Ok(());
        };
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(Error::OverBudget { index, what: TIME })
    }

    /// Those of the next transaction of a block that has used so much gas.
    pub(crate) fn limits(&self, gas_used: u64, rules: Rules) -> Limits {
        let gas = self.gas.filter(|_| counts_gas(rules)).map(|gas| {
            let left = gas.saturating_sub(gas_used);
            // Refunds, a fifth at most (EIP-3529) or once a half, come when it has ended.
            let refunded =
                if rules.spec_id().is_enabled_in(SpecId::LONDON) { left / 4 } else { left };
            left.saturating_add(refunded).saturating_add(1)
        });
        Limits { gas, ..self.limits.clone() }
    }

    /// A transaction ran, and the block has used so much gas with it.
    pub(crate) fn spend(&mut self, watch: &Watch, gas_used: u64) -> Result<()> {
        if self.gas.is_some_and(|gas| gas_used > gas) {
            return Err(Error::OverBudget { index: 0, what: "gas" });
        }
        self.limits.touched = watch.touched_left();
        self.limits.least_work = self.limits.least_work.saturating_sub(watch.worked_in_all());
        Ok(())
    }
}

impl From<Limits> for Allowance {
    fn from(limits: Limits) -> Self {
        Self { limits, gas: None, paused: None }
    }
}

/// Before Regolith a system deposit used no gas, whatever it spent.
fn counts_gas(rules: Rules) -> bool {
    !matches!(rules, Rules::Optimism(OpSpecId::BEDROCK))
}
