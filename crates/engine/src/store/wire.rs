//! A batch as bytes: the body of a commit in a log, which every store of the log applies.
//!
//! A body is the sequence of the steps of a batch, each a kind and its fields. The message that
//! carries it has the numbers of the commits before and after it, and the version of this format,
//! `FORMAT`. Numbers are big-endian. `bytes` is a length (4) and the content. `entries` is a count
//! (4), then for each entry a length (1), the key, a length (2) and the value, as in `entry`; a
//! partial has only the changes of its own index. `codes` is a count (4), then for each code the
//! hash (32) and `bytes`. `partials` is a count (4) and their numbers (8 each).
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
//! | 7 pending   | present (1), partial (8)                                                  |
//! | 8 safe      | block (8)                                                                 |
//! | 9 finalized | block (8)                                                                 |
//! | 10 note     | boot id (16), monotonic nanoseconds (8)                                   |
//! | 11 put      | key as bytes, value as bytes                                              |
//! | 12 delete   | key as bytes                                                              |
//! | 13 fold_all | none; the last step                                                       |
//! | 14 forget   | partials                                                                  |
//! | 15 notes    | a note whose length differs from that of kind 10, as bytes                |
//! | 16 anchor   | number (8), block (8), hash (32), root (32), epoch (8), replaces (1),     |
//! |             | entries (index rows only), codes (always empty)                           |
//!
//! The log includes or omits the following:
//!
//! - *Forget* changes which partials can be revived, so it is included.
//! - *Notes* are included whole: the deadline of the pending block may be followed by the quiet
//!   indices after its last partial, which are not local. A commit of a decoded batch does not
//!   apply the note, since the deadline refers to the clock of another machine. A follower writes a
//!   note of its own (`Batch::writers_note`).
//! - *Learned* state of a partial base is omitted: each store of the log fetches it itself.
//! - *Nodes* of the trie are omitted: a store computes them from the deltas, as after a crash.
//! - *Local rows* (`Batch::put_local`) are omitted: the progress of the log and address indices
//!   differs between stores, and so do their sections, which are written outside of commits. A
//!   follower lowers its own progress at a rewind (`Batch::rewinds_to`).
//! - Rows of a dev chain, of snapshots and of loaded state, and the deletion of expired rows, are
//!   ordinary puts and deletes.
//! - `Store::load` is not a commit: a store that was filled by it begins its log with a copy.
//!
//! The encoding is canonical: decoding a body and encoding it again gives the same bytes. Decoding
//! rejects everything else, verifies everything that a store would keep, and uses at most a small
//! multiple of the memory of its input.

mod decode;
mod encode;

#[cfg(test)]
mod tests;

/// The version of the body format. Bodies of other versions are rejected.
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
const FOLD_ALL: u8 = 13;
const FORGET: u8 = 14;
const LONGER_NOTE: u8 = 15;
const ANCHOR: u8 = 16;

/// A deadline: the boot id of a machine and its monotonic time.
const DEADLINE: usize = 16 + 8;

const ON_SEALED: u8 = 0;
const ON_PARTIAL: u8 = 1;
const STACKED: u8 = 2;
