use alloy_primitives::{Address, B256, Bytes, LogData};
use proptest::prelude::*;

use super::*;
use crate::codec::receipt::{Receipt, ReceiptOutcome};

fn row(logs: Vec<alloy_primitives::Log>) -> Vec<u8> {
    let receipt = Receipt {
        tx_type: 2,
        outcome: ReceiptOutcome::Status(true),
        cumulative_gas_used: 21_000,
        logs,
        deposit_nonce: None,
        deposit_receipt_version: None,
    };
    let encoded = receipt.encode();
    [&1_u32.to_be_bytes()[..], &(encoded.len() as u32).to_be_bytes(), &encoded].concat()
}

#[test]
fn a_block_has_terms_of_addresses_and_of_topics_by_position() {
    let (at, one, two) = (Address::repeat_byte(1), B256::repeat_byte(2), B256::repeat_byte(3));
    let data = LogData::new_unchecked(vec![one, two, one], Bytes::from_static(b"data"));
    let log = alloy_primitives::Log { address: at, data };
    let mut terms = HashSet::new();
    add_terms(&row(vec![log.clone(), log]), &mut terms).expect("receipts");
    let expected = [
        ANY,
        term(0, at.as_slice()),
        term(1, one.as_slice()),
        term(2, two.as_slice()),
        term(3, one.as_slice()),
    ];
    assert_eq!(terms, HashSet::from(expected));
}

#[test]
fn terms_of_addresses_are_sorted_and_each_is_there_once() {
    let addresses = [7, 2, 9, 2].map(Address::repeat_byte);
    let mut expected = [2, 7, 9].map(|it| term(0, &[it; 20]));
    expected.sort_unstable();
    assert_eq!(address_terms(addresses.iter().map(|it| &it[..])), expected);
}

#[test]
fn a_block_without_logs_has_no_terms() {
    let mut terms = HashSet::new();
    add_terms(&row(vec![]), &mut terms).expect("receipts");
    assert!(terms.is_empty());
}

#[test]
fn a_log_with_more_than_four_topics_is_damage() {
    for (topics, is_sound) in [(4, true), (5, false), (300, false)] {
        let data = LogData::new_unchecked(vec![B256::ZERO; topics], Bytes::new());
        let log = alloy_primitives::Log { address: Address::ZERO, data };
        assert_eq!(add_terms(&row(vec![log]), &mut HashSet::new()).is_ok(), is_sound);
    }
}

#[test]
fn a_row_that_is_no_chunk_is_damage() {
    assert!(Chunk::new(&[]).is_err());
    assert!(Chunk::new(&[0; ENTRY + 1]).is_err());
}

proptest! {
    #[test]
    fn chunks_hold_all_entries_in_order(entries: Vec<(Term, u16)>) {
        let entries: Vec<u128> = entries.into_iter().map(|(term, at)| entry(term, at)).collect();
        let mut read = Vec::new();
        for chunk in chunks(entries.clone()) {
            let chunk = Chunk::new(&chunk).expect("a chunk");
            read.extend((0..chunk.len()).map(|at| chunk.at(at)));
        }
        let mut expected = entries;
        expected.sort_unstable();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn seeking_finds_the_first_that_is_not_below(mut entries: Vec<(u8, u8)>, wanted: (u8, u8)) {
        entries.push(wanted);
        entries.sort_unstable();
        let number = |(term, at): (u8, u8)| entry(term.into(), at.into());
        let bytes: Vec<u8> = entries.iter().flat_map(|it| entry_bytes(number(*it))).collect();
        let found = Chunk::new(&bytes).expect("a chunk").seek(number(wanted));
        prop_assert_eq!(found, entries.partition_point(|it| *it < wanted));
    }
}
