//! The EVM with revm's own handler.

use std::thread::LocalKey;

use alloy_primitives::{Address, Bytes};
use op_revm::OpHaltReason;
use revm::{
    Inspector,
    context::TxEnv,
    context_interface::result::{EVMError, ExecutionResult},
    handler::{Handler, MainnetHandler, SystemCallTx},
    inspector::InspectorHandler,
    primitives::hardfork::SpecId,
};

use super::{Ctx, Inner, Inspected, Machine, Stock, Stocked, in_words, new_inner};
use crate::{
    error::{Error, Result},
    evm::{rules::Rules, transfers::Collector},
};

pub(crate) struct Ethereum<I = Collector>(Inner<TxEnv, SpecId, (), I>);

#[derive(Clone)]
pub(crate) enum EthereumInput {
    Transaction(TxEnv),
    /// A system call: no fee, no nonce, no checks.
    System(TxEnv),
}

impl EthereumInput {
    pub(crate) fn system(contract: Address, data: Bytes) -> Self {
        Self::System(TxEnv::new_system_tx(contract, data))
    }
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
    type Transaction = TxEnv;
    type Spec = SpecId;
    type Chain = ();
    type Inspector = I;

    fn new(rules: Rules) -> Result<Self> {
        Ok(Self(new_inner(rules, rules.spec_id())))
    }

    fn evm(&mut self) -> &mut Inner<TxEnv, SpecId, (), I> {
        &mut self.0
    }

    fn transaction(input: &mut EthereumInput) -> &mut TxEnv {
        let (EthereumInput::Transaction(transaction) | EthereumInput::System(transaction)) = input;
        transaction
    }

    fn execute(
        &mut self,
        input: &mut EthereumInput,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>> {
        let mut handler = MainnetHandler::<_, EVMError<Error>, _>::default();
        let result = match input {
            EthereumInput::Transaction(_) if inspect => handler.inspect_run(&mut self.0),
            EthereumInput::Transaction(_) => handler.run(&mut self.0),
            EthereumInput::System(_) => handler.run_system_call(&mut self.0),
        };
        result.map(|result| result.map_haltreason(OpHaltReason::Base)).map_err(in_words)
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
