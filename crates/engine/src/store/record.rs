//! Rows of blocks: the delta of a sealed block, and the position and status of a partial block.

use alloy_primitives::B256;

use super::heads::Fields;
use crate::error::{Error, Result};

/// The row of a sealed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedBlock {
    pub hash: B256,
    /// The number of the delta with its changes; 0 for a first block, whose state was written
    /// directly to the flat table.
    pub delta: u64,
}

impl SealedBlock {
    pub fn encode(&self) -> Vec<u8> {
        [self.hash.as_slice(), &self.delta.to_be_bytes()].concat()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let sealed = Self { hash: fields.hash()?, delta: fields.number()? };
        fields.end()?;
        Ok(sealed)
    }
}

/// The row of a partial block. Only its status changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    pub block: u64,
    pub index: u64,
    pub hash: B256,
    /// The block or partial that its block builds on.
    pub start: Start,
    /// The parent hash that its block names, which BLOCKHASH returns.
    pub parent_hash: B256,
    pub status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A sealed block; its hash is the partial's `parent_hash`.
    Sealed(u64),
    /// The last partial of a block that was not sealed at that time.
    Partial(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Live,
    Sealed,
    Dropped {
        reason: String,
    },
    /// It was sealed and then rewound by an older version, which deleted its delta, so it cannot be
    /// revived.
    Rewound,
}

impl Partial {
    pub fn encode(&self) -> Vec<u8> {
        let (start, number) = match self.start {
            Start::Sealed(block) => (0, block),
            Start::Partial(number) => (1, number),
        };
        let (status, reason) = match &self.status {
            Status::Live => (0, ""),
            Status::Sealed => (1, ""),
            Status::Dropped { reason } => (2, reason.as_str()),
            Status::Rewound => (3, ""),
        };
        let mut out = Vec::with_capacity(90 + reason.len());
        out.extend_from_slice(&self.block.to_be_bytes());
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(self.hash.as_slice());
        out.extend_from_slice(self.parent_hash.as_slice());
        out.push(start);
        out.extend_from_slice(&number.to_be_bytes());
        out.push(status);
        out.extend_from_slice(reason.as_bytes());
        out
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let (block, index) = (fields.number()?, fields.number()?);
        let (hash, parent_hash) = (fields.hash()?, fields.hash()?);
        let [start] = fields.take::<1>()?;
        let number = fields.number()?;
        let start = match start {
            0 => Start::Sealed(number),
            1 => Start::Partial(number),
            other => return Err(damaged(format!("a partial block has start {other}"))),
        };
        let [status] = fields.take::<1>()?;
        if status == 2 {
            let reason = std::str::from_utf8(fields.0)
                .map_err(|_| damaged("a partial block has a reason that is no text".into()))?;
            let status = Status::Dropped { reason: reason.to_owned() };
            return Ok(Self { block, index, hash, start, parent_hash, status });
        }
        fields.end()?;
        let status = match status {
            0 => Status::Live,
            1 => Status::Sealed,
            3 => Status::Rewound,
            other => return Err(damaged(format!("a partial block has status {other}"))),
        };
        Ok(Self { block, index, hash, start, parent_hash, status })
    }
}

/// Data to delete after the heads have moved off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// A delta that nothing refers to.
    Delta(u64),
    /// Flat entries of a block that is no longer on the chain, listed by its delta; then the delta
    /// itself, unless it is still needed.
    Flat { delta: u64, block: u64 },
    /// Trie nodes of a block that is no longer on the chain.
    Nodes { block: u64 },
    /// All trie nodes: the chain was rewound below their window.
    AllNodes,
}

impl Garbage {
    /// True if folding must wait for it.
    pub fn is_flat(&self) -> bool {
        matches!(self, Self::Flat { .. })
    }

    /// True if storing nodes must wait for it.
    pub fn is_of_nodes(&self) -> bool {
        matches!(self, Self::Nodes { .. } | Self::AllNodes)
    }

    pub fn encode(&self) -> Vec<u8> {
        let (kind, delta, block) = match *self {
            Self::Delta(delta) => (0, delta, 0),
            Self::Flat { delta, block } => (1, delta, block),
            Self::Nodes { block } => (2, 0, block),
            Self::AllNodes => (3, 0, 0),
        };
        [&[kind][..], &u64::to_be_bytes(delta), &u64::to_be_bytes(block)].concat()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let [kind] = fields.take::<1>()?;
        let (delta, block) = (fields.number()?, fields.number()?);
        fields.end()?;
        match (kind, delta, block) {
            (0, delta, 0) => Ok(Self::Delta(delta)),
            (1, delta, block) => Ok(Self::Flat { delta, block }),
            (2, 0, block) => Ok(Self::Nodes { block }),
            (3, 0, 0) => Ok(Self::AllNodes),
            (other, ..) => Err(damaged(format!("a row of trash has kind {other}"))),
        }
    }
}

fn damaged(why: String) -> Error {
    Error::StoreDamaged(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let dropped = Status::Dropped { reason: "restart of the job".into() };
        for (start, status) in [
            (Start::Sealed(4), Status::Live),
            (Start::Partial(70), Status::Sealed),
            (Start::Sealed(4), dropped),
            (Start::Sealed(4), Status::Rewound),
        ] {
            let (hash, parent_hash) = (B256::repeat_byte(1), B256::repeat_byte(2));
            let partial = Partial { block: 5, index: 3, hash, start, parent_hash, status };
            assert_eq!(Partial::decode(&partial.encode()), Ok(partial));
        }
        let flat = Garbage::Flat { delta: 2, block: 3 };
        for trash in [Garbage::Delta(1), flat, Garbage::Nodes { block: 4 }, Garbage::AllNodes] {
            assert_eq!(Garbage::decode(&trash.encode()), Ok(trash));
        }
    }

    #[test]
    fn rows_that_nobody_writes_are_damage() {
        let start = Start::Sealed(4);
        let (hash, parent_hash) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let status = Status::Live;
        let live = Partial { block: 5, index: 3, hash, start, parent_hash, status }.encode();
        const START: usize = 8 + 8 + 32 + 32;
        for (place, byte) in [(START, 2), (START + 9, 4)] {
            let mut row = live.clone();
            row[place] = byte;
            assert!(matches!(Partial::decode(&row), Err(Error::StoreDamaged(_))));
        }
        let mut dropped = live.clone();
        dropped[START + 9] = 2;
        dropped.push(0xff);
        assert!(matches!(Partial::decode(&dropped), Err(Error::StoreDamaged(_))));
        let sealed = SealedBlock { hash, delta: 7 }.encode();
        let trash = Garbage::Nodes { block: 4 }.encode();
        let longer = |row: &[u8]| [row, &[0]].concat();
        assert!(matches!(Partial::decode(&longer(&live)), Err(Error::StoreDamaged(_))));
        assert!(matches!(SealedBlock::decode(&longer(&sealed)), Err(Error::StoreDamaged(_))));
        assert!(matches!(Garbage::decode(&longer(&trash)), Err(Error::StoreDamaged(_))));
        assert!(matches!(Garbage::decode(&[4; 17]), Err(Error::StoreDamaged(_))));
    }
}
