//! A state of the store that records what an execution reads, to produce a witness.
//!
//! Each account, slot, code and block hash that is read is recorded. The trie for the root after
//! the execution also reads its nodes through the recording, including siblings that merge with
//! their parents on a deletion. At the end, the paths to all keys read are traversed in the trie of
//! the state before the execution.
//!
//! On a partial base, nodes may be missing, including those of keys that were not read. The error
//! is then `MissingTrieNodes`, and the execution can be repeated once their proofs are fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_trie::Nibbles;

use super::SparseTrie;
use crate::deadline::{Limits, Watch};
use crate::error::{Error, Result};
use crate::state::{AccountState, StateReader};
use crate::store::{BranchTrie, State, StateNodes};
use crate::trie::leaf::{account_key, slot_key, storage_root_of};
use crate::trie::{Keys, NodeReader, Owner, Rows, Trie, paths};

/// Estimated time to read and check the nodes on the path of an account or slot.
const WAY_NS: u64 = 20_000;

#[derive(Clone)]
pub struct Recording {
    state: State,
    nodes: Arc<RecordedNodes>,
    reads: Arc<Mutex<Reads>>,
}

/// The data that an execution needed, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeededState {
    /// Nodes of all tries.
    pub nodes: Vec<Bytes>,
    pub codes: Vec<Bytes>,
    /// Addresses, each followed by its slots.
    pub keys: Vec<Bytes>,
    /// Numbers of the blocks whose hashes were read.
    pub blocks: Vec<u64>,
}

#[derive(Default)]
struct Reads {
    slots: BTreeMap<Address, BTreeSet<U256>>,
    codes: BTreeMap<B256, Bytes>,
    blocks: BTreeSet<u64>,
}

impl Recording {
    /// Creates an empty recording. The trie of a state below the node window is built from the
    /// changes since, or from the whole state. On a partial base, `root` is that of the state's
    /// sealed block.
    ///
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `StoreDamaged`, or an error from reading the store.
    pub fn new(state: State, root: Option<B256>, limits: Limits) -> Result<Self> {
        let (root, nodes) = BranchTrie::root_and_nodes(&state, root, &mut Watch::new(limits))?;
        let nodes = Arc::new(RecordedNodes { root, nodes, seen: Mutex::default() });
        Ok(Self { state, nodes, reads: Arc::default() })
    }

    /// The recorded state.
    pub fn state(&self) -> Box<dyn StateReader> {
        Box::new(self.clone())
    }

    /// The trie of the state, for roots after changes.
    pub fn trie(&self) -> SparseTrie {
        SparseTrie::new(self.nodes.root, self.nodes.clone()).fetched_at(self.fetched_at())
    }

    /// The block whose proofs contain the missing nodes, `None` on a complete base.
    fn fetched_at(&self) -> Option<u64> {
        self.state.may_miss().then(|| self.state.sealed_block())
    }

    /// All data needed so far.
    ///
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `MissingTrieNodes`, `StoreDamaged`, or an error from
    /// reading the store.
    pub fn recorded(&self, limits: Limits) -> Result<NeededState> {
        let reads = self.reads();
        let mut watch = Watch::new(limits);
        let mut keys = Vec::new();
        let mut accounts = Trie::open(self.nodes.root);
        let mut unknown = Keys::new();
        for (address, slots) in &reads.slots {
            watch.step(WAY_NS * (1 + slots.len() as u64))?;
            keys.push(Bytes::copy_from_slice(address.as_slice()));
            keys.extend(slots.iter().map(|slot| slot.to_be_bytes::<32>().into()));
            match (self.walk(&mut accounts, address, slots), self.fetched_at()) {
                // Collect all of them, including the account's other slots, so that they are
                // fetched at once.
                (Err(Error::MissingNode(_)), Some(_)) => {
                    unknown.insert(*address, slots.clone());
                }
                (walked, _) => walked?,
            }
        }
        if let Some(block) = self.fetched_at().filter(|_| !unknown.is_empty()) {
            return Err(paths::missing(block, unknown));
        }
        let nodes = self.nodes.seen().values().cloned().collect();
        let codes = reads.codes.values().cloned().collect();
        Ok(NeededState { nodes, codes, keys, blocks: reads.blocks.iter().copied().collect() })
    }

    fn walk(&self, accounts: &mut Trie, address: &Address, slots: &BTreeSet<U256>) -> Result<()> {
        let nodes = &*self.nodes;
        let rows = Rows { owner: Owner::Accounts, nodes };
        let Some(leaf) = accounts.get(&account_key(address), &rows)? else { return Ok(()) };
        let mut storage = Trie::open(storage_root_of(leaf)?);
        let Some(AccountState { generation, .. }) = self.state.account(address)? else {
            return Ok(());
        };
        let rows = Rows { owner: Owner::Storage { address: *address, generation }, nodes };
        for slot in slots {
            storage.get(&slot_key(slot), &rows)?;
        }
        Ok(())
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateReader for Recording {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        self.reads().slots.entry(*address).or_default();
        self.state.account(address)
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        self.reads().slots.entry(*address).or_default().insert(*slot);
        self.state.storage(address, generation, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        let code = self.state.code(hash)?;
        self.reads().codes.insert(*hash, code.clone());
        Ok(code)
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.reads().blocks.insert(number);
        self.state.block_hash(number)
    }

    fn shares_codes(&self) -> bool {
        false
    }

    fn may_miss(&self) -> bool {
        self.state.may_miss()
    }
}

/// The nodes of a state. Keeps each node that is read.
struct RecordedNodes {
    root: B256,
    nodes: StateNodes,
    seen: Mutex<BTreeMap<B256, Bytes>>,
}

impl RecordedNodes {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<B256, Bytes>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeReader for RecordedNodes {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        self.nodes.node(owner, path)
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        self.nodes.by_hash(hash)
    }

    fn used(&self, hash: &B256, node: &[u8]) {
        self.seen().entry(*hash).or_insert_with(|| Bytes::copy_from_slice(node));
    }

    fn is_partial(&self) -> bool {
        self.nodes.is_partial()
    }
}
