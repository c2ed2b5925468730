//! A simulation of plain calls, block after block, in one operation.
//!
//! Each block has the same order as the separate steps: overrides, system calls, calls, seal. A run
//! pauses between calls when its slice is over, and continues later. It stops if a decision by the
//! caller is needed or a step takes too long; the caller then discards it and takes the separate
//! steps.

use std::time::Instant;

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::{
    codec::header::Fields,
    deadline::Limits,
    error::{Error, Result},
    evm::{
        env::Env,
        execute::{self, Options},
        overlay::Overlay,
    },
    params::PlainBlock,
    simulate::body::{Body, CallsBudget, SealedBody},
};

/// The first block after a base, and the rules by which further blocks follow it.
#[derive(Debug, Clone)]
pub struct BlockTemplate {
    pub env: Env,
    /// The fields at the start of the block, with its parent's hash.
    pub header: Fields,
    /// The transaction type that plain calls are shown as.
    pub tx_type: u8,
    /// The seconds between blocks.
    pub block_time: u64,
    /// The system contracts to call first, with their input; `None` is the hash of the parent.
    pub system_calls: Vec<(Address, Option<B256>)>,
    /// The size that the data footprint counts for each call, and the contract and slot that have
    /// its price (Jovian).
    pub footprint: Option<Footprint>,
    pub has_withdrawals: bool,
}

/// The data footprint of a block of calls on OP chains from Jovian on: `size` for each call, times
/// the scalar in the storage of `contract`.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    pub size: u64,
    pub contract: Address,
    pub slot: U256,
    /// The lowest bit of the 16-bit scalar in the slot.
    pub shift: usize,
}

/// What remains of the bounds of a request.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Gas of all calls together.
    pub gas: u64,
    /// Bytes that all calls may return.
    pub output: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Finished,
    /// The slice is over.
    Paused,
    /// The simulation cannot be continued here.
    Stopped,
}

#[derive(Debug)]
pub struct PlainSimulation {
    overlay: Overlay,
    template: BlockTemplate,
    blocks: Vec<PlainBlock>,
    budget: Budget,
    sealed: Vec<SealedBody>,
    /// The block in progress, once its first steps are done.
    body: Option<Body>,
}

impl PlainSimulation {
    /// A simulation on the state of `overlay`. Each block is the template of the next one.
    pub fn new(
        mut overlay: Overlay,
        template: BlockTemplate,
        blocks: Vec<PlainBlock>,
        budget: Budget,
    ) -> Self {
        let header = &template.header;
        overlay.set_block_hash(header.number.wrapping_sub(1), header.parent_hash);
        let sealed = Vec::with_capacity(blocks.len());
        Self { overlay, template, blocks, budget, sealed, body: None }
    }

    /// Runs until `until`, at least one call. `limits` apply to each step.
    ///
    /// # Errors
    ///
    /// The error of a state read, and `StateMissing` if calls of a block missed state.
    pub fn run(&mut self, until: Option<Instant>, limits: &Limits) -> Result<Progress> {
        while self.sealed.len() < self.blocks.len() {
            let body = match self.body.take() {
                Some(body) => body,
                None if self.begin_block(limits)? => Body::default(),
                None => return Ok(Progress::Stopped),
            };
            let progress = self.run_calls(body, until, limits)?;
            if progress != Progress::Finished {
                return Ok(progress);
            }
            let is_over = || until.is_some_and(|until| Instant::now() >= until);
            if self.sealed.len() < self.blocks.len() && is_over() {
                return Ok(Progress::Paused);
            }
        }
        Ok(Progress::Finished)
    }

    /// The finished blocks.
    pub fn take(&mut self) -> Vec<SealedBody> {
        std::mem::take(&mut self.sealed)
    }

    /// Applies overrides and executes system calls. Returns false if this has to be done in
    /// separate steps.
    fn begin_block(&mut self, limits: &Limits) -> Result<bool> {
        let Self { overlay, template, blocks, sealed, .. } = self;
        let env = &template.env;
        if let Some(overrides) = &blocks[sealed.len()].overrides
            && overrides.apply_to(overlay, env.rules)?.is_some()
        {
            return Ok(false);
        }
        for (contract, data) in &template.system_calls {
            let data = data.unwrap_or(template.header.parent_hash);
            let (data, limits) = (Bytes::copy_from_slice(data.as_slice()), limits.clone());
            match execute::system_call(overlay, env, *contract, data, limits, None) {
                Err(Error::DeadlineExceeded) => return Ok(false),
                called => drop(called?),
            }
        }
        Ok(true)
    }

