//! The params of eth_simulateV1: blocks with calls and overrides.
//!
//! After the first block that is invalid or exceeds a limit, the remaining blocks are skipped.

use std::sync::Arc;

use super::{
    At, BlockName, BlockOverrides, Call, Index, Member, Overrides, Reading, Refused, arguments,
    block, block_overrides, call::CallTexts, kept, object, optional_array, optional_boolean,
    optional_object, overrides::Accounts, require, text::Text,
};
use crate::message::Message;

/// A call without a gas price.
#[derive(Debug, Clone)]
pub struct PlainCall {
    /// Its gas is ignored.
    pub message: Message,
    /// The requested gas; `None` requests all remaining gas of the block.
    pub gas: Option<u64>,
}

/// A block of plain calls.
#[derive(Debug, Clone)]
pub struct PlainBlock {
    pub overrides: Option<Arc<Overrides>>,
    pub calls: Arc<Vec<PlainCall>>,
}

/// The limits of one simulation.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub blocks: usize,
    pub block_calls: usize,
    pub calls: usize,
}

#[derive(Debug)]
pub struct SimulateParams<'a> {
    pub blocks: Vec<Block>,
    pub trace_transfers: bool,
    pub validation: bool,
    pub full_transactions: bool,
    pub block: Option<BlockName<'a>>,
}

/// A block to simulate.
#[derive(Debug, Default)]
pub struct Block {
    pub calls: Calls,
    pub overrides: Overrides,
    pub changes: Option<BlockOverrides>,
}

#[derive(Debug)]
pub enum Calls {
    /// No call has more fields than sender, recipient, value, data and gas.
    Plain(Vec<PlainCall>),
    Any(Vec<Call>),
}

impl Default for Calls {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

const NAMES: [&str; 2] = ["payload", "block"];

impl<'a> SimulateParams<'a> {
    /// Reads the params. The first `required` arguments must be present.
    ///
    /// # Errors
    /// The first error.
    pub fn read(params: &'a [u8], required: usize, limits: Limits) -> Result<Self, Refused> {
        let (mut payload, mut named) = (None, None);
        let count = arguments(params, NAMES.len(), |text, argument| {
            match argument {
                0 => payload = Payload::read_optional(text, limits)?,
                _ => named = block(text)?,
            }
            Ok(())
        })?;
        require(required, count, &NAMES, &[payload.is_none(), named.is_none()])?;
        let Some(payload) = payload else { return Err(Refused::Params("no payload".into())) };
        Ok(Self {
            blocks: payload.blocks.read()?,
            trace_transfers: payload.trace_transfers,
            validation: payload.validation,
            full_transactions: payload.full_transactions,
            block: named,
        })
    }
}

/// Reads a payload of plain calls and a few state overrides. `None` for any other.
pub fn read_plain(payload: &[u8], limits: Limits) -> Option<Vec<PlainBlock>> {
    let payload = Payload::read_optional(&mut Text::new(payload), limits).ok()??;
    if payload.validation || payload.trace_transfers || payload.full_transactions {
        return None;
    }
    let plain = |block: Block| match block {
        Block { calls: Calls::Plain(calls), overrides, changes: None } if !overrides.is_large() => {
            let overrides = (!overrides.is_empty()).then(|| Arc::new(overrides));
            Some(PlainBlock { overrides, calls: Arc::new(calls) })
        }
        _ => None,
    };
    payload.blocks.read().ok()?.into_iter().map(plain).collect()
}

struct Payload<'a> {
    blocks: Blocks<'a>,
    trace_transfers: bool,
    validation: bool,
    full_transactions: bool,
}

impl<'a> Payload<'a> {
    fn read_optional(text: &mut Text<'a>, limits: Limits) -> Reading<Option<Self>> {
        let mut payload = Self {
            blocks: Blocks::new(limits),
            trace_transfers: false,
            validation: false,
            full_transactions: false,
        };
        let given = optional_object(text, |text, name| {
            let choice = match name.as_ref() {
                b"blockStateCalls" => {
                    let mut blocks = Blocks::new(limits);
                    optional_array(text, |text| blocks.types(text)).at(".blockStateCalls")?;
                    payload.blocks = blocks;
                    return Ok(());
                }
                b"traceTransfers" => &mut payload.trace_transfers,
                b"validation" => &mut payload.validation,
                b"returnFullTransactions" => &mut payload.full_transactions,
                _ => return Ok(text.skip().map(drop)?),
            };
            *choice = optional_boolean(text).at(Member(&name))?.unwrap_or_default();
            Ok(())
        })?;
        Ok(given.then_some(payload))
    }
}

/// The blocks read so far, and the first error.
struct Blocks<'a> {
    limits: Limits,
    blocks: Vec<BlockTexts<'a>>,
    count: usize,
    calls: usize,
    refused: Option<Refused>,
}

