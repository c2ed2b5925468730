//! A batch as bytes: the body of a commit in a log, which every store of the log applies.
//!
//! A body is the steps of a batch, one after the other, each a kind and its fields. The numbers
//! of the commits before and after it and the version of this format, `FORMAT`, go with the
//! message that carries it. Numbers are big-endian; `bytes` are a length (4) and the content;
//! `entries` are a count (4), then each a length (1), the key, a length (2), the value, as in
//! `entry`, those alone that the index changed; `codes` are a count (4), then each the hash (32)
//! and `bytes`; `partials` are a count (4) and their numbers (8 each).
//!
//! | kind        | fields                                                                    |
//! |-------------|---------------------------------------------------------------------------|
//! | 1 append    | number (8), block (8), hash (32), entries, codes                          |
//! | 2 extend    | number (8), block (8), index (8), hash (32), on (1: 0 sealed, 1 partial,  |
//! |             | 2 stacked), its number (8), parent hash (32, stacked only), entries, codes|
//! | 3 seal      | partial (8), hash (32)                                                    |
//! | 4 drop      | partials, reason as bytes                                                 |
//! | 5 revive    | partials                                                                  |
//! | 6 rewind    | block (8)                                                                 |
//! | 7 pending   | there (1), partial (8)                                                    |
//! | 8 safe      | block (8)                                                                 |
//! | 9 finalized | block (8)                                                                 |
//! | 10 note     | boot id (16), monotonic nanoseconds (8)                                   |
//! | 11 put      | key as bytes, value as bytes                                              |
//! | 12 delete   | key as bytes                                                              |
//! | 13 settle   | none; the last step                                                       |
//! | 14 forget   | partials                                                                  |
//! | 15 notes    | a note of another length than that of kind 10, as bytes                   |
//! | 16 anchor   | number (8), block (8), hash (32), root (32), epoch (8), anew (1), entries |
//! |             | of the index, codes, of which there are none                              |
//!
//! What is part of the log, and what is not:
//!
//! - *forget* changes which partials can be revived, so it has a kind.
//! - *Notes* have grown: the deadline of the pending block may be followed by the quiet indices
//!   after its last partial. Those are no more local than a partial is, so the note is carried
//!   whole; what a commit here does with it is nothing, since the deadline is by the clock of
//!   another machine. Who follows writes a note of its own (`Batch::writers_note`).
//! - What was *learned* of a partial base is left out: a store of the log asks for it by itself.
//! - *Nodes* of the trie are left out: a store computes them from the deltas, as after a crash.
//! - *Local rows* (`Batch::put_local`) are left out: how far the indices of logs and of addresses
//!   have come is another matter in every store, and so are their sections, which are written
//!   outside of commits. Who follows lowers its own at a rewind (`Batch::rewinds_to`).
//! - Rows of a dev chain, of snapshots and of loaded state, and the deletion of rows for their
//!   age, are puts and deletes like any other.
//! - `Store::load` is no commit: a store that was filled by it begins its log with a copy.
//!
//! A body has one form: whatever is read is written again as the same bytes. Reading refuses
//! everything else, takes nothing on trust that a store would keep, and no more memory than a
//! small multiple of what it is given.

mod decode;
mod encode;

#[cfg(test)]
mod tests;

/// Of bodies. One that has another is not read.
pub const FORMAT: u8 = 1;

const APPEND: u8 = 1;
const EXTEND: u8 = 2;
const SEAL: u8 = 3;
const DROP: u8 = 4;
const REVIVE: u8 = 5;
const REWIND: u8 = 6;
const PENDING: u8 = 7;
const SAFE: u8 = 8;
const FINALIZED: u8 = 9;
const NOTE: u8 = 10;
const PUT: u8 = 11;
const DELETE: u8 = 12;
const SETTLE: u8 = 13;
const FORGET: u8 = 14;
const LONGER_NOTE: u8 = 15;
const ANCHOR: u8 = 16;

/// A deadline: the boot id of a machine and its monotonic time.
const DEADLINE: usize = 16 + 8;

const ON_SEALED: u8 = 0;
const ON_PARTIAL: u8 = 1;
const STACKED: u8 = 2;
