//! How far back a commit may refer: blocks to rewind to, and partial blocks.
//!
//! What is kept is a window behind `latest`. Pruning follows some time later and at another
//! pace in every store of a log, so a commit must not depend on it: what is out of the window
//! is refused whether it is still there or not. A rewind lowers `latest` and brings nothing
//! back, so the windows of a chain that goes up and down need a memory of their own: two
//! floors, which rise with each block that becomes the latest.
//!
//! A store that follows a log keeps as much as the store that writes it, or more, and holds
//! what that one holds (`Store::hold`); then it has all that a commit of the log refers to.
//!
//! | row in `meta` | value                                                |
//! |---------------|------------------------------------------------------|
//! | `floors`      | the lowest block to rewind to (8), of a partial (8)  |

use heed::{AnyTls, RoTxn, RwTxn};

use super::heads::{Fields, Heads};
use super::lmdb;
use super::open::{Retention, Tables};
use crate::error::{Error, Result};

const FLOORS: &[u8] = b"floors";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Floors {
    /// The lowest block that the chain may be rewound to.
    pub states: u64,
    /// The lowest block whose partials may be referred to. A rewind to below lowers it, once
    /// those partials are forgotten.
    pub partials: u64,
}

/// What is kept behind `latest`, and all that a rewind to `held` needs.
pub(super) struct Keep {
    pub retention: Retention,
    pub held: u64,
}

impl Floors {
    /// `latest` is the latest block now.
    pub fn raise(&mut self, latest: u64, keep: &Keep) {
        let Keep { retention, held } = keep;
        if let Some(states) = retention.states {
            self.states = self.states.max(latest.saturating_sub(states).min(*held));
            // The delta of the lowest block goes, and so does the partial that it was sealed of.
            self.partials = self.partials.max(self.states.saturating_add(1));
        }
        // One block more: the first partials that are kept may be stacked on its last.
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
    /// Those of a store that has none yet let everything through that is there.
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
