//! Rows of the store, one at a time. The first byte of an input names the kind.

pub fn run(data: &[u8]) {
    foreblock_engine::store::fuzzing::row(data);
}
