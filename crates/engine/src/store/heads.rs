//! The heads: the row that describes the content of the store.
//!
//! Every commit rewrites it in its transaction, and every view begins by reading it. Data that only
//! Python interprets (deadline of the pending block, clock) is in `note`.

use alloy_primitives::B256;

use crate::error::{Error, Result};

/// The newest supported format. Raised when rows change their meaning.
pub const FORMAT: u8 = 2;
/// The format of a store with a complete base. Versions without partial bases can read it.
const COMPLETE: u8 = 1;
/// The format of a store with a partial base: a key without an entry is unknown, not absent.
const PARTIAL: u8 = 2;

/// The maximum commit number. It leaves headroom, so that drawing further numbers cannot overflow.
pub(super) const MOST_COMMITS: u64 = u64::MAX / 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// Random; caches and replicas distinguish stores by it.
    pub store_id: [u8; 16],
    /// The last number drawn. Strictly increases with every commit that changes what readers see;
    /// folding and pruning draw none.
    pub commit: u64,
    pub latest: Option<BlockRef>,
    pub safe: Option<BlockRef>,
    pub finalized: Option<BlockRef>,
    /// The oldest block whose state can be read.
    pub earliest: u64,
    /// The last block whose state is in the flat table.
    pub folded: u64,
    /// The last block whose trie nodes are stored; `None` if there are none.
    pub nodes: Option<u64>,
    /// The oldest block whose trie nodes can be read.
    pub nodes_earliest: u64,
    /// The number of the pending partial block.
    pub pending: Option<u64>,
    /// The anchor of a partial base; `None` if the base is complete.
    pub anchor: Option<Anchor>,
    pub note: Vec<u8>,
}

/// A first block whose state is only partly known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    pub number: u64,
    pub hash: B256,
    /// Its state root.
    pub root: B256,
    /// Raised with each new anchor.
    pub epoch: u64,
    /// The generation of all accounts that exist at the anchor. Its slots are unknown unless they
    /// were fetched; slots of later generations are fully known.
    pub generation: u64,
}

/// A sealed block by number and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRef {
    pub number: u64,
    pub hash: B256,
}

impl Heads {
    pub fn new(store_id: [u8; 16]) -> Self {
        Self {
            store_id,
            commit: 0,
            latest: None,
            safe: None,
            finalized: None,
            earliest: 0,
            folded: 0,
            nodes: None,
            nodes_earliest: 0,
            pending: None,
            anchor: None,
            note: Vec::new(),
        }
    }

    pub fn format(&self) -> u8 {
        if self.anchor.is_some() { PARTIAL } else { COMPLETE }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.format()];
        out.extend_from_slice(&self.store_id);
        for number in [self.commit, self.earliest, self.folded, self.nodes_earliest] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for optional in [self.nodes, self.pending] {
            out.push(u8::from(optional.is_some()));
            out.extend_from_slice(&optional.unwrap_or_default().to_be_bytes());
        }
        for sealed in [self.latest, self.safe, self.finalized] {
            let (number, hash) = sealed.map(|it| (it.number, it.hash)).unwrap_or_default();
            out.push(u8::from(sealed.is_some()));
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(hash.as_slice());
        }
        if let Some(Anchor { number, hash, root, epoch, generation }) = self.anchor {
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(hash.as_slice());
            out.extend_from_slice(root.as_slice());
            out.extend_from_slice(&epoch.to_be_bytes());
            out.extend_from_slice(&generation.to_be_bytes());
        }
        out.extend_from_slice(&self.note);
        out
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let [format] = fields.take::<1>()?;
        if format != COMPLETE && format != PARTIAL {
            return Err(Error::UnknownStoreFormat { found: format, known: FORMAT });
        }
        let mut heads = Self {
            store_id: fields.take()?,
            commit: fields.number()?,
            earliest: fields.number()?,
            folded: fields.number()?,
            nodes_earliest: fields.number()?,
            nodes: fields.optional_number()?,
            pending: fields.optional_number()?,
            latest: fields.sealed()?,
            safe: fields.sealed()?,
            finalized: fields.sealed()?,
            anchor: None,
            note: Vec::new(),
        };
        if format == PARTIAL {
            heads.anchor = Some(fields.anchor()?);
        }
        heads.note = fields.0.to_vec();
        heads.check()?;
        Ok(heads)
    }

    /// Checks invariants of every commit. Loops over blocks rely on them to end.
    fn check(&self) -> Result<()> {
        let top = self.latest.map_or(0, |latest| latest.number);
        let at_most = |head: Option<BlockRef>| head.is_none_or(|head| head.number <= top);
        let sound = self.commit <= MOST_COMMITS
            && top < u64::MAX
            && self.earliest <= self.folded
            && self.folded <= top
            && self.nodes.is_none_or(|nodes| self.nodes_earliest <= nodes && nodes <= top)
            && self.anchor.is_none_or(|anchor| {
                anchor.number <= self.earliest && anchor.generation <= self.commit
            })
            && at_most(self.safe)
            && at_most(self.finalized);
        if sound {
            return Ok(());
        }
        Err(Error::StoreDamaged("its heads contradict each other".into()))
    }
}

/// The rest of a row, read field by field.
pub(super) struct Fields<'r>(pub &'r [u8]);