    /// Executes the calls of the block that are left, and seals it after the last.
    fn run_calls(
        &mut self,
        mut body: Body,
        until: Option<Instant>,
        limits: &Limits,
    ) -> Result<Progress> {
        let Self { overlay, template, blocks, budget, sealed, .. } = self;
        let calls = &blocks[sealed.len()].calls[body.len()..];
        let block = template.env.gas_limit().saturating_sub(body.gas_used());
        let calls_budget = CallsBudget { block, request: budget.gas, until };
        let options = || Options {
            limits: limits.clone(),
            check_base_fee: false,
            check_block_gas_limit: true,
            ..Options::default()
        };
        let (env, tx_type) = (&template.env, template.tx_type);
        let ran = body.run_plain(overlay, env, calls, tx_type, calls_budget, false, options)?;
        budget.gas = budget.gas.saturating_sub(ran.gas_used);
        if body.output_size() > budget.output {
            return Ok(Progress::Stopped);
        }
        if ran.calls < calls.len() {
            let is_paused = ran.calls > 0 && until.is_some_and(|until| Instant::now() >= until);
            self.body = Some(body);
            return Ok(if is_paused { Progress::Paused } else { Progress::Stopped });
        }
        budget.output -= body.output_size();
        self.seal(body)?;
        Ok(Progress::Finished)
    }

    fn seal(&mut self, body: Body) -> Result<()> {
        let Self { overlay, template, sealed, .. } = self;
        let mut header = template.header.clone();
        if let Some(Footprint { size, contract, slot, shift }) = template.footprint {
            let scalar = (overlay.storage(&contract, &slot)? >> shift) & U256::from(0xffff);
            let used = (body.len() as u64).saturating_mul(size).saturating_mul(scalar.to());
            header.blob_gas_used = Some(used);
        }
        let block = body.seal(header, template.has_withdrawals.then(Vec::new))?;
        let (number, hash) = (block.block.header.number, block.block.hash);
        overlay.set_block_hash(number, hash);
        sealed.push(block);
        template.follow(hash);
        Ok(())
    }
}

