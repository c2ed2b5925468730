//! Checks the heads, the sealed blocks and the partial blocks.

use super::Check;
use crate::error::{Error, Result};
use crate::store::heads::{BlockRef, Fields};
use crate::store::lmdb;
use crate::store::record::{Garbage, Partial, SealedBlock, Start, Status};
use crate::store::tables::HEADS;

impl Check {
    pub(super) fn heads(&self) -> Result<()> {
        let tables = &self.view.lease.tables;
        let rows = self.view.lease.read(|txn| {
            let sealed = tables.sealed.len(txn).map_err(lmdb)?;
            Ok(sealed + tables.partials.len(txn).map_err(lmdb)?)
        })?;
        self.progress.begin(rows);
        self.named_blocks()?;
        self.pending()?;
        self.sealed_rows()?;
        self.partial_rows()?;
        self.trash()
    }

    fn named_blocks(&self) -> Result<()> {
        let heads = self.view.heads();
        let named =
            [("latest", heads.latest), ("safe", heads.safe), ("finalized", heads.finalized)];
        for (name, head) in named {
            let Some(BlockRef { number, hash }) = head else { continue };
            let Some(sealed) =
                self.reported("sealed", &number.to_be_bytes(), self.view.sealed(number))?
            else {
                self.progress.report(
                    "meta",
                    HEADS,
                    format!("{name} is block {number}, which is not sealed"),
                );
                continue;
            };
            if sealed.hash != hash {
                let why = format!("{name} is block {number} {hash}, sealed is {}", sealed.hash);
                self.progress.report("meta", HEADS, why);
            }
        }
        Ok(())
    }

    fn pending(&self) -> Result<()> {
        let heads = self.view.heads();
        let Some(number) = heads.pending else { return Ok(()) };
        let report = |why: String| self.progress.report("meta", HEADS, why);
        match self.reported("partials", &number.to_be_bytes(), self.view.partial(number))? {
            None => report(format!("pending is partial {number}, which is not there")),
            Some(partial) => {
                if partial.status != Status::Live {
                    report(format!("pending is partial {number}, which is not live"));
                }
                if heads.latest.is_some_and(|latest| partial.block <= latest.number) {
                    report(format!(
                        "pending is partial {number} of block {}, which is not above latest",
                        partial.block
                    ));
                }
                // A partial below it may have been dropped; then there is no pending state.
                match self.view.state_of_partial(number).map(drop) {
                    Err(Error::DroppedPartial(_)) => {}
                    state => self.reported("partials", &number.to_be_bytes(), state)?,
                }
            }
        }
        Ok(())
    }

    /// Checks that sealed blocks are consecutive and end at the latest.
    fn sealed_rows(&self) -> Result<()> {
        let heads = self.view.heads();
        let mut last: Option<u64> = None;
        self.view.lease.read(|txn| {
            for row in self.view.lease.tables.sealed.iter(txn).map_err(lmdb)? {
                let (key, row) = row.map_err(lmdb)?;
                self.progress.advance()?;
                let report = |why: String| self.progress.report("sealed", key, why);
                let Ok(number) = <[u8; 8]>::try_from(key).map(u64::from_be_bytes) else {
                    report("the key is no number of a block".into());
                    continue;
                };
                match SealedBlock::decode(row) {
                    Err(why) => report(why.to_string()),
                    Ok(sealed) if sealed.delta > heads.commit => {
                        report(format!("block {number} has a delta of a later commit"));
                    }
                    Ok(_) => {}
                }
                if let Some(last) = last
                    && number != last + 1
                {
                    report(format!("block {number} follows block {last}"));
                }
                last = Some(number);
            }
            Ok(())
        })?;
        let latest = heads.latest.map(|latest| latest.number);
        if last != latest {
            let show = |block: Option<u64>| block.map_or("none".into(), |it| it.to_string());
            let why =
                format!("latest is block {}, the last sealed is {}", show(latest), show(last));
            self.progress.report("meta", HEADS, why);
        }
        Ok(())
    }

    fn partial_rows(&self) -> Result<()> {
        let commit = self.view.heads().commit;
        let tables = self.view.lease.tables;
        self.view.lease.read(|txn| {
            for row in tables.partials.iter(txn).map_err(lmdb)? {
                let (key, row) = row.map_err(lmdb)?;
                self.progress.advance()?;
                let read =
                    Fields(key).number().and_then(|number| Ok((number, Partial::decode(row)?)));
                let Some((number, partial)) = self.reported("partials", key, read.map(Some))?
                else {
                    continue;
                };
                let report = |why: String| self.progress.report("partials", key, why);
                if number > commit {
                    report(format!("partial {number} is of a later commit than {commit}"));
                }
                if let Start::Partial(below) = partial.start
                    && below >= number
                {
                    report(format!("partial {number} stands on {below}, a later one"));
                }
                if partial.status == Status::Sealed {
                    let sealed = tables.sealed_block(txn, partial.block);
                    let sealed = self.reported("sealed", &partial.block.to_be_bytes(), sealed)?;
                    if sealed.is_none_or(|sealed| sealed.delta != number) {
                        report(format!(
                            "block {} is not sealed by partial {number}",
                            partial.block
                        ));
                    }
                }
            }
            Ok(())
        })
    }

    fn trash(&self) -> Result<()> {
        self.view.lease.read(|txn| {
            for row in self.view.lease.tables.trash.iter(txn).map_err(lmdb)? {
                let (key, row) = row.map_err(lmdb)?;
                self.reported("trash", key, Garbage::decode(row).map(drop))?;
            }
            Ok(())
        })
    }
}
