//! Floors: the oldest blocks that a commit may rewind to, or whose partials it may refer to.
//!
//! The store retains a window behind `latest`. Pruning follows later and at a different pace in
//! every store of a log, so commits must not depend on it: references below the window are refused
//! even if the data still exists. A rewind lowers `latest` but does not restore pruned data, so the
//! windows cannot be derived from `latest`. They are stored as two floors, which rise with each
//! block that becomes the latest.
//!
//! A store that follows a log must retain at least as much as its writer and hold the same blocks
//! (`Store::hold`). It then has everything that a commit of the log refers to.
//!
//! | row in `meta` | value                                                         |
//! |---------------|---------------------------------------------------------------|
//! | `floors`      | lowest block to rewind to (8), lowest block with partials (8) |

use heed::{AnyTls, RoTxn, RwTxn};

use super::heads::{Fields, Heads};
use super::lmdb;
use super::tables::Tables;
use crate::error::{Error, Result};

const FLOORS: &[u8] = b"floors";

/// Retention windows, in blocks behind `latest`.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// States of sealed blocks; `None` keeps all.
    pub states: Option<u64>,
    pub partials: u64,
    /// Versions of trie nodes, which rewinds and proofs of older blocks need.
    pub nodes: u64,
}

impl Retention {
    /// States must be kept for more blocks than partials: the block of a partial must stay readable
    /// as long as the partial.
    pub(super) fn check(&self) -> Result<()> {
        match self.states {
            Some(states) if states <= self.partials => Err(Error::invalid(format!(
                "states of {states} blocks are too few for partials of {}",
                self.partials
            ))),
            _ => Ok(()),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { states: None, partials: 64, nodes: 128 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Floors {
    /// The lowest block that the chain may be rewound to.
    pub states: u64,
    /// The lowest block whose partials may be referred to. A rewind below it deletes the partials
    /// below it and lowers it.
    pub partials: u64,
}

/// The retention behind `latest`, and the block that must stay available for a rewind; `held` is
/// `u64::MAX` if there is none.
pub(super) struct Keep {
    pub retention: Retention,
    pub held: u64,
}

impl Floors {
    /// Raises the floors for a new latest block.
    pub fn raise(&mut self, latest: u64, keep: &Keep) {
        let Keep { retention, held } = keep;
        if let Some(states) = retention.states {
            self.states = self.states.max(latest.saturating_sub(states).min(*held));
            // Pruning deletes the delta of the lowest block and the partial that it was sealed
            // from.
            self.partials = self.partials.max(self.states.saturating_add(1));
        }
        // One block more: the first retained partials may be stacked on the last partial of that
        // block.
        let partials = latest.saturating_sub(retention.partials.saturating_add(1));
        self.partials = self.partials.max(partials.min(held.saturating_add(1)));
    }

    pub fn encode(&self) -> Vec<u8> {
        [self.states.to_be_bytes(), self.partials.to_be_bytes()].concat()
    }

    pub fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let floors = Self { states: fields.number()?, partials: fields.number()? };
        fields.end()?;
        Ok(floors)
    }
}

impl Tables {
    /// A store without floors yet allows everything that it has.
    pub(super) fn floors(&self, txn: &RoTxn<AnyTls>, heads: &Heads) -> Result<Floors> {
        let Some(row) = self.meta.get(txn, FLOORS).map_err(lmdb)? else {
            return Ok(Floors { states: heads.earliest, partials: 0 });
        };
        let floors = Floors::decode(row)?;
        let top = heads.latest.map_or(0, |latest| latest.number);
        if floors.states > top || floors.partials > top.saturating_add(1) {
            return Err(Error::StoreDamaged("a floor is above the latest block".into()));
        }
        Ok(floors)
    }

    pub(super) fn put_floors(&self, txn: &mut RwTxn, floors: &Floors) -> Result<()> {
        self.meta.put(txn, FLOORS, &floors.encode()).map_err(lmdb)
    }
}
