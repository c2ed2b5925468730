//! The nodes, codes and headers of a witness, by hash.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, map::B256Map};
use alloy_trie::Nibbles;

use super::SparseTrie;
use super::sparse_state::SparseState;
use crate::codec::header::Header;
use crate::error::{Error, Result};
use crate::state::{AccountState, StateReader};
use crate::trie::keccak::hash_all;
use crate::trie::{NodeReader, Owner};

/// The state after one block, partially known.
#[derive(Clone)]
pub struct Witness {
    known: Arc<Preimages>,
    root: B256,
    /// The block's number and hash.
    block: (u64, B256),
}

/// Byte strings by their hashes.
pub(super) struct Preimages(B256Map<Bytes>);

impl Witness {
    /// The state after the block of this header. The kinds of the byte strings need not be given.
    pub fn new(header: &Header, texts: Vec<Bytes>) -> Self {
        let hashes = hash_all(&texts);
        let mut known: B256Map<Bytes> = hashes.into_iter().zip(texts).collect();
        known.insert(header.hash(), header.encode());
        Self {
            known: Arc::new(Preimages(known)),
            root: header.state_root,
            block: (header.number, header.hash()),
        }
    }

    /// The number of distinct byte strings, including the block's header.
    pub fn len(&self) -> usize {
        self.known.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.0.is_empty()
    }

    pub fn state(&self) -> Box<dyn StateReader> {
        let tries = SparseState::new(self.root, self.known.clone());
        Box::new(WitnessState { tries, witness: self.clone() })
    }

    /// The trie of the state, for roots after changes.
    pub fn trie(&self) -> SparseTrie {
        SparseTrie::new(self.root, self.known.clone())
    }

    /// Follows the parent hashes from the state's block.
    fn block_hash(&self, number: u64) -> Result<B256> {
        let (mut at, mut hash) = self.block;
        if number > at {
            return Ok(B256::ZERO);
        }
        while at > number {
            let header = self.known.0.get(&hash).ok_or(Error::MissingHeader(number))?;
            let header = Header::decode(header)?;
            if header.number != at {
                return Err(Error::Undecodable {
                    what: "header",
                    why: format!("of block {at}, whose number in it is {}", header.number),
                });
            }
            (at, hash) = (at - 1, header.parent_hash);
        }
        Ok(hash)
    }
}

impl NodeReader for Preimages {
    fn node(&self, _: &Owner, _: &Nibbles) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        Ok(self.0.get(hash).map(|text| text.to_vec()))
    }
}

struct WitnessState {
    tries: SparseState,
    witness: Witness,
}

impl StateReader for WitnessState {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        self.tries.account(address)
    }

    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        self.tries.storage(address, generation, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        self.witness.known.0.get(hash).cloned().ok_or(Error::MissingCode(*hash))
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        self.witness.block_hash(number)
    }

    fn shares_codes(&self) -> bool {
        false
    }
}