impl Fields<'_> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| damaged("a row is cut short"))?;
        self.0 = rest;
        Ok(*field)
    }

    pub fn number(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    pub fn hash(&mut self) -> Result<B256> {
        Ok(B256::from(self.take::<32>()?))
    }

    pub fn optional_number(&mut self) -> Result<Option<u64>> {
        let [present] = self.take::<1>()?;
        let number = self.number()?;
        optional(present, number, number == 0)
    }

    fn sealed(&mut self) -> Result<Option<BlockRef>> {
        let [present] = self.take::<1>()?;
        let sealed = BlockRef { number: self.number()?, hash: self.hash()? };
        optional(present, sealed, sealed.number == 0 && sealed.hash.is_zero())
    }

    fn anchor(&mut self) -> Result<Anchor> {
        let (number, hash, root) = (self.number()?, self.hash()?, self.hash()?);
        Ok(Anchor { number, hash, root, epoch: self.number()?, generation: self.number()? })
    }

    /// The number after the one in the row, for the next key.
    pub fn following(&mut self) -> Result<u64> {
        self.number()?.checked_add(1).ok_or_else(|| damaged("a row has the last of all keys"))
    }

    /// Fails if bytes are left.
    pub fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(damaged("a row is too long")) }
    }
}

/// Decodes an optional field; a missing one has to be all zeros.
fn optional<T>(present: u8, field: T, is_zero: bool) -> Result<Option<T>> {
    match present {
        0 if is_zero => Ok(None),
        1 => Ok(Some(field)),
        _ => Err(damaged("a field is neither there nor missing")),
    }
}

fn damaged(why: &str) -> Error {
    Error::StoreDamaged(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were() {
        let sealed = |number| Some(BlockRef { number, hash: B256::repeat_byte(number as u8) });
        let heads = Heads {
            commit: 9,
            latest: sealed(8),
            finalized: sealed(7),
            earliest: 1,
            folded: 6,
            nodes: Some(5),
            nodes_earliest: 2,
            pending: Some(9),
            note: b"python's".to_vec(),
            ..Heads::new([3; 16])
        };
        assert_eq!(Heads::decode(&heads.encode()), Ok(heads.clone()));
        assert!(Heads::decode(&heads.encode()[..40]).is_err());
    }

    #[test]
    fn only_a_partial_base_changes_the_row() {
        let complete = Heads { note: b"n".to_vec(), ..Heads::new([3; 16]) };
        assert_eq!((complete.encode()[0], complete.format()), (1, 1));
        let anchor = Anchor {
            number: 4,
            hash: B256::repeat_byte(1),
            root: B256::repeat_byte(2),
            epoch: 3,
            generation: 6,
        };
        let partial = Heads {
            commit: 6,
            latest: Some(BlockRef { number: 8, hash: B256::ZERO }),
            earliest: 4,
            folded: 5,
            anchor: Some(anchor),
            ..complete
        };
        assert_eq!(partial.encode()[0], 2);
        assert_eq!(Heads::decode(&partial.encode()), Ok(partial.clone()));
        for broken in [Anchor { number: 5, ..anchor }, Anchor { generation: 7, ..anchor }] {
            let row = Heads { anchor: Some(broken), ..partial.clone() }.encode();
            assert!(matches!(Heads::decode(&row), Err(Error::StoreDamaged(_))));
        }
    }

    #[test]
    fn heads_that_contradict_each_other_are_damage() {
        let at = |number| Some(BlockRef { number, hash: B256::ZERO });
        let sound = Heads {
            latest: at(8),
            earliest: 2,
            folded: 6,
            nodes: Some(7),
            nodes_earliest: 3,
            ..Heads::new([0; 16])
        };
        assert_eq!(Heads::decode(&sound.encode()), Ok(sound.clone()));
        let spoil: [fn(&mut Heads); 8] = [
            |heads| heads.commit = u64::MAX,
            |heads| heads.latest = Some(BlockRef { number: u64::MAX, hash: B256::ZERO }),
            |heads| heads.earliest = 7,
            |heads| heads.folded = 9,
            |heads| heads.nodes = Some(1 << 60),
            |heads| heads.nodes_earliest = 8,
            |heads| heads.safe = Some(BlockRef { number: 9, hash: B256::ZERO }),
            |heads| heads.latest = None,
        ];
        for (place, spoil) in spoil.into_iter().enumerate() {
            let mut heads = sound.clone();
            spoil(&mut heads);
            let read = Heads::decode(&heads.encode());
            assert!(matches!(read, Err(Error::StoreDamaged(_))), "{place}: {read:?}");
        }
    }

    #[test]
    fn a_field_is_there_or_missing() {
        let mut row = Heads::new([0; 16]).encode();
        const NODES: usize = 1 + 16 + 4 * 8;
        row[NODES] = 2;
        assert!(matches!(Heads::decode(&row), Err(Error::StoreDamaged(_))));
        row[NODES..NODES + 2].copy_from_slice(&[0, 1]);
        assert!(matches!(Heads::decode(&row), Err(Error::StoreDamaged(_))));
    }

    #[test]
    fn another_format_is_refused() {
        let mut row = Heads::new([0; 16]).encode();
        row[0] = FORMAT + 1;
        let refused = Error::UnknownStoreFormat { found: FORMAT + 1, known: FORMAT };
        assert_eq!(Heads::decode(&row), Err(refused));
    }
}
