//! Single rows: a row that is decoded is encoded again to the same bytes; any other is damage.

use alloy_primitives::{Address, B256, keccak256};
use alloy_trie::Nibbles;

use super::is_about_the_store;
use crate::error::{Error, Result};
use crate::logs::filter::LogFilter;
use crate::logs::found::{Allowance, Found, Reached, read_on};
use crate::logs::index::{Chunk, add_terms};
use crate::store::delta;
use crate::store::entry;
use crate::store::floors::Floors;
use crate::store::heads::Heads;
use crate::store::log_row::LogRow;
use crate::store::nodes::next_change;
use crate::store::record::{Garbage, Partial, SealedBlock};
use crate::trie::{NodeReader, NodeWrites, Owner, Rows, Trie, leaf};

/// The first byte selects the decoder for the other bytes.
pub fn row(bytes: &[u8]) {
    let Some((kind, row)) = bytes.split_first() else { return };
    match kind {
        b'h' => same(row, Heads::decode(row), Heads::encode),
        b's' => same(row, SealedBlock::decode(row), SealedBlock::encode),
        b'p' => same(row, Partial::decode(row), Partial::encode),
        b'f' => same(row, Floors::decode(row), Floors::encode),
        b'g' => same(row, LogRow::decode(row), LogRow::encode),
        b't' => same(row, Garbage::decode(row), Garbage::encode),
        b'a' => account(row),
        b'v' => same(row, entry::decode_slot(row), entry::encode_slot),
        b'k' => same(row, entry::parse_slot_key(row), |(address, generation, slot)| {
            entry::slot_key(address, *generation, slot).to_vec()
        }),
        b'c' => drop(damage_only(delta::try_chunk(row))),
        b'n' => changes(row),
        b'l' => drop(damage_only(leaf::storage_root_of(row))),
        b'w' => trie(row),
        b'i' => index_chunk(row),
        b'r' => logs(row),
        _ => {}
    }
}

fn damage_only<T>(read: Result<T>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(Error::StoreDamaged(_) | Error::UnknownStoreFormat { .. }) => None,
        Err(other) => panic!("{other:?}"),
    }
}

fn same<T>(row: &[u8], read: Result<T>, encode: impl Fn(&T) -> Vec<u8>) {
    if let Some(value) = damage_only(read) {
        assert_eq!(encode(&value), row);
    }
}

fn account(row: &[u8]) {
    if let Some(Some(account)) = damage_only(entry::decode_account(row)) {
        let again = entry::decode_account(&entry::encode_account(&account));
        assert_eq!(again, Ok(Some(account)));
    }
}

/// A list of changes ends, and every key in it fits into a table key.
fn changes(row: &[u8]) {
    let mut rest = row;
    while !rest.is_empty() {
        let Some((_, key, after)) = damage_only(next_change(rest)) else { return };
        assert!(after.len() < rest.len());
        assert_eq!(entry::versioned(key, 7).len(), key.len() + 8);
        rest = after;
    }
}

/// Reads, sets and deletes one key in a trie whose root is this row and whose other nodes are
/// embedded in it.
fn trie(row: &[u8]) {
    let Some((key, root)) = row.split_first_chunk::<32>() else { return };
    let key = Nibbles::unpack(B256::from(*key));
    let rows = Rows { owner: Owner::Accounts, nodes: &OneRow(root) };
    let open = || Trie::open(keccak256(root));
    let mut read = open();
    fine(read.get(&key, &rows).map(drop));
    assert_eq!(read.root(), keccak256(root));
    for value in [Some(vec![1; 40]), Some(vec![1]), None] {
        let mut trie = open();
        if fine(trie.update(&key, &rows, |_| Ok(value))) {
            trie.root();
            trie.take_writes(&Owner::Accounts, &mut NodeWrites::default().nodes);
        }
    }
}

/// Searches a chunk of the log index for its entries.
fn index_chunk(row: &[u8]) {
    let Some(chunk) = damage_only(Chunk::new(row)) else { return };
    for at in 0..chunk.len().min(64) {
        assert!(chunk.seek(chunk.at(at)) <= chunk.len());
    }
    assert!(!chunk.is_empty());
}

/// The logs of a block are the same whether read at once or one by one. The first two bytes are the
/// length of the row of transactions, which the row of receipts follows.
fn logs(row: &[u8]) {
    let Some((length, rest)) = row.split_first_chunk::<2>() else { return };
    let (transactions, receipts) =
        rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
    for addresses in [Vec::new(), vec![Address::repeat_byte(0x11)]] {
        let filter = LogFilter::new(addresses, Vec::new());
        let portion = (transactions, receipts);
        let all = read_logs(&filter, portion, Allowance { items: usize::MAX, bytes: usize::MAX });
        let each = read_logs(&filter, portion, Allowance { items: 1, bytes: 1 });
        assert_eq!(all, each);
    }
    damage_only(add_terms(receipts, &mut Default::default()));
}

fn read_logs(
    filter: &LogFilter,
    portion: (&[u8], &[u8]),
    most: Allowance,
) -> Option<(Vec<u8>, usize)> {
    let (mut reached, mut text, mut count) = (Reached::default(), Vec::new(), 0);
    while reached.portion == 0 {
        let (before, mut left, mut found) = (reached, most, Found::default());
        damage_only(read_on(filter, portion, b"", &mut reached, &mut left, &mut found))?;
        assert_ne!(before, reached, "no step without progress");
        if found.count > 0 && count > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&found.text);
        count += found.count;
    }
    Some((text, count))
}

fn fine(done: Result<()>) -> bool {
    match done {
        Ok(()) => true,
        Err(error) if is_about_the_store(&error) => false,
        Err(other) => panic!("{other:?}"),
    }
}

struct OneRow<'r>(&'r [u8]);

impl NodeReader for OneRow<'_> {
    fn node(&self, _: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        Ok(path.is_empty().then(|| self.0.to_vec()))
    }
}
