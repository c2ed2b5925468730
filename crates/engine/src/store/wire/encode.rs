//! Encoding: the steps that are part of the log, unchanged.

use super::*;
use crate::error::{Error, Result};
use crate::store::batch::{Batch, NewAnchor, NewBlock, NewPartial, NewState, Parent, Step};

impl Batch {
    /// The body of the commit. Steps that were added to a decoded batch are omitted.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an index row is too long or a row has 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let steps = &self.steps[..self.read.unwrap_or(self.steps.len())];
        let mut body = Body(Vec::with_capacity(4096));
        steps.iter().try_for_each(|step| body.step(step))?;
        if self.fold_all {
            body.0.push(FOLD_ALL);
        }
        Ok(body.0)
    }
}

struct Body(Vec<u8>);

impl Body {
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Append(block) => return self.append(block),
            Step::Extend(partial) => return self.extend(partial),
            Step::Seal { partial, hash } => {
                self.number(SEAL, *partial);
                self.0.extend_from_slice(hash.as_slice());
            }
            Step::Drop { partials, reason } => {
                self.partials(DROP, partials)?;
                self.bytes(reason.as_bytes())?;
            }
            Step::Revive { partials } => self.partials(REVIVE, partials)?,
            Step::Forget { partials } => self.partials(FORGET, partials)?,
            Step::Rewind { block } => self.number(REWIND, *block),
            Step::Pending(partial) => {
                self.0.extend_from_slice(&[PENDING, u8::from(partial.is_some())]);
                self.0.extend_from_slice(&partial.unwrap_or_default().to_be_bytes());
            }
            Step::Safe(block) => self.number(SAFE, *block),
            Step::Finalized(block) => self.number(FINALIZED, *block),
            Step::Note(note) if note.len() == DEADLINE => {
                self.0.push(NOTE);
                self.0.extend_from_slice(note);
            }
            Step::Note(note) => {
                self.0.push(LONGER_NOTE);
                self.bytes(note)?;
            }
            Step::Put { key, value } => {
                self.0.push(PUT);
                self.bytes(key)?;
                self.bytes(value)?;
            }
            Step::Delete { key } => {
                self.0.push(DELETE);
                self.bytes(key)?;
            }
            Step::Anchor(anchor) => return self.anchor(anchor),
            Step::Nodes { .. } | Step::PutLocal { .. } | Step::Learn(_) => {}
        }
        Ok(())
    }

    fn append(&mut self, new: &NewBlock) -> Result<()> {
        self.number(APPEND, new.number);
        self.0.extend_from_slice(&new.block.to_be_bytes());
        self.0.extend_from_slice(new.hash.as_slice());
        self.state(&new.state)
    }

    fn anchor(&mut self, new: &NewAnchor) -> Result<()> {
        self.number(ANCHOR, new.number);
        self.0.extend_from_slice(&new.block.to_be_bytes());
        self.0.extend_from_slice(new.hash.as_slice());
        self.0.extend_from_slice(new.root.as_slice());
        self.0.extend_from_slice(&new.epoch.to_be_bytes());
        self.0.push(u8::from(new.anew));
        self.state(&new.state)
    }

    fn extend(&mut self, new: &NewPartial) -> Result<()> {
        self.number(EXTEND, new.number);
        self.0.extend_from_slice(&new.block.to_be_bytes());
        self.0.extend_from_slice(&new.index.to_be_bytes());
        self.0.extend_from_slice(new.hash.as_slice());
        match new.parent {
            Parent::Sealed(block) => self.number(ON_SEALED, block),
            Parent::Partial(partial) => self.number(ON_PARTIAL, partial),
            Parent::Stacked(partial, parent_hash) => {
                self.number(STACKED, partial);
                self.0.extend_from_slice(parent_hash.as_slice());
            }
        }
        self.state(&new.state)
    }

    fn state(&mut self, new: &NewState) -> Result<()> {
        let entries = new.entries()?;
        self.length(entries.len())?;
        for (key, value) in entries {
            // `entry` keeps both lengths within their fields.
            self.0.push(key.len() as u8);
            self.0.extend_from_slice(key);
            self.0.extend_from_slice(&(value.len() as u16).to_be_bytes());
            self.0.extend_from_slice(value);
        }
        self.length(new.codes.len())?;
        for (hash, code) in &new.codes {
            self.0.extend_from_slice(hash.as_slice());
            self.bytes(code)?;
        }
        Ok(())
    }

    /// Writes a kind and the number that follows it.
    fn number(&mut self, kind: u8, number: u64) {
        self.0.push(kind);
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn partials(&mut self, kind: u8, partials: &[u64]) -> Result<()> {
        self.0.push(kind);
        self.length(partials.len())?;
        partials.iter().for_each(|partial| self.0.extend_from_slice(&partial.to_be_bytes()));
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.length(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn length(&mut self, length: usize) -> Result<()> {
        let length = u32::try_from(length)
            .map_err(|_| Error::invalid(format!("{length} are more than a log has room for")))?;
        self.0.extend_from_slice(&length.to_be_bytes());
        Ok(())
    }
}
