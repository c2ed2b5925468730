//! Checks state roots: the latest one from all entries, older ones by reverting changes.

use std::sync::atomic::Ordering;

use alloy_primitives::{Address, B256};
use alloy_trie::Nibbles;

use super::{Check, is_damage};
use crate::error::Result;
use crate::state::{Changes, StateReader};
use crate::store::State;
use crate::store::branch_trie::{BranchTrie, inverse_changes};
use crate::store::entry;
use crate::store::flat_proof::{hash_storage, in_order, scan_accounts};
use crate::store::nodes::StoredNodes;
use crate::trie::bulk_root::BulkRoot;
use crate::trie::leaf::{account_key, encode_account};
use crate::trie::{Owner, Rows, Trie};

/// The number of leaves in memory at a time, 52 bytes each; up to twice as many while scanning.
const HELD: usize = 1 << 21;
/// The maximum number of accounts to name if the root differs.
const NAMED: usize = 100;
/// The maximum number of accounts to name for an older state.
const NAMED_BEFORE: usize = 8;

impl Check {
    /// Checks the root of the latest state, computed from every account and slot.
    pub(super) fn state(&self) -> Result<()> {
        let Some(latest) = self.latest() else { return Ok(()) };
        self.progress.begin(self.accounts.load(Ordering::Relaxed));
        let Some(expected) = self.root(latest) else { return Ok(()) };
        let root = self.root_of(&self.view.state(latest)?)?;
        if root != expected {
            let why = format!(
                "the state of block {latest} has the root {root}, its header says {expected}"
            );
            self.progress.report("flat", &[], why);
            self.name_accounts()?;
        }
        Ok(())
    }

    fn root_of(&self, state: &State) -> Result<B256> {
        let mut watch = self.watch();
        let mut trie = BulkRoot::new(|_: &Nibbles, _: &[u8]| Ok(()));
        in_order(
            HELD,
            &mut watch,
            |watch, take| scan_accounts(state, watch, take),
            |watch, hash, address: Address| {
                self.progress.advance()?;
                let Some(account) = state.account(&address)? else { return Ok(()) };
                let root = hash_storage(state, &address, &account, None, watch, HELD)?;
                trie.push(Nibbles::unpack(hash), &encode_account(&account, root))
            },
        )?;
        trie.finish()
    }

    /// Reports accounts that differ from their leaves in the stored trie.
    fn name_accounts(&self) -> Result<()> {
        let heads = self.view.heads();
        let Some(nodes) = heads.nodes.filter(|nodes| *nodes >= heads.earliest) else {
            return Ok(());
        };
        let Some(root) = self.root(nodes) else { return Ok(()) };
        let (state, stored) = (self.view.state(nodes)?, StoredNodes::at(&self.view, nodes));
        let rows = Rows { owner: Owner::Accounts, nodes: &stored };
        let mut watch = self.watch();
        let mut trie = Trie::open(root);
        let mut differ = Vec::new();
        let mut failed = None;
        let mut compare = |address: Address| -> Result<bool> {
            let Some(account) = state.account(&address)? else { return Ok(true) };
            let storage = hash_storage(&state, &address, &account, None, &mut self.watch(), HELD)?;
            let leaf = encode_account(&account, storage);
            Ok(trie.get(&account_key(&address), &rows)? == Some(leaf.as_slice()))
        };
        scan_accounts(&state, &mut watch, &mut |_, address| {
            if differ.len() < NAMED && failed.is_none() {
                match compare(address) {
                    Ok(true) => {}
                    Ok(false) => differ.push(address),
                    // Damaged nodes are already reported.
                    Err(why) if is_damage(&why) => {}
                    Err(why) => failed = Some(why),
                }
            }
        })?;
        for address in differ {
            let why = format!("account {address} at block {nodes} is not what the trie has of it");
            self.progress.report("flat", &entry::account_key(&address), why);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Checks the roots of all retained states, from the latest backwards, by reverting each block.
    pub(super) fn history(&self) -> Result<()> {
        let heads = self.view.heads();
        let Some(latest) = self.latest() else { return Ok(()) };
        self.progress.begin(latest - heads.earliest + 1);
        let mut watch = self.watch();
        let mut trie = BranchTrie::open_within(&self.view.state(latest)?, &mut watch)?;
        let mut wrong = Wrong::default();
        let mut block = latest;
        let mut back = Changes::default();
        loop {
            self.progress.advance()?;
            let root = trie.root()?;
            match self.root(block) {
                Some(expected) if expected != root => wrong.add(block, &back),
                _ => wrong.report(self),
            }
            if block == heads.earliest {
                break;
            }
            back = inverse_changes(&self.view, block, block - 1, usize::MAX, &mut watch)?
                .unwrap_or_default();
            trie.apply_within(&back, &mut watch)?;
            block -= 1;
        }
        wrong.report(self);
        Ok(())
    }
}

/// Consecutive blocks whose state roots differ from their headers.
#[derive(Default)]
struct Wrong {
    /// The first and the last block.
    blocks: Option<(u64, u64)>,
    /// Accounts changed by the block after `last`; one of them was wrong before that block.
    accounts: Vec<Address>,
}

impl Wrong {
    /// Blocks are added in descending order; `back` reverts the block after `block`.
    fn add(&mut self, block: u64, back: &Changes) {
        let last = match self.blocks {
            Some((_, last)) => last,
            None => {
                self.accounts = back.accounts.keys().take(NAMED_BEFORE + 1).copied().collect();
                block
            }
        };
        self.blocks = Some((block, last));
    }

    fn report(&mut self, check: &Check) {
        let Some((first, last)) = self.blocks.take() else { return };
        let mut why = match first == last {
            true => format!("the state of block {first} has another root than its header says"),
            false => format!(
                "the states of blocks {first} to {last} have other roots than their headers say"
            ),
        };
        let names: Vec<_> = self.accounts.iter().map(Address::to_string).collect();
        if (1..=NAMED_BEFORE).contains(&names.len()) {
            why += &format!("; look at what block {} changed: {}", last + 1, names.join(", "));
        }
        let key = match self.accounts[..] {
            [address] => entry::account_key(&address).to_vec(),
            _ => Vec::new(),
        };
        check.progress.report("flat", &key, why);
    }
}
