//! Checks that every stored version of a trie node has the hash its parent names, from the root in
//! the header down.
//!
//! The trie of the last block with stored nodes is walked completely. For each earlier block, only
//! the nodes replaced by its successor are read: every version that is no longer live was replaced
//! by one of these successors.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::{Address, B256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};

use super::Check;
use crate::error::{Error, Result};
use crate::state::StateReader;
use crate::store::entry;
use crate::store::lmdb;
use crate::store::nodes::{NODE, StoredNodes, next_change};
use crate::trie::leaf::{account_key, storage_root_of};
use crate::trie::walk::{Walker, walk};
use crate::trie::{Owner, Rows, Trie, is_node_key, node_key, owner_prefix, parse_node_key};

/// Accounts read per call.
const PORTION: usize = 1024;

/// Storage roots by the hash of the account's address, without those of empty storage.
type StorageRoots = HashMap<B256, B256>;

impl Check {
    pub(super) fn nodes(&self) -> Result<()> {
        let heads = self.view.heads();
        let table = self.view.lease.tables.nodes;
        self.progress.begin(self.view.lease.read(|txn| table.len(txn).map_err(lmdb))?);
        let Some(last) = heads.nodes.filter(|_| self.latest().is_some()) else { return Ok(()) };
        let Some(root) = self.root(last) else { return Ok(()) };
        self.walk_accounts(last, root)?;
        for block in (heads.nodes_earliest..last).rev() {
            self.replaced_after(block)?;
        }
        self.count_versions(last)
    }

    fn walk_accounts(&self, block: u64, root: B256) -> Result<()> {
        let stored = StoredNodes::at(&self.view, block);
        let rows = Rows { owner: Owner::Accounts, nodes: &stored };
        let mut walker = Telling { check: self, owner: Owner::Accounts, roots: HashMap::new() };
        walk(root, &rows, &mut walker)?;
        let mut roots = walker.roots;
        let state = self.view.state(block)?;
        let mut after: Option<Address> = None;
        loop {
            let accounts = state.accounts(after.as_ref(), PORTION)?;
            for (address, account) in &accounts {
                let Some(root) = roots.remove(&keccak256(address)) else { continue };
                self.walk_storage(block, *address, account.generation, root)?;
            }
            after = accounts.last().map(|(address, _)| *address);
            if accounts.len() < PORTION {
                break;
            }
        }
        for hash in roots.keys() {
            let why = format!(
                "the account with the hash {hash} has storage in the trie, and is not in the state"
            );
            self.progress.report("flat", &[], why);
        }
        Ok(())
    }

    fn walk_storage(
        &self,
        block: u64,
        address: Address,
        generation: u64,
        root: B256,
    ) -> Result<()> {
        let stored = StoredNodes::at(&self.view, block);
        let owner = Owner::Storage { address, generation };
        let mut walker = Telling { check: self, owner, roots: HashMap::new() };
        walk(root, &Rows { owner, nodes: &stored }, &mut walker)
    }

