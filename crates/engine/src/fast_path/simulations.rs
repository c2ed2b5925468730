//! Simulations on the fast path: short blocks of plain calls, in the `preconf` dialect.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Bounds, Reader, Tag};
use crate::{
    deadline::Limits,
    evm::overlay::Overlay,
    params::{self, read_plain},
    simulate::{
        plain_simulation::{Budget, PlainSimulation, Progress},
        text::{Dialect, SimulationText},
    },
};

/// After a simulation that took too long, this many use the general path, so that only a small part
/// of the time is spent twice.
pub(super) const SKIPPED: usize = 32;

impl<L: Fn(Duration, Duration) -> Limits> Reader<'_, L> {
    /// Executes a simulation and writes its blocks. `None` if it takes long, or if the general path
    /// has to decide.
    pub(super) fn simulate(&mut self, payload: &[u8], at: Tag, out: &mut Vec<u8>) -> Option<()> {
        let snapshot = self.snapshot;
        let template = snapshot.templates[at as usize].as_ref()?;
        if !(snapshot.answers_calls && self.is_at_root) {
            return None;
        }
        let &Bounds { call_gas: gas, simulated_calls: calls, batch_bytes, .. } = self.bounds;
        if payload.len() > batch_bytes {
            return None;
        }
        if *self.skipped_simulations > 0 {
            *self.skipped_simulations -= 1;
            return None;
        }
        let limits = params::Limits { blocks: calls, block_calls: calls, calls };
        let blocks = read_plain(payload, limits)?;
        let limits = (self.limits)(self.bounds.simulation_time, self.bounds.step_time);
        let overlay = Overlay::new(Box::new(self.state(at).ok()?.clone()));
        let budget = Budget { gas, output: self.bounds.simulated_output };
        let mut simulation = PlainSimulation::new(overlay, (**template).clone(), blocks, budget);
        if simulation.run(limits.deadline, &limits) != Ok(Progress::Finished) {
            if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                *self.skipped_simulations = SKIPPED;
            }
            return None;
        }
        let blocks = simulation.take().into_iter().map(Arc::new).collect();
        let mut text = SimulationText::new(blocks, Vec::new(), Dialect::Preconf);
        text.write(out, out.len() + batch_bytes).then_some(())
    }
}
