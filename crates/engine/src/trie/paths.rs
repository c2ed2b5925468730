//! Changes to a trie with unknown nodes, and the keys whose proofs contain these nodes.
//!
//! On a partial base, computing a root, proof or witness fails with `MissingTrieNodes` if a node
//! is missing. It names the block and the keys whose proofs have to be fetched. The sibling of a
//! deleted node is on no path of a changed key; it is found by an unused key (`key_search`).

use super::state_root::StateRoot;
use super::{Keys, NodeReader};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::missing_keys::MissingKeys;
use crate::state::Changes;

/// The maximum number of attempts while other threads add nodes.
const MOST_TRIES: usize = 4;

/// Applies all changes and computes the root. If nodes are missing, it changes nothing and fails
/// with `MissingTrieNodes` at the block that the trie starts from.
///
/// Other threads may add nodes concurrently. If a node was missing and none is missing afterwards,
/// the changes are applied again.
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

/// Fails with `MissingTrieNodes` if the root after the changes cannot be computed. Does not apply
/// them.
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

/// The error for missing nodes on the paths of these keys.
pub fn missing(block: u64, keys: Keys) -> Error {
    let accounts = keys.keys().copied().collect();
    let slots = keys.into_iter().filter(|(_, slots)| !slots.is_empty()).collect();
    Error::MissingTrieNodes {
        block,
        keys: Box::new(MissingKeys { accounts, slots, ..MissingKeys::default() }),
    }
}