    /// Checks the nodes of this block that the next block replaced.
    fn replaced_after(&self, block: u64) -> Result<()> {
        let Some(root) = self.root(block) else { return Ok(()) };
        let stored = StoredNodes::at(&self.view, block);
        // The owner of storage nodes is only known for blocks whose state is retained.
        let state = (block >= self.view.heads().earliest).then(|| self.view.state(block));
        let state = state.transpose()?;
        let mut accounts = Trie::open(root);
        let mut storage: HashMap<Owner, Option<Trie>> = HashMap::new();
        for (kind, key) in self.listed(block + 1)? {
            self.progress.advance()?;
            let (owner, path) = match kind {
                NODE => parse_node_key(&key),
                _ => parse_node_key(&[&key[..], &[0]].concat()),
            }
            .ok_or_else(|| Error::StoreDamaged("a node has no key of one".into()))?;
            let rows = Rows { owner: Owner::Accounts, nodes: &stored };
            if let Owner::Storage { address, generation } = owner {
                let Some(state) = &state else { continue };
                let lived = state.account(&address)?.is_some_and(|it| it.generation == generation);
                let trie = match storage.entry(owner) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) if lived => {
                        let leaf = accounts.get(&account_key(&address), &rows);
                        let root =
                            leaf.and_then(|leaf| leaf.map_or(Ok(EMPTY_ROOT_HASH), storage_root_of));
                        let root =
                            self.reported("nodes", &account_node(&address), root.map(Some))?;
                        new.insert(root.map(Trie::open))
                    }
                    Entry::Vacant(new) => new.insert(None),
                };
                let Some(trie) = trie else { continue };
                if kind == NODE {
                    self.look_up(trie, &Rows { owner, nodes: &stored }, &path, block)?;
                } else {
                    let root = trie.root();
                    self.walk_storage(block, address, generation, root)?;
                }
            } else {
                self.look_up(&mut accounts, &rows, &path, block)?;
            }
        }
        Ok(())
    }

    /// Reads the nodes on the path, including the node at its end if there is one.
    fn look_up(&self, trie: &mut Trie, rows: &Rows<'_>, path: &Nibbles, block: u64) -> Result<()> {
        let mut whole = *path;
        while whole.len() < 64 {
            whole.push(0);
        }
        let key = entry::versioned(&node_key(&rows.owner, path), block);
        self.reported("nodes", &key, trie.get(&whole, rows).map(drop))
    }

    /// The kind and key of each node change of a block, from its list.
    fn listed(&self, block: u64) -> Result<Vec<(u8, Vec<u8>)>> {
        let changes = self.view.lease.tables.node_changes;
        let mut listed = Vec::new();
        self.view.lease.read(|txn| {
            for row in changes.prefix_iter(txn, &block.to_be_bytes()).map_err(lmdb)? {
                let (key, row) = row.map_err(lmdb)?;
                let mut rest = row;
                while !rest.is_empty() {
                    let next = next_change(rest).map(Some);
                    let Some((kind, node, after)) = self.reported("node_changes", key, next)?
                    else {
                        break;
                    };
                    listed.push((kind, node.to_vec()));
                    rest = after;
                }
            }
            Ok(())
        })?;
        Ok(listed)
    }

    /// Checks that each block wrote as many nodes as its list names: pruning relies on the list.
    fn count_versions(&self, last: u64) -> Result<()> {
        let earliest = self.view.heads().nodes_earliest;
        let mut versions: BTreeMap<u64, u64> = BTreeMap::new();
        let nodes = self.view.lease.tables.nodes;
        self.view.lease.read(|txn| {
            for row in nodes.iter(txn).map_err(lmdb)? {
                let (row_key, _) = row.map_err(lmdb)?;
                let parts = row_key.split_last_chunk::<8>();
                let Some((_, block)) = parts.filter(|(key, _)| is_node_key(key)) else {
                    self.progress.report("nodes", row_key, "the key is none of a node");
                    continue;
                };
                let block = !u64::from_be_bytes(*block);
                if earliest < block && block <= last {
                    *versions.entry(block).or_default() += 1;
                }
            }
            Ok(())
        })?;
        for block in earliest + 1..=last {
            let found = versions.get(&block).copied().unwrap_or_default();
            // A writer that was killed during a block may have listed the same nodes twice.
            let listed: BTreeSet<_> = self.listed(block)?.into_iter().collect();
            let listed = listed.iter().filter(|(kind, _)| *kind == NODE).count() as u64;
            if found != listed {
                let why = format!("block {block} wrote {found} nodes, its list has {listed}");
                self.progress.report("node_changes", &block.to_be_bytes(), why);
            }
        }
        Ok(())
    }
}

/// Reports damaged nodes and collects the storage roots of accounts.
struct Telling<'a> {
    check: &'a Check,
    owner: Owner,
    roots: StorageRoots,
}

impl Walker for Telling<'_> {
    fn node(&mut self) -> Result<()> {
        self.check.progress.advance()
    }

    fn leaf(&mut self, key: &Nibbles, value: &[u8]) -> Result<()> {
        if self.owner != Owner::Accounts {
            return Ok(());
        }
        let root = self.check.reported(
            "nodes",
            &owner_prefix(&self.owner),
            storage_root_of(value).map(Some),
        )?;
        if let Some(root) = root.filter(|root| *root != EMPTY_ROOT_HASH && key.len() == 64) {
            self.roots.insert(B256::from_slice(&key.pack()), root);
        }
        Ok(())
    }

    fn damaged(&mut self, path: &Nibbles, why: Error) -> Result<()> {
        self.check.reported("nodes", &node_key(&self.owner, path), Err(why))
    }
}

/// The key of the account's leaf at full path length, to report damage on the path to it.
fn account_node(address: &Address) -> Vec<u8> {
    node_key(&Owner::Accounts, &account_key(address))
}
