//! What fuzzing asks of the store: rows of any bytes never panic, and no walk over them goes on
//! for ever.
//!
//! `row` tries the readers one by one, fast; `damaged` tries a whole store with some rows spoilt,
//! slowly; `commit` tries commits of a log on a sound store. All panic where a promise is broken. The programs are in `fuzz/`.

mod commits;
mod damage;
mod rows;
mod sample;

pub use commits::commit;
pub use damage::damaged;
pub use rows::row;
pub use sample::{make as make_sample, options as sample_options};

use crate::error::Error;

/// What may be said of a damaged store. An error that blames the caller is not among it.
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
