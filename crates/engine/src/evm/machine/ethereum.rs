//! The EVM with revm's own handler.

use std::thread::LocalKey;

use alloy_primitives::{Address, Bytes};
use op_revm::OpHaltReason;
use revm::{
    ExecuteEvm, InspectEvm, Inspector, SystemCallEvm,
    context::TxEnv,
    context_interface::result::{EVMError, ExecutionResult},
    primitives::hardfork::SpecId,
    state::EvmState,
};

use super::{
    Ctx, Inner, Inspected, Machine, Setup, Stock, Stocked, Unloaded, in_words, load_inner,
    new_inner, unload_inner,
};
use crate::{
    error::{Error, Result},
    evm::{overlay::Overlay, rules::Rules, transfers::Collector},
};

pub(crate) struct Ethereum<I = Collector>(Inner<TxEnv, SpecId, (), I>);

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "moved once per run, never stored")]
pub(crate) enum EthereumInput {
    Transaction(TxEnv),
    /// A system call: no fee, no nonce, no checks.
    System {
        contract: Address,
        data: Bytes,
    },
}

thread_local! {
    static STOCK: Stock<Ethereum> = Stock::default();
}

impl Stocked for Ethereum {
    fn stock() -> &'static LocalKey<Stock<Self>> {
        &STOCK
    }
}

impl<I: Inspector<Ctx<TxEnv, SpecId, ()>> + Default + 'static> Machine for Ethereum<I> {
    type Input = EthereumInput;
    type Inspector = I;

    fn new(rules: Rules) -> Result<Self> {
        Ok(Self(new_inner(rules, rules.spec_id())))
    }

    fn load(&mut self, overlay: Overlay, setup: Setup<'_>, inspector: I) {
        load_inner(&mut self.0, overlay, setup, inspector);
    }

    fn execute(
        &mut self,
        input: EthereumInput,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>> {
        let result = match input {
            EthereumInput::Transaction(tx) if inspect => self.0.inspect_one_tx(tx),
            EthereumInput::Transaction(tx) => self.0.transact_one(tx),
            EthereumInput::System { contract, data } => self.0.system_call_one(contract, data),
        };
        result.map(|result| result.map_haltreason(OpHaltReason::Base)).map_err(in_words)
    }

    fn finalize(&mut self) -> EvmState {
        self.0.finalize()
    }

    fn unload(&mut self) -> (Unloaded, I) {
        unload_inner(&mut self.0)
    }
}

impl<I: Inspector<Ctx<TxEnv, SpecId, ()>> + Default + 'static> Inspected for Ethereum<I> {
    type Kept = Ethereum;

    fn inspecting(kept: Ethereum) -> Self {
        Self(kept.0.with_inspector(I::default()))
    }

    fn kept(self) -> Ethereum {
        Ethereum(self.0.with_inspector(Collector::default()))
    }
}
