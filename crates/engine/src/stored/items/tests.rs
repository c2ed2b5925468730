use alloy_primitives::{Address, Bytes, Log, LogData};
use proptest::prelude::*;

use super::*;
use crate::codec::receipt::{Receipt, ReceiptOutcome};
use crate::error::Error;

fn row<T: AsRef<[u8]>>(items: &[T]) -> Vec<u8> {
    let mut row = (items.len() as u32).to_be_bytes().to_vec();
    for item in items {
        row.extend((item.as_ref().len() as u32).to_be_bytes());
        row.extend(item.as_ref());
    }
    row
}

fn receipt(gas: u64, logs: usize) -> Vec<u8> {
    let log = Log {
        address: Address::repeat_byte(7),
        data: LogData::new_unchecked(vec![], Bytes::from_static(b"data")),
    };
    let receipt = Receipt {
        tx_type: 2,
        outcome: ReceiptOutcome::Status(true),
        cumulative_gas_used: gas,
        logs: vec![log; logs],
        deposit_nonce: None,
        deposit_receipt_version: None,
    };
    receipt.encode()
}

#[test]
fn an_item_is_found_by_its_index() {
    let row = row(&[&b"one"[..], b"", b"three"]);
    let items = Items::new(&row).expect("a row");
    assert_eq!(items.left(), 3);
    assert_eq!(items.clone().at(0), Ok(Some(&b"one"[..])));
    assert_eq!(items.clone().at(1), Ok(Some(&b""[..])));
    assert_eq!(items.clone().at(2), Ok(Some(&b"three"[..])));
    assert_eq!(items.at(3), Ok(None));
}

#[test]
fn a_receipt_knows_what_comes_before_it() {
    let encoded = [receipt(10, 2), receipt(30, 0), receipt(60, 300)];
    let row = row(&encoded);
    for (index, (gas_before, logs_before)) in
        [(None, 0), (Some(10), 2), (Some(30), 2)].into_iter().enumerate()
    {
        let found = FoundReceipt { encoded: &encoded[index], gas_before, logs_before };
        assert_eq!(receipt_at(&row, index), Ok(Some(found)));
    }
    assert_eq!(receipt_at(&row, 3), Ok(None));
    assert_eq!(receipts_end(&row), Ok((3, 302, Some(60))));
}

#[test]
fn lengths_that_lie_are_damage() {
    for row in
        [&b""[..], b"\0\0\0", b"\0\0\0\x01", b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\x01\0\0\0\x02a"]
    {
        let walked = Items::new(row).and_then(|mut items| {
            while items.take()?.is_some() {}
            Ok(())
        });
        assert!(matches!(walked, Err(Error::StoreDamaged(_))), "{row:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), index in 0_usize..5) {
        let _ = receipt_facts(&bytes);
        let _ = receipt_at(&bytes, index);
        let _ = receipts_end(&bytes);
        let _ = receipt_at(&row(&[&bytes, &bytes]), 1);
    }
}
