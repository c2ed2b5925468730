//! The precompiles of a run: those of the fork, optionally moved or disabled.
//!
//! Overrides change which precompile runs at an address, but not which addresses are warm: a
//! vacated address stays warm, and a destination is cold.

use std::sync::Arc;

use alloy_primitives::{Address, map::AddressMap};
use revm::{
    context::{Cfg, ContextTr, JournalTr, LocalContextTr},
    handler::{PrecompileProvider, precompile_output_to_interpreter_result},
    interpreter::{CallInputs, InterpreterResult},
    precompile::{Precompile, Precompiles},
};

use crate::{
    error::{Error, Result},
    evm::{instructions::Watched, rules::Rules, work},
};

/// Overridden addresses: `Some` is the address of the precompile to run there, `None` disables the
/// precompile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrecompileOverrides {
    answers: AddressMap<Option<Address>>,
}

impl PrecompileOverrides {
    /// `overridden` lists all accounts with a state override; precompiles among them are disabled.
    /// If several moves have the same destination, the highest source wins.
    ///
    /// # Errors
    ///
    /// `NotAPrecompile` with the lowest source that is not a precompile.
    pub fn new(
        rules: Rules,
        overridden: impl IntoIterator<Item = Address>,
        moves: impl IntoIterator<Item = (Address, Address)>,
    ) -> Result<Self> {
        let fork = rules.precompiles();
        let mut moves: Vec<_> = moves.into_iter().collect();
        moves.sort_unstable();
        if let Some((source, _)) = moves.iter().find(|(source, _)| !fork.contains(source)) {
            return Err(Error::NotAPrecompile(*source));
        }
        let sources = moves.iter().map(|(source, _)| *source);
        let vacated = overridden.into_iter().chain(sources).filter(|at| fork.contains(at));
        let mut answers: AddressMap<_> = vacated.map(|at| (at, None)).collect();
        answers.extend(moves.iter().map(|(source, to)| (*to, Some(*source))));
        Ok(Self { answers })
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

/// The precompile provider of an EVM. `overrides` belong to the current run.
#[derive(Debug, Clone)]
pub(crate) struct ForkPrecompiles {
    fork: &'static Precompiles,
    pub(crate) overrides: Option<Arc<PrecompileOverrides>>,
}

impl ForkPrecompiles {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { fork: rules.precompiles(), overrides: None }
    }

    pub(crate) fn fork(&self) -> &'static Precompiles {
        self.fork
    }

    fn at(&self, address: &Address) -> Option<&'static Precompile> {
        match self.overrides.as_ref().and_then(|overrides| overrides.answers.get(address)) {
            Some(Some(source)) => self.fork.get(source),
            Some(None) => None,
            None => self.fork.get(address),
        }
    }
}

impl<CTX: Watched> PrecompileProvider<CTX> for ForkPrecompiles {
    type Output = InterpreterResult;

    /// An EVM is created for one fork and never changes it.
    fn set_spec(&mut self, _: <CTX::Cfg as Cfg>::Spec) -> bool {
        false
    }

    fn run(
        &mut self,
        context: &mut CTX,
        inputs: &CallInputs,
    ) -> Result<Option<InterpreterResult>, String> {
        let Some(precompile) = self.at(&inputs.bytecode_address) else { return Ok(None) };
        let weight = work::precompile(precompile.address());
        let gas = context.watch().precompile_gas(inputs.gas_limit, weight);
        let output = precompile
            .execute(&inputs.input.as_bytes(context), gas, inputs.reservoir)
            .map_err(|error| error.to_string())?;
        context.watch().charge(output.gas_used.saturating_mul(weight));
        if let Some(reason) = output.halt_reason() {
            // A precompile charges gas before it does any work. Running out of less gas than was
            // forwarded means that it needs more time than the run allows.
            if reason.is_oog() && gas < inputs.gas_limit {
                context.watch().stop();
                return Err("a precompile beyond the limit of this run".into());
            }
            let oog = reason.is_oog();
            context.watch().precompile_failure = (!oog).then(|| reason.to_string());
            // revm reports this text as the reason if the precompile is called directly.
            if !reason.is_oog() && context.journal().depth() == 1 {
                context.local_mut().set_precompile_error_context(reason.to_string());
            }
        }
        Ok(Some(precompile_output_to_interpreter_result(output, inputs.gas_limit)))
    }

    fn warm_addresses(&self) -> Box<impl Iterator<Item = Address>> {
        Box::new(self.fork.addresses().copied())
    }

    fn contains(&self, address: &Address) -> bool {
        self.at(address).is_some()
    }
}
