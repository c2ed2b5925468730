//! The EVM with Optimism's handler.
//!
//! op-revm caches the L1 fee values until the block number changes. On a reused EVM the same number
//! may belong to a different state. Here every run sets its own values, which are cleared
//! afterwards.

use std::thread::LocalKey;

use op_revm::{
    L1BlockInfo, OpEvm, OpHaltReason, OpSpecId, OpTransaction, api::exec::OpError,
    handler::OpHandler,
};
use revm::{
    Inspector,
    context::TxEnv,
    context_interface::result::{EVMError, ExecutionResult},
    handler::{Handler, instructions::EthInstructions},
    inspector::InspectorHandler,
    interpreter::interpreter::EthInterpreter,
};

use super::{Ctx, Inner, Inspected, Machine, Stock, Stocked, in_words, new_inner};
use crate::{
    error::{Error, Result},
    evm::{precompiles::ForkPrecompiles, rules::Rules, transfers::Collector},
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
    type Transaction = OpTransaction<TxEnv>;
    type Spec = OpSpecId;
    type Chain = L1BlockInfo;
    type Inspector = I;

    fn new(rules: Rules) -> Result<Self> {
        match rules {
            Rules::Optimism(spec) => Ok(Self(OpEvm(new_inner(rules, spec)))),
            Rules::Ethereum(spec) => Err(Error::Execution(format!("{spec:?} is not of Optimism"))),
        }
    }

    fn evm(&mut self) -> &mut Inner<OpTransaction<TxEnv>, OpSpecId, L1BlockInfo, I> {
        &mut self.0.0
    }

    fn transaction(input: &mut OptimismInput) -> &mut OpTransaction<TxEnv> {
        &mut input.transaction
    }

    fn execute(
        &mut self,
        input: &mut OptimismInput,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>> {
        let context = &mut self.0.0.ctx;
        // With this number op-revm treats the values as those of the block and does not read them.
        let l2_block = Some(context.block.number);
        context.chain = L1BlockInfo { l2_block, ..input.l1.take().unwrap_or_default() };
        let mut handler = OpHandler::<_, OpError<Context>, _>::new();
        let result = match inspect {
            true => handler.inspect_run(&mut self.0),
            false => handler.run(&mut self.0),
        };
        self.0.0.ctx.chain = L1BlockInfo::default();
        result.map_err(in_words)
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
