//! Fuzzes the decoders of transactions, receipts, headers, blocks and deposit events.
//!
//! A decoded value must encode to the same bytes, have their hash, and take no more memory than
//! their length justifies. The first byte of an input selects the decoder.

use alloy_consensus::{EthereumTxEnvelope, TxEip4844};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{Address, Log, LogData, keccak256};
use foreblock_engine::abi;
use foreblock_engine::codec::block::{Block, decode_block, ommers_hash, transactions_root};
use foreblock_engine::codec::header::Header;
use foreblock_engine::codec::receipt::Receipt;
use foreblock_engine::codec::requests::{DEPOSIT_EVENT, deposit_requests};
use foreblock_engine::codec::transaction::{self, DEPOSIT_TYPE, POST_EXEC_TYPE};
use foreblock_engine::error::{Error, Result};

pub fn run(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind {
        b't' => transaction(bytes),
        b'r' => receipt(bytes),
        b'h' => header(bytes),
        b'b' => block(bytes),
        b'd' => deposits(bytes),
        _ => {}
    }
}

fn decoded<T>(read: Result<T>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(Error::Undecodable { .. }) => None,
        Err(other) => panic!("{other:?}"),
    }
}

fn transaction(bytes: &[u8]) {
    let is_sound = decoded(transaction::check(bytes)).is_some();
    let known = decoded(transaction::decode_known(bytes, Address::ZERO));
    let is_opaque = matches!(bytes, [POST_EXEC_TYPE, _, ..]);
    assert!(is_opaque || is_sound == known.is_some());
    let frontier = decoded(transaction::decode_at(bytes, false));
    let Some(found) = decoded(transaction::decode(bytes)) else { return };
    assert!(is_sound, "decoded, but not sound");
    assert_eq!(found.raw[..], *bytes);
    assert_eq!(found.hash, keccak256(bytes));
    assert_eq!(frontier.as_ref(), Some(&found), "a rule was lifted and it means something else");
    found.recovered_authorizations();
    found.v();
    let fields = found.fields();
    assert!(fields.input().len() <= bytes.len());
    if !matches!(bytes[0], DEPOSIT_TYPE | POST_EXEC_TYPE) {
        let theirs = EthereumTxEnvelope::<TxEip4844>::decode_2718_exact(bytes);
        let theirs = theirs.expect("alloy reads it as well");
        assert_eq!(*theirs.tx_hash(), found.hash);
    }
}

fn receipt(bytes: &[u8]) {
    let Some(found) = decoded(Receipt::decode(bytes)) else { return };
    assert_eq!(found.encode(), bytes);
    assert!(found.logs.len() <= bytes.len());
    let mut again = Vec::new();
    found.encode_with_bloom(&found.bloom(), &mut again);
    assert_eq!(again, bytes);
}

fn header(bytes: &[u8]) {
    let Some(found) = decoded(Header::decode(bytes)) else { return };
    assert_eq!(found.encode()[..], *bytes);
    assert_eq!(found.size(), bytes.len());
    assert_eq!(found.hash(), keccak256(bytes));
    let again = Header::new(found.fields().clone()).expect("gapless");
    assert_eq!(again.hash(), found.hash());
}

fn block(bytes: &[u8]) {
    let Some((found, consumed)) = decoded(decode_block(bytes)) else { return };
    assert_eq!(found.encode(), &bytes[..consumed]);
    assert_eq!(found.size, consumed);
    assert_eq!(found.hash, keccak256(found.header.encode()));
    assert!(found.transactions.len() + found.uncles.len() <= consumed);
    transactions_root(&found.transactions);
    ommers_hash(&found.uncles);
    for raw in &found.transactions {
        transaction::check(raw).expect("it was checked");
    }
    let Block { header, transactions, uncles, withdrawals, .. } = found.clone();
    assert_eq!(Block::new(header, transactions, uncles, withdrawals), found);
}

fn deposits(bytes: &[u8]) {
    let contract = Address::repeat_byte(0x21);
    let data = LogData::new_unchecked(vec![DEPOSIT_EVENT], bytes.to_vec().into());
    let logs = [Log { address: contract, data }];
    let Some(found) = decoded(deposit_requests(&logs, contract)) else { return };
    let fields =
        abi::decode_output("f()(bytes,bytes,bytes,bytes,bytes)", bytes).expect("it is valid ABI");
    let theirs: Vec<u8> =
        fields.iter().flat_map(|field| field.as_bytes().unwrap()).copied().collect();
    assert_eq!(found, theirs);
}
