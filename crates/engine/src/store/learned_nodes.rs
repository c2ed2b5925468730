//! Trie nodes from proofs, stored by hash in two halves of bounded size.
//!
//! A node that a block changes is stored at its path once the root of that block is computed
//! (`nodes`). Until then, and for keys that are only read, the proof is the only source of the
//! node, so recent ones are kept here. New nodes go into the young half. When it is full, the old
//! half, which is emptied in slices, becomes the young one. Evicted nodes can be fetched again.
//!
//! | row in `codes`        | value                                       |
//! |-----------------------|---------------------------------------------|
//! | `n` or `o` hash (32)  | a trie node, of either half                 |
//! | `k`                   | which half is young (1), its bytes (8)      |

use alloy_primitives::B256;
use heed::RwTxn;

use super::heads::Fields;
use super::lmdb;
use super::maintain::Slice;
use super::snapshot::Lease;
use super::tables::Tables;
use crate::error::{Error, Result};

const HALVES: [u8; 2] = *b"no";
const KEPT: &[u8] = b"k";
/// The size of a half in bytes.
const HALF: u64 = 256 << 20;
const KEY_BYTES: usize = 33;

fn node_key(half: u8, hash: &B256) -> [u8; KEY_BYTES] {
    let mut key = [half; KEY_BYTES];
    key[1..].copy_from_slice(hash.as_slice());
    key
}

/// The hash in the key of a node; `None` for other keys.
pub(super) fn hash_in(key: &[u8]) -> Option<B256> {
    let (half, hash) = key.split_first()?;
    (HALVES.contains(half) && hash.len() == 32).then(|| B256::from_slice(hash))
}

pub(super) fn is_kept_row(key: &[u8]) -> bool {
    key == KEPT
}

/// The young half, which receives nodes, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptNodes {
    young: u8,
    bytes: u64,
}

impl KeptNodes {
    fn old(self) -> u8 {
        if self.young == HALVES[0] { HALVES[1] } else { HALVES[0] }
    }

    pub fn decode(row: &[u8]) -> Result<Self> {
        let damaged = || Error::StoreDamaged("the row of learned nodes is not one".into());
        let (young, bytes) = row.split_first().ok_or_else(damaged)?;
        if !HALVES.contains(young) || bytes.len() != 8 {
            return Err(damaged());
        }
        Ok(Self { young: *young, bytes: Fields(bytes).number()? })
    }

    fn encode(self) -> [u8; 9] {
        let mut row = [self.young; 9];
        row[1..].copy_from_slice(&self.bytes.to_be_bytes());
        row
    }
}

impl Tables {
    pub(super) fn kept_nodes(&self, txn: &RwTxn) -> Result<KeptNodes> {
        match self.codes.get(txn, KEPT).map_err(lmdb)? {
            Some(row) => KeptNodes::decode(row),
            None => Ok(KeptNodes { young: HALVES[0], bytes: 0 }),
        }
    }

    pub(super) fn put_kept_nodes(&self, txn: &mut RwTxn, kept: KeptNodes) -> Result<()> {
        self.codes.put(txn, KEPT, &kept.encode()).map_err(lmdb)
    }

    /// Puts a node into the young half; true if it is new there.
    pub(super) fn put_learned_node(
        &self,
        txn: &mut RwTxn,
        kept: &mut KeptNodes,
        hash: &B256,
        node: &[u8],
    ) -> Result<bool> {
        let key = node_key(kept.young, hash);
        if self.codes.get(txn, &key).map_err(lmdb)?.is_some() {
            return Ok(false);
        }
        self.codes.put(txn, &key, node).map_err(lmdb)?;
        kept.bytes += (KEY_BYTES + node.len()) as u64;
        Ok(true)
    }
}

impl Slice<'_, '_> {
    /// Empties the old half once the young one is half full, and swaps them when it is full.
    pub fn forget_learned_nodes(&mut self) -> Result<()> {
        self.forget_above(HALF)
    }

    fn forget_above(&mut self, half: u64) -> Result<()> {
        if self.heads.anchor.is_none() {
            return Ok(());
        }
        let kept = self.tables.kept_nodes(self.txn)?;
        if kept.bytes < half / 2 || self.left == 0 {
            return Ok(());
        }
        let codes = self.tables.codes;
        let mut keys = Vec::new();
        for row in codes.prefix_iter(self.txn, &[kept.old()]).map_err(lmdb)? {
            let (key, _) = row.map_err(lmdb)?;
            // The table also holds codes, whose hashes can start with any byte.
            if hash_in(key).is_some() {
                keys.push(key.to_vec());
            }
            if keys.len() == self.left {
                break;
            }
        }
        for key in &keys {
            codes.delete(self.txn, key).map_err(lmdb)?;
        }
        self.left -= keys.len();
        if self.left > 0 && kept.bytes >= half {
            self.tables.put_kept_nodes(self.txn, KeptNodes { young: kept.old(), bytes: 0 })?;
            self.left -= 1;
        }
        Ok(())
    }
}

impl Lease {
    /// A trie node from a proof, by hash.
    pub fn learned_node(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        if self.heads.anchor.is_none() {
            return Ok(None);
        }
        if let Some(node) = self.learned.as_ref().and_then(|learned| learned.node(hash)) {
            return Ok(Some(node.to_vec()));
        }
        self.read(|txn| {
            for half in HALVES {
                let row = self.tables.codes.get(txn, &node_key(half, hash)).map_err(lmdb)?;
                if let Some(node) = row {
                    return Ok(Some(node.to_vec()));
                }
            }
            Ok(None)
        })
    }
}

#[cfg(test)]
mod tests;
