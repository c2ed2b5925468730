//! The EVM with Optimism's handler.
//!
//! op-revm caches the L1 fee values until the block number changes. On a reused EVM the same number
//! may belong to a different state. Here every run sets its own values, which are cleared
//! afterwards.

use std::thread::LocalKey;

use op_revm::{L1BlockInfo, OpEvm, OpHaltReason, OpSpecId, OpTransaction};
use revm::{
    ExecuteEvm, InspectEvm, Inspector,
    context::TxEnv,
    context_interface::result::{EVMError, ExecutionResult},
    handler::instructions::EthInstructions,
    interpreter::interpreter::EthInterpreter,
    state::EvmState,
};

use super::{
    Ctx, Inspected, Machine, Setup, Stock, Stocked, Unloaded, in_words, load_inner, new_inner,
    unload_inner,
};
use crate::{
    error::{Error, Result},
    evm::{overlay::Overlay, precompiles::ForkPrecompiles, rules::Rules, transfers::Collector},
};

type Context = Ctx<OpTransaction<TxEnv>, OpSpecId, L1BlockInfo>;

pub(crate) struct Optimism<I = Collector>(
    OpEvm<Context, I, EthInstructions<EthInterpreter, Context>, ForkPrecompiles>,
);

#[derive(Clone)]
pub(crate) struct OptimismInput {
    pub(crate) transaction: OpTransaction<TxEnv>,
    /// The L1 fee parameters. `None` for deposits, which pay no fee.
    pub(crate) l1: Option<L1BlockInfo>,
}

thread_local! {
    static STOCK: Stock<Optimism> = Stock::default();
}

impl Stocked for Optimism {
    fn stock() -> &'static LocalKey<Stock<Self>> {
        &STOCK
    }
}

impl<I: Inspector<Context> + Default + 'static> Machine for Optimism<I> {
    type Input = OptimismInput;
    type Inspector = I;

    fn new(rules: Rules) -> Result<Self> {
        match rules {
            Rules::Optimism(spec) => Ok(Self(OpEvm(new_inner(rules, spec)))),
            Rules::Ethereum(spec) => Err(Error::Execution(format!("{spec:?} is not of Optimism"))),
        }
    }

    fn load(&mut self, overlay: Overlay, setup: Setup<'_>, inspector: I) {
        load_inner(&mut self.0.0, overlay, setup, inspector);
    }

    fn execute(
        &mut self,
        input: OptimismInput,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>> {
        let context = &mut self.0.0.ctx;
        // With this number op-revm treats the values as those of the block and does not read them.
        let l2_block = Some(context.block.number);
        context.chain = L1BlockInfo { l2_block, ..input.l1.unwrap_or_default() };
        let result = match inspect {
            true => self.0.inspect_one_tx(input.transaction),
            false => self.0.transact_one(input.transaction),
        };
        result.map_err(in_words)
    }

    fn finalize(&mut self) -> EvmState {
        self.0.finalize()
    }

    fn unload(&mut self) -> (Unloaded, I) {
        self.0.0.ctx.chain = L1BlockInfo::default();
        unload_inner(&mut self.0.0)
    }
}

impl<I: Inspector<Context> + Default + 'static> Inspected for Optimism<I> {
    type Kept = Optimism;

    fn inspecting(kept: Optimism) -> Self {
        Self(OpEvm(kept.0.0.with_inspector(I::default())))
    }

    fn kept(self) -> Optimism {
        Optimism(OpEvm(self.0.0.with_inspector(Collector::default())))
    }
}
