//! Changes to a trie of which some nodes are not known, and the keys whose proofs would have them.
//!
//! Who computes a root, a proof or a witness above a partial base ends with `WaysMissing` where a
//! node is not here: the block at which proofs are to be asked for, and keys. A node from beside
//! which another vanishes is asked for by a key that nobody has (`made_up`).

use super::state_root::StateRoot;
use super::{Keys, NodeReader};
use crate::error::{Error, Result};
use crate::evm::deadline::Watch;
use crate::misses::Misses;
use crate::state::Changes;

/// How often changes are taken in while nodes come.
const MOST_TRIES: usize = 4;

/// Takes all changes in, up to the root after them, or none: `WaysMissing` at the block that the
/// trie begins at.
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

/// `WaysMissing` where the root after changes cannot be computed; they are not taken in.
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
        true => needed.made_up().ok_or(Error::IncompleteState("a root"))?,
    };
    Err(missing(block, keys))
}

/// The ways to these keys are not known.
pub fn missing(block: u64, keys: Keys) -> Error {
    let accounts = keys.keys().copied().collect();
    let slots = keys.into_iter().filter(|(_, slots)| !slots.is_empty()).collect();
    Error::WaysMissing { block, keys: Box::new(Misses { accounts, slots, ..Misses::default() }) }
}