impl<'a> Blocks<'a> {
    fn new(limits: Limits) -> Self {
        Self { limits, blocks: Vec::new(), count: 0, calls: 0, refused: None }
    }

    fn types(&mut self, text: &mut Text<'a>) -> Reading<()> {
        let index = self.count;
        self.count += 1;
        if self.refused.is_some() || index >= self.limits.blocks {
            return Ok(text.skip().map(drop)?);
        }
        let block = kept(text, |text| BlockTexts::types(text, self.limits.block_calls))?;
        match in_block(index, block).and_then(|block| self.within_limits(block)) {
            Ok(block) => self.blocks.push(block),
            Err(refused) => self.refused = Some(refused),
        }
        Ok(())
    }

    fn within_limits(&mut self, block: BlockTexts<'a>) -> Result<BlockTexts<'a>, Refused> {
        let Limits { block_calls, calls, .. } = self.limits;
        self.calls += block.count;
        if block.count > block_calls {
            let why = format!("too many calls in block: {} > {block_calls}", block.count);
            return Err(Refused::Limit(why));
        }
        if self.calls > calls {
            return Err(Refused::Limit(format!("too many calls: {} > {calls}", self.calls)));
        }
        Ok(block)
    }

    fn read(self) -> Result<Vec<Block>, Refused> {
        if self.count == 0 {
            return Err(Refused::Params("empty input".into()));
        }
        if self.count > self.limits.blocks {
            return Err(Refused::Limit("too many blocks".into()));
        }
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let blocks = self.blocks.into_iter().enumerate();
        blocks.map(|(index, block)| in_block(index, block.read())).collect()
    }
}

fn in_block<T>(index: usize, reading: Reading<T>) -> Result<T, Refused> {
    reading.at(Index(index)).at(".blockStateCalls").map_err(|refusal| refusal.of(0))
}

/// A block with checked types. Its accounts are not checked yet.
#[derive(Default)]
struct BlockTexts<'a> {
    calls: Vec<CallTexts<'a>>,
    /// Includes calls beyond the limit, which are not kept.
    count: usize,
    accounts: Option<Accounts<'a>>,
    changes: Option<block_overrides::Texts<'a>>,
}

impl<'a> BlockTexts<'a> {
    fn types(text: &mut Text<'a>, most: usize) -> Reading<Self> {
        let (mut block, mut calls) = (Self::default(), None);
        object(text, |text, name| {
            match name.as_ref() {
                b"calls" => calls = Some(kept(text, |text| call_types(text, most))?),
                b"stateOverrides" => {
                    block.accounts = Accounts::read_optional(text).at(".stateOverrides")?
                }
                b"blockOverrides" => {
                    let changes = block_overrides::Texts::read_optional(text);
                    block.changes = changes.at(".blockOverrides")?;
                }
                _ => drop(text.skip()?),
            }
            Ok(())
        })?;
        if let Some(calls) = calls {
            (block.calls, block.count) = calls.at(".calls")?;
        }
        Ok(block)
    }

    fn read(self) -> Reading<Block> {
        let calls = read_calls(self.calls)?;
        let mut overrides = match self.accounts {
            Some(accounts) => accounts.read().at(".stateOverrides")?,
            None => Overrides::default(),
        };
        let changes = match self.changes {
            Some(changes) => changes.read(&mut overrides).at(".blockOverrides")?,
            None => None,
        };
        Ok(Block { calls, overrides, changes })
    }
}

/// The calls of a block up to the first one beyond the limit, and their total number.
fn call_types<'a>(text: &mut Text<'a>, most: usize) -> Reading<(Vec<CallTexts<'a>>, usize)> {
    let (mut calls, mut count) = (Vec::new(), 0);
    optional_array(text, |text| {
        count += 1;
        match count > most + 1 {
            true => drop(text.skip()?),
            false => calls.push(CallTexts::read_object(text)?),
        }
        Ok(())
    })?;
    Ok((calls, count))
}

fn read_calls(given: Vec<CallTexts<'_>>) -> Reading<Calls> {
    let read =
        |(index, call): (usize, CallTexts<'_>)| call.read(true).at(Index(index)).at(".calls");
    let calls: Vec<Call> = given.into_iter().enumerate().map(read).collect::<Reading<_>>()?;
    if calls.iter().any(|call| call.rest.is_some()) {
        return Ok(Calls::Any(calls));
    }
    Ok(Calls::Plain(calls.into_iter().map(plain).collect()))
}

fn plain(call: Call) -> PlainCall {
    let Call { from, to, value, data, gas, .. } = call;
    PlainCall { message: Message { from, to, value, data, ..Message::default() }, gas }
}
