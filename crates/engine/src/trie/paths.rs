//! Changes to a trie with unknown nodes, and the keys whose proofs contain these nodes.
//!
//! On a partial base, computing a root, proof or witness fails with `MissingTrieNodes` if a node
//! is missing. It names the block and the keys whose proofs have to be fetched. The sibling of a
//! deleted node is on no path of a changed key; it is found by an unused key (`key_search`).

use super::state_root::StateRoot;
use super::{Keys, NodeReader};
use crate::error::{Error, Result};
use crate::evm::deadline::Watch;
use crate::missing_keys::MissingKeys;
use crate::state::Changes;

/// How often changes are taken in while nodes come.
const MOST_TRIES: usize = 4;

/// Applies all changes and computes the root, or changes nothing: `MissingTrieNodes` at the block
/// that the trie begins at.
///
/// Nodes come from other threads meanwhile: where one was missing and none is any more, it
/// is tried again.
pub fn apply_known(
    trie: &mut StateRoot,
    changes: &Changes,
    block: u64,
    nodes: &dyn NodeReader,
    watch: &mut Watch,
) -> Result<()> {
    let before = trie.clone();
    for _ in 0..MOST_TRIES {
        let applied = trie.apply_within(changes, nodes, watch).and_then(|()| trie.root(nodes));
        match applied {
            Err(Error::MissingNode(_)) if watch.in_place() => return Err(Error::DeadlineExceeded),
            Err(Error::MissingNode(_)) => {
                *trie = before.clone();
                check(trie, changes, block, nodes)?;
            }
            applied => return applied.map(drop),
        }
    }
    Err(Error::IncompleteState("a root"))
}

/// `MissingTrieNodes` if the root after the changes cannot be computed; they are not applied.
pub fn check(
    trie: &StateRoot,
    changes: &Changes,
    block: u64,
    nodes: &dyn NodeReader,
) -> Result<()> {
    let needed = trie.needs(changes, nodes)?;
    if needed.is_empty() {
        return Ok(());
    }
    let keys = match needed.before.is_empty() {
        false => needed.before,
        true => needed.preimages_for_paths().ok_or(Error::IncompleteState("a root"))?,
    };
    Err(missing(block, keys))
}

/// The error for paths to these keys that are not known.
pub fn missing(block: u64, keys: Keys) -> Error {
    let accounts = keys.keys().copied().collect();
    let slots = keys.into_iter().filter(|(_, slots)| !slots.is_empty()).collect();
    Error::MissingTrieNodes {
        block,
        keys: Box::new(MissingKeys { accounts, slots, ..MissingKeys::default() }),
    }
}
