//! Decoding: every length is checked against the remaining input before anything is copied.

use alloy_primitives::{B256, Bytes, keccak256};

use super::*;
use crate::error::{Error, Result};
use crate::store::batch::{Batch, Codes, NewAnchor, NewBlock, NewPartial, NewState, Parent, Step};
use crate::store::check_row_key;
use crate::store::entry::{self, ACCOUNT, Entries, INDEX, MAX_INDEX_VALUE, RETIRED};
use crate::store::heads::MOST_COMMITS;

impl Batch {
    /// Decodes the body of the commit that follows `before` and makes `after`.
    ///
    /// # Errors
    ///
    /// `Undecodable` with the reason for any body that `encode` does not produce.
    pub fn decode(body: &[u8], before: u64, after: u64) -> Result<Self> {
        if before >= after || after > MOST_COMMITS {
            return Err(broken(format!("commit {after} does not follow {before}")));
        }
        let mut reader = Reader { rest: body, drawn: before, last: after };
        let mut steps = Vec::new();
        let mut fold_all = false;
        while let Some(kind) = reader.kind() {
            if fold_all {
                return Err(broken("a step follows the last one"));
            }
            match kind {
                FOLD_ALL => fold_all = true,
                _ => steps.push(reader.step(kind)?),
            }
        }
        let read = Some(steps.len());
        Ok(Self { made_at: before, last: after, fold_all, steps, read })
    }
}

fn broken(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "commit", why: why.into() }
}

struct Reader<'b> {
    rest: &'b [u8],
    /// The last number that a step has used. Each number is higher than the one before, up to
    /// `last`.
    drawn: u64,
    last: u64,
}

impl<'b> Reader<'b> {
    fn kind(&mut self) -> Option<u8> {
        let (kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*kind)
    }

    fn step(&mut self, kind: u8) -> Result<Step> {
        Ok(match kind {
            APPEND => Step::Append(Box::new(self.append()?)),
            EXTEND => Step::Extend(Box::new(self.extend()?)),
            SEAL => Step::Seal { partial: self.number()?, hash: self.hash()? },
            DROP => Step::Drop { partials: self.partials()?, reason: self.text()? },
            REVIVE => Step::Revive { partials: self.partials()? },
            FORGET => Step::Forget { partials: self.partials()? },
            REWIND => Step::Rewind { block: self.number()? },
            PENDING => Step::Pending(self.pending()?),
            SAFE => Step::Safe(self.number()?),
            FINALIZED => Step::Finalized(self.number()?),
            NOTE => Step::Note(self.take::<DEADLINE>()?.to_vec()),
            LONGER_NOTE => Step::Note(self.longer_note()?),
            PUT => Step::Put { key: self.row_key()?, value: self.bytes()?.to_vec() },
            DELETE => Step::Delete { key: self.row_key()? },
            ANCHOR => Step::Anchor(Box::new(self.anchor()?)),
            other => return Err(broken(format!("unknown step {other}"))),
        })
    }

    fn append(&mut self) -> Result<NewBlock> {
        let number = self.drawn()?;
        let (block, hash) = (self.number()?, self.hash()?);
        Ok(NewBlock { number, block, hash, state: self.state()? })
    }

    fn anchor(&mut self) -> Result<NewAnchor> {
        let number = self.drawn()?;
        let (block, hash, root) = (self.number()?, self.hash()?, self.hash()?);
        let epoch = self.number()?;
        let anew = match self.take()? {
            [0] => false,
            [1] => true,
            _ => return Err(broken("an anchor is neither the first nor another one")),
        };
        let state = self.state()?;
        if !state.is_of_index() {
            return Err(broken("an anchor has state"));
        }
        Ok(NewAnchor { number, block, hash, root, epoch, anew, state })
    }

    fn extend(&mut self) -> Result<NewPartial> {
        let number = self.drawn()?;
        let (block, index, hash) = (self.number()?, self.number()?, self.hash()?);
        let [on] = self.take()?;
        let parent = match (on, self.number()?) {
            (ON_SEALED, block) => Parent::Sealed(block),
            (ON_PARTIAL, partial) => Parent::Partial(partial),
            (STACKED, partial) => Parent::Stacked(partial, self.hash()?),
            (other, _) => return Err(broken(format!("a partial block stands on {other}"))),
        };
        Ok(NewPartial { number, block, index, hash, parent, state: self.state()? })
    }

