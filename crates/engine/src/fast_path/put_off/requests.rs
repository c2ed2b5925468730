//! The commands that are asked most, recognised in one pass over their bytes.
//!
//! One slot or one balance that is set, a snapshot, and the way back to one. As with other
//! requests of the fast path, what is not recognised is no judgement: the long way reads it anew.

use alloy_primitives::{Address, B256};

use crate::{
    fast_path::requests::{once, recognised, scalar},
    params::{
        hex,
        text::{Malformed, Text},
    },
};

type Result<T> = std::result::Result<T, Malformed>;

/// A request, and its id as it was sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'b> {
    pub id: &'b [u8],
    pub named: Named,
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    SetBalance { address: Address, balance: B256 },
    SetSlot { address: Address, slot: B256, value: B256 },
    TakeSnapshot,
    Revert { id: u64 },
}

/// The place of a name in `NAMES`.
pub type Named = usize;

/// The names by which commands are recognised, those of one command one after the other.
pub const NAMES: [&str; 8] = [
    "anvil_setBalance",
    "hardhat_setBalance",
    "anvil_setStorageAt",
    "hardhat_setStorageAt",
    "evm_snapshot",
    "anvil_snapshot",
    "evm_revert",
    "anvil_revert",
];

/// The one request of a body.
pub fn read(body: &[u8]) -> Option<Asked<'_>> {
    let mut text = Text::new(body);
    let asked = request(&mut text).ok()?;
    text.end().ok()?;
    Some(asked)
}

fn request<'b>(text: &mut Text<'b>) -> Result<Asked<'b>> {
    let (mut version, mut id, mut method, mut params) = (None, None, None, None);
    text.object(|text, name| match name.as_ref() {
        b"jsonrpc" => once(&mut version, text.plain_string()?),
        b"id" => once(&mut id, scalar(text)?),
        b"method" => once(&mut method, text.plain_string()?),
        b"params" => once(&mut params, strings(text)?),
        _ => Err(Malformed),
    })?;
    recognised(version == Some(b"2.0"))?;
    let (id, method) = id.zip(method).ok_or(Malformed)?;
    let named = NAMES.iter().position(|name| name.as_bytes() == method).ok_or(Malformed)?;
    Ok(Asked { id, named, command: command(named, params.unwrap_or_default())? })
}

/// Up to three strings.
fn strings<'b>(text: &mut Text<'b>) -> Result<[Option<&'b [u8]>; 3]> {
    let mut found = [None; 3];
    text.array(|text, place| {
        *found.get_mut(place).ok_or(Malformed)? = Some(text.plain_string()?);
        Ok(())
    })?;
    Ok(found)
}

fn command(named: Named, params: [Option<&[u8]>; 3]) -> Result<Command> {
    let address = |text| hex::fixed(text).map(Address::new).ok_or(Malformed);
    match (named / 2, params) {
        (0, [Some(who), Some(balance), None]) => {
            Ok(Command::SetBalance { address: address(who)?, balance: number(balance)? })
        }
        (1, [Some(who), Some(slot), Some(value)]) => Ok(Command::SetSlot {
            address: address(who)?,
            slot: number(slot)?,
            value: hex::fixed(value).map(B256::new).ok_or(Malformed)?,
        }),
        (2, [None, None, None]) => Ok(Command::TakeSnapshot),
        (3, [Some(id), None, None]) => {
            hex::number(id).map(|id| Command::Revert { id }).map_err(|_| Malformed)
        }
        _ => Err(Malformed),
    }
}

/// A number in hex, with leading zeros or without.
fn number(text: &[u8]) -> Result<B256> {
    match hex::fixed(text) {
        Some(word) => Ok(B256::new(word)),
        None => hex::quantity(text, 256).map(B256::from).map_err(|_| Malformed),
    }
}
