//! Replays every input of the corpus: seeds, and inputs that violated an invariant.

use std::fs;
use std::path::Path;

use foreblock_fuzz::{commits, decoders, readers, rows, store};

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut count = 0;
    for file in fs::read_dir(folder).expect("a corpus") {
        let path = file.expect("a file").path();
        println!("{}", path.display());
        run(&fs::read(&path).expect("an input"));
        count += 1;
    }
    assert!(count >= 10, "only {count} inputs");
}

#[test]
fn commits_keep_their_promises() {
    replay("commits", commits::run);
}

#[test]
fn decoders_keep_their_promises() {
    replay("decoders", decoders::run);
}

#[test]
fn readers_keep_their_promises() {
    replay("readers", readers::run);
}

#[test]
fn rows_keep_their_promises() {
    replay("rows", rows::run);
}

#[test]
fn a_damaged_store_keeps_its_promises() {
    replay("store", store::run);
}
