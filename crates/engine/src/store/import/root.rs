//! The second stage: computes the root and all nodes from records in the order of the tries.
//!
//! The key of a leaf is the hash of an address, then 0 for the account, or 1 and the hash of a
//! slot. So an account precedes its slots, and one pass is enough, with one open branch for each
//! level of two tries.

use std::cell::RefCell;
use std::path::Path;

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_trie::Nibbles;

use super::progress::{ImportOptions, Progress};
use super::reader::StatedRoot;
use super::runs::{Record, Sorter};
use crate::error::{Error, Result};
use crate::state::AccountState;
use crate::store::entry;
use crate::trie::bulk_root::BulkRoot;
use crate::trie::{Owner, leaf, node_key};

const ACCOUNT: u8 = 0;
const SLOT: u8 = 1;
const HASH: usize = 32;

/// The leaves of a dump: each account with its slots.
pub struct LeafSorter(Sorter);

/// Adds slots of one account.
pub struct AccountLeaves<'a> {
    sorter: &'a mut Sorter,
    hash: B256,
}

impl LeafSorter {
    pub fn new(folder: &Path, limit: usize) -> Self {
        Self(Sorter::new(folder, "leaves", limit))
    }

    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// `row` is the account's entry in the flat table.
    pub fn account(
        &mut self,
        line: u64,
        address: &Address,
        row: &[u8],
        stated: StatedRoot,
    ) -> Result<AccountLeaves<'_>> {
        let hash = keccak256(address);
        let mut value = line.to_be_bytes().to_vec();
        value.extend_from_slice(address.as_slice());
        value.push(u8::from(stated.is_some()));
        value.extend_from_slice(stated.unwrap_or_default().as_slice());
        value.extend_from_slice(row);
        self.0.push(&[hash.as_slice(), &[ACCOUNT]].concat(), &value)?;
        Ok(AccountLeaves { sorter: &mut self.0, hash })
    }
}

impl AccountLeaves<'_> {
    /// `value` without leading zeros.
    pub fn slot(&mut self, slot: &U256, value: &[u8]) -> Result<()> {
        let key = keccak256(slot.to_be_bytes::<HASH>());
        self.sorter.push(&[self.hash.as_slice(), &[SLOT], key.as_slice()].concat(), value)
    }
}

/// An account whose slots are being read.
struct OpenAccount {
    line: u64,
    address: Address,
    stated: StatedRoot,
    hash: B256,
    account: AccountState,
}

impl OpenAccount {
    fn bad(&self, why: &str) -> Error {
        Error::BadState { line: self.line, why: format!("{}: {why}", self.address) }
    }
}

/// Returns the nodes if the root is the one that `plan` names.
pub fn root_of(leaves: LeafSorter, plan: &ImportOptions, progress: &Progress) -> Result<Sorter> {
    let nodes = RefCell::new(Sorter::new(&plan.folder, "nodes", plan.memory / 3));
    let mut accounts = BulkRoot::new(emit_to(&nodes, Owner::Accounts, plan.block));
    let mut merged = leaves.0.finish()?;
    let mut done = 0;
    let mut next = merged.next()?;
    while let Some(record) = next {
        let open = open_account(&record)?;
        let owner = Owner::Storage { address: open.address, generation: open.account.generation };
        let mut storage = BulkRoot::new(emit_to(&nodes, owner, plan.block));
        let mut last = None;
        loop {
            done += 1;
            progress.reach(done)?;
            next = merged.next()?;
            let Some((key, value)) = &next else { break };
            if key[..HASH] != *open.hash {
                break;
            }
            let slot = slot_of(key).ok_or_else(|| open.bad("the account stands twice"))?;
            if last == Some(slot) {
                return Err(open.bad("one of its slots stands twice"));
            }
            last = Some(slot);
            let value = U256::from_be_slice(value);
            storage.push(Nibbles::unpack(slot), &leaf::encode_slot(&value).unwrap_or_default())?;
        }
        let root = storage.finish()?;
        if let Some(stated) = open.stated.filter(|stated| *stated != root) {
            let why = format!("its storage has the root {root}, the dump says {stated}");
            return Err(open.bad(&why));
        }
        accounts.push(Nibbles::unpack(open.hash), &leaf::encode_account(&open.account, root))?;
    }
    let root = accounts.finish()?;
    if root != plan.root {
        let why = format!("the accounts have the root {root}, the dump says {}", plan.root);
        return Err(Error::BadState { line: 0, why });
    }
    Ok(nodes.into_inner())
}

fn emit_to(
    nodes: &RefCell<Sorter>,
    owner: Owner,
    block: u64,
) -> impl FnMut(&Nibbles, &[u8]) -> Result<()> + '_ {
    move |path, node| {
        // An empty storage trie has no row, and nothing is emitted for it.
        nodes.borrow_mut().push(&entry::versioned(&node_key(&owner, path), block), node)
    }
}

fn open_account((key, value): &Record) -> Result<OpenAccount> {
    let damaged = || Error::Store("a run of the import is damaged".into());
    let (line, rest) = value.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (address, rest) = rest.split_first_chunk::<20>().ok_or_else(damaged)?;
    let (&is_stated, rest) = rest.split_first().ok_or_else(damaged)?;
    let (stated, row) = rest.split_first_chunk::<HASH>().ok_or_else(damaged)?;
    Ok(OpenAccount {
        line: u64::from_be_bytes(*line),
        address: address.into(),
        stated: (is_stated == 1).then(|| stated.into()),
        hash: B256::from_slice(key.get(..HASH).ok_or_else(damaged)?),
        account: entry::decode_account(row)?.ok_or_else(damaged)?,
    })
}

/// The slot hash in the key of a leaf; `None` for an account.
fn slot_of(key: &[u8]) -> Option<B256> {
    match key[HASH..] {
        [SLOT, ref slot @ ..] => Some(B256::from_slice(slot)),
        _ => None,
    }
}
