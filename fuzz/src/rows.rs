//! Fuzzes single rows of the store. The first byte of an input selects the kind.

pub fn run(data: &[u8]) {
    foreblock_engine::store::fuzzing::row(data);
}
