//! Commits of a log, of any bytes, on a sound store.
//!
//! A body is refused, or written again as it was; and a store takes it or refuses it whole.

use super::is_about_the_store;
use crate::error::Error;
use crate::store::{Batch, Store};

/// Numbers that a batch may have drawn.
const DRAWN: u64 = 16;

/// Tries a body on a sound store, which stays as it is.
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
