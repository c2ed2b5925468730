//! The params of eth_simulateV1: blocks with the calls and overrides they are asked to hold.
//!
//! Blocks after the first one with too many calls are not looked at.

use super::{
    At, BlockName, BlockOverrides, Call, Index, Member, Overrides, Reading, Refusal, Refused,
    arguments, block, block_overrides,
    call::CallTexts,
    object, optional_array, optional_boolean, optional_object, require,
    text::{Kind, Text},
};
use crate::{evm::message::Message, simulate::body::PlainCall};

/// How much one simulation may ask for.
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

/// A block to be simulated.
#[derive(Debug, Default)]
pub struct Block {
    pub calls: Calls,
    pub overrides: Overrides,
    pub changes: Option<BlockOverrides>,
}

/// The calls of a block.
#[derive(Debug)]
pub enum Calls {
    /// All of them say no more than who calls whom with what.
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
    /// Reads the params; the first `required` arguments must be there.
    ///
    /// # Errors
    /// The first reason to refuse them.
    pub fn read(params: &'a [u8], required: usize, limits: Limits) -> Result<Self, Refused> {
        let (mut payload, mut named) = (None, None);
        let count = arguments(params, NAMES.len(), |text, argument| {
            match argument {
                0 => payload = Payload::read_optional(text)?,
                _ => named = block(text)?,
            }
            Ok(())
        })?;
        require(required, count, &NAMES, &[payload.is_none(), named.is_none()])?;
        let Some(payload) = payload else { return Err(Refused::Params("no payload".into())) };
        Ok(Self {
            blocks: read_blocks(&payload.blocks, limits)?,
            trace_transfers: payload.trace_transfers,
            validation: payload.validation,
            full_transactions: payload.full_transactions,
            block: named,
        })
    }
}

#[derive(Default)]
struct Payload<'a> {
    blocks: Vec<&'a [u8]>,
    trace_transfers: bool,
    validation: bool,
    full_transactions: bool,
}

impl<'a> Payload<'a> {
    fn read_optional(text: &mut Text<'a>) -> Reading<Option<Self>> {
        let mut payload = Self::default();
        let given = optional_object(text, |text, name| {
            let choice = match name.as_ref() {
                b"blockStateCalls" => {
                    let blocks = optional_array(text, |text| Ok(text.skip()?));
                    payload.blocks = blocks.at(".blockStateCalls")?.unwrap_or_default();
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

fn read_blocks(given: &[&[u8]], limits: Limits) -> Result<Vec<Block>, Refused> {
    if given.is_empty() {
        return Err(Refused::Params("empty input".into()));
    }
    if given.len() > limits.blocks {
        return Err(Refused::Limit("too many blocks".into()));
    }
    let (mut blocks, mut total) = (Vec::with_capacity(given.len()), 0);
    for (index, text) in given.iter().enumerate() {
        let block = BlockTexts::types(&mut Text::new(text), limits.block_calls);
        let block = in_block(index, block)?;
        let (count, most) = (block.count, limits.block_calls);
        total += count;
        if count > most {
            return Err(Refused::Limit(format!("too many calls in block: {count} > {most}")));
        }
        if total > limits.calls {
            return Err(Refused::Limit(format!("too many calls: {total} > {}", limits.calls)));
        }
        blocks.push(block);
    }
    let blocks = blocks.into_iter().enumerate();
    blocks.map(|(index, block)| in_block(index, block.read())).collect()
}

fn in_block<T>(index: usize, reading: Reading<T>) -> Result<T, Refused> {
    reading.at(Index(index)).at(".blockStateCalls").map_err(|refusal| refusal.of(0))
}

/// A block whose types are right; accounts are not looked at.
#[derive(Default)]
struct BlockTexts<'a> {
    calls: Vec<CallTexts<'a>>,
    /// Also of calls that are left out, after one too many.
    count: usize,
    accounts: Option<&'a [u8]>,
    changes: Option<block_overrides::Texts<'a>>,
}

impl<'a> BlockTexts<'a> {
    fn types(text: &mut Text<'a>, most: usize) -> Reading<Self> {
        let (mut block, mut calls) = (Self::default(), None);
        object(text, |text, name| {
            match name.as_ref() {
                b"calls" => calls = Some(text.skip()?),
                b"stateOverrides" => {
                    block.accounts = Overrides::span(text).at(".stateOverrides")?
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
            block.call_types(&mut Text::new(calls), most).at(".calls")?;
        }
        Ok(block)
    }

    fn call_types(&mut self, text: &mut Text<'a>, most: usize) -> Reading<()> {
        if text.kind()? != Kind::Array {
            return optional_array(text, |_| Ok(())).map(drop);
        }
        text.array(|text, index| {
            self.count = index + 1;
            if index > most {
                return Ok(text.skip().map(drop)?);
            }
            self.calls.push(CallTexts::read_object(text).at(Index(index))?);
            Ok::<(), Box<Refusal>>(())
        })
    }

    fn read(self) -> Reading<Block> {
        let calls = read_calls(self.calls)?;
        let mut overrides = match self.accounts {
            Some(text) => Overrides::read(text).at(".stateOverrides")?,
            None => Overrides::default(),
        };
        let changes = match self.changes {
            Some(changes) => changes.read(&mut overrides).at(".blockOverrides")?,
            None => None,
        };
        Ok(Block { calls, overrides, changes })
    }
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