    fn state(&mut self) -> Result<NewState> {
        Ok(NewState::new(self.entries()?, self.codes()?))
    }

    fn entries(&mut self) -> Result<Entries> {
        let mut entries = Vec::new();
        let mut before: &[u8] = &[];
        for _ in 0..self.length()? {
            let [length] = self.take()?;
            let key = self.slice(usize::from(length))?;
            let length = usize::from(u16::from_be_bytes(self.take()?));
            let value = self.slice(length)?;
            if key <= before {
                return Err(broken("entries are not in the order of their keys"));
            }
            check_entry(key, value).map_err(|error| broken(error.to_string()))?;
            entries.push((key.to_vec(), value.to_vec()));
            before = key;
        }
        // Sorted entries become a map without a search.
        Ok(entries.into_iter().collect())
    }

    fn codes(&mut self) -> Result<Codes> {
        let mut codes = Codes::new();
        for _ in 0..self.length()? {
            let (hash, code) = (self.hash()?, self.bytes()?);
            if codes.last_key_value().is_some_and(|(before, _)| hash <= *before) {
                return Err(broken("codes are not in the order of their hashes"));
            }
            // No root covers the code itself, only its hash.
            if keccak256(code) != hash {
                return Err(broken(format!("code has another hash than {hash}")));
            }
            codes.insert(hash, Bytes::copy_from_slice(code));
        }
        Ok(codes)
    }

    fn pending(&mut self) -> Result<Option<u64>> {
        let [there] = self.take()?;
        match (there, self.number()?) {
            (0, 0) => Ok(None),
            (1, partial) => Ok(Some(partial)),
            _ => Err(broken("a pending block is neither there nor missing")),
        }
    }

    fn longer_note(&mut self) -> Result<Vec<u8>> {
        let note = self.bytes()?;
        if note.len() == DEADLINE {
            return Err(broken("a note has another kind"));
        }
        Ok(note.to_vec())
    }

    fn row_key(&mut self) -> Result<Vec<u8>> {
        let key = self.bytes()?;
        check_row_key(key).map_err(|error| broken(error.to_string()))?;
        Ok(key.to_vec())
    }

    fn text(&mut self) -> Result<String> {
        let text = std::str::from_utf8(self.bytes()?);
        text.map(str::to_owned).map_err(|_| broken("a reason is no text"))
    }

    fn partials(&mut self) -> Result<Vec<u64>> {
        let count = self.length()?;
        let listed = self.slice(count.checked_mul(8).ok_or_else(cut_short)?)?;
        let (numbers, _) = listed.as_chunks::<8>();
        Ok(numbers.iter().map(|number| u64::from_be_bytes(*number)).collect())
    }

    /// A number that the batch has allocated.
    fn drawn(&mut self) -> Result<u64> {
        let number = self.number()?;
        if number <= self.drawn || number > self.last {
            let (drawn, last) = (self.drawn, self.last);
            return Err(broken(format!("number {number} is not among {drawn} + 1 to {last}")));
        }
        self.drawn = number;
        Ok(number)
    }

    fn bytes(&mut self) -> Result<&'b [u8]> {
        let length = self.length()?;
        self.slice(length)
    }

    fn length(&mut self) -> Result<usize> {
        Ok(u32::from_be_bytes(self.take()?) as usize)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn hash(&mut self) -> Result<B256> {
        Ok(B256::from(self.take::<32>()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*field)
    }

    fn slice(&mut self, length: usize) -> Result<&'b [u8]> {
        let (field, rest) = self.rest.split_at_checked(length).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(field)
    }
}

fn cut_short() -> Error {
    broken("it is cut short")
}

/// Checks that a store can read the entry back.
fn check_entry(key: &[u8], value: &[u8]) -> Result<()> {
    entry::check_key(key)?;
    match key[0] {
        ACCOUNT => entry::decode_account(value).map(drop),
        INDEX if value.len() <= MAX_INDEX_VALUE => Ok(()),
        RETIRED if value.is_empty() => Ok(()),
        INDEX | RETIRED => Err(Error::StoreDamaged("an entry has too long a value".into())),
        _ => entry::decode_slot(value).map(drop),
    }
}
