//! Arbitrary bytes as commits of a log on a valid store.
//!
//! A body is rejected, or encoded again to the same bytes. A store accepts or refuses it as a
//! whole.

use super::is_about_the_store;
use crate::error::Error;
use crate::store::{Batch, Store};

/// The maximum count of numbers drawn by a batch.
const DRAWN: u64 = 16;

/// Applies a body to a valid store without committing it.
pub fn commit(store: &Store, body: &[u8]) {
    let before = store.view().expect("a view").heads().commit;
    let mut batch = match Batch::decode(body, before, before + DRAWN) {
        Ok(batch) => batch,
        Err(Error::Undecodable { .. }) => return,
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(batch.encode().as_deref(), Ok(body));
    match store.commit_if(&mut batch, None, || Err(Error::CommitDeclined)) {
        Err(Error::CommitDeclined) => {}
        Err(Error::StoreDamaged(why)) => panic!("{why}"),
        Err(error) if is_about_the_store(&error) => {}
        other => panic!("{other:?}"),
    }
}
