//! Fuzzing of the store: arbitrary rows never cause a panic or an endless scan.
//!
//! `row` tests single decoders and is fast. `damaged` tests a complete store with corrupted rows
//! and is slow. `commit` tests commits of a log on a valid store. All panic if a property is
//! violated. The fuzz targets are in `fuzz/`.

mod commits;
mod damage;
mod rows;
mod sample;

pub use commits::commit;
pub use damage::damaged;
pub use rows::row;
pub use sample::{make as make_sample, options as sample_options};

use crate::error::Error;

/// True for errors that a damaged store may cause. Errors that blame the caller are excluded.
fn is_about_the_store(error: &Error) -> bool {
    use Error::*;
    matches!(
        error,
        StoreDamaged(_)
            | UnknownStoreFormat { .. }
            | UnknownBlock(_)
            | UnknownPartial(_)
            | DroppedPartial(_)
            | PrunedState { .. }
            | MissingNode(_)
            | MissingCode(_)
            | RefusedCommit(_)
    )
}