impl BlockTemplate {
    /// Becomes the template of the block after one with this hash.
    fn follow(&mut self, parent_hash: B256) {
        let header = &mut self.header;
        header.parent_hash = parent_hash;
        header.number += 1;
        header.timestamp += self.block_time;
        self.env.set_position(header.number, header.timestamp);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use alloy_primitives::address;
    use revm::bytecode::opcode as op;

    use super::*;
    use crate::{
        message::Message,
        params::{Overrides, PlainCall},
        testing::{Asm, MemoryState, env, ethereum},
    };

    const SENDER: Address = Address::repeat_byte(0x11);
    const STORES: Address = Address::repeat_byte(0xc0);
    const IDENTITY: Address = address!("0x0000000000000000000000000000000000000004");
    const TOLD: B256 = B256::repeat_byte(7);

    /// Stores the first word of its input in slot 0.
    fn overlay() -> Overlay {
        let store = Asm::default().push(0_u64).op(op::CALLDATALOAD).push(0_u64).op(op::SSTORE);
        MemoryState::default().contract(STORES, store).overlay()
    }

    fn call(value: u64, gas: u64) -> PlainCall {
        let (to, value) = (Some(Address::ZERO), U256::from(value));
        let message = Message { from: SENDER, to, value, ..Message::default() };
        PlainCall { message, gas: Some(gas) }
    }

    fn block(overrides: &str, calls: &[PlainCall]) -> PlainBlock {
        let overrides = Some(Arc::new(Overrides::of(&format!("{{{overrides}}}"))));
        PlainBlock { overrides, calls: Arc::new(calls.to_vec()) }
    }

    fn simulation(blocks: Vec<PlainBlock>, output: usize) -> PlainSimulation {
        let mut env = (*env(ethereum("Cancun"))).clone();
        env.set_position(1, 12);
        let header = Fields {
            number: 1,
            timestamp: 12,
            parent_hash: B256::repeat_byte(9),
            gas_limit: env.gas_limit(),
            ..Fields::default()
        };
        let template = BlockTemplate {
            env,
            header,
            tx_type: 2,
            block_time: 12,
            system_calls: vec![(STORES, Some(TOLD))],
            footprint: None,
            has_withdrawals: false,
        };
        PlainSimulation::new(overlay(), template, blocks, Budget { gas: 50_000, output })
    }

    /// The gas used by each block, and the final value of slot 0; `None` if the run stops.
    fn run(limits: &Limits, blocks: Vec<PlainBlock>) -> Option<(Vec<u64>, U256)> {
        let mut simulation = simulation(blocks, 0);
        if simulation.run(None, limits).expect("no failure") == Progress::Stopped {
            return None;
        }
        assert_eq!(simulation.overlay.block_hash(0), Ok(B256::repeat_byte(9)));
        let kept = simulation.overlay.storage(&STORES, &U256::ZERO).expect("a slot");
        let used = simulation.take().iter().map(|block| block.block.header.gas_used).collect();
        Some((used, kept))
    }

    fn unlimited(overrides: &str, calls: &[PlainCall]) -> Option<(Vec<u64>, U256)> {
        run(&Limits::default(), vec![block(overrides, calls)])
    }

    fn funds(balance: u64) -> String {
        format!(r#""{SENDER}":{{"balance":"{balance:#x}"}}"#)
    }

    fn code(of: Address, code: &str) -> String {
        format!(r#""{of}":{{"code":"{code}"}}"#)
    }

    #[test]
    fn overrides_come_before_system_calls_and_those_before_calls() {
        let told = U256::from_be_bytes(TOLD.0);
        let calls = [call(1, 21_000), call(2, 29_000)];
        assert_eq!(unlimited("", &[]), Some((vec![0], told)));
        assert_eq!(unlimited(&funds(3), &calls), Some((vec![42_000], told)));
        let without_code = funds(3) + "," + &code(STORES, "0x");
        assert_eq!(unlimited(&without_code, &calls), Some((vec![42_000], U256::ZERO)));
    }

    #[test]
    fn a_run_stops_where_the_caller_has_to_decide() {
        assert_eq!(unlimited(&funds(2), &[call(3, 21_000)]), None);
        assert_eq!(unlimited("", &[call(0, 20_999)]), None);
        assert_eq!(unlimited("", &[call(0, u64::MAX)]), None);
        assert_eq!(unlimited(&code(IDENTITY, "0x"), &[]), None);
    }

    #[test]
    fn a_run_stops_at_a_long_step() {
        let late = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        let loops = format!("0x{:x}{:x}{:x}", op::JUMPDEST, op::PUSH0, op::JUMP);
        assert_eq!(run(&late, vec![block(&code(STORES, &loops), &[])]), None);
        assert!(run(&late, vec![block("", &[call(0, 21_000)])]).is_some());
    }

    #[test]
    fn blocks_follow_each_other_and_share_gas() {
        let blocks = vec![block(&funds(9), &[call(1, 21_000)]), block("", &[call(1, 21_000)])];
        let mut simulation = simulation(blocks.clone(), 0);
        assert_eq!(simulation.run(None, &Limits::default()), Ok(Progress::Finished));
        let sealed = simulation.take();
        let [first, second] = [0, 1].map(|at| &sealed[at].block.header);
        assert_eq!((second.number, second.timestamp), (2, 24));
        assert_eq!(second.parent_hash, first.hash());
        assert_eq!(simulation.overlay.block_hash(2), Ok(second.hash()));
        // The third call would have 8,000 gas of the request left.
        assert_eq!(run(&Limits::default(), [blocks.clone(), blocks].concat()), None);
    }

    #[test]
    fn a_paused_run_continues_with_the_same_result() {
        let calls = [call(1, 10_000_000), call(0, 21_000)];
        let blocks = || vec![block(&funds(9), &calls[..1]), block("", &calls[1..])];
        let mut paused = simulation(blocks(), 0);
        let over = Some(Instant::now() - Duration::from_secs(1));
        let mut pauses = 0;
        while paused.run(over, &Limits::default()) == Ok(Progress::Paused) {
            pauses += 1;
        }
        assert_eq!(pauses, 1);
        let mut whole = simulation(blocks(), 0);
        assert_eq!(whole.run(None, &Limits::default()), Ok(Progress::Finished));
        let hashes = |sealed: Vec<SealedBody>| -> Vec<B256> {
            sealed.iter().map(|each| each.block.hash).collect()
        };
        assert_eq!(hashes(paused.take()), hashes(whole.take()));
    }

    #[test]
    fn a_run_stops_if_calls_return_too_much() {
        let returns = format!("0x{:x}20{:x}{:x}", op::PUSH1, op::PUSH0, op::RETURN);
        let message = Message { from: SENDER, to: Some(STORES), ..Message::default() };
        let calls = [PlainCall { message, gas: Some(30_000) }];
        for (output, progress) in [(31, Progress::Stopped), (32, Progress::Finished)] {
            let mut simulation = simulation(vec![block(&code(STORES, &returns), &calls)], output);
            assert_eq!(simulation.run(None, &Limits::default()), Ok(progress));
        }
    }
}
