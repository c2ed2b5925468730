use alloy_consensus::{Eip658Value, ReceiptEnvelope, ReceiptWithBloom};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Bytes, LogData, b256, hex};
use op_alloy_consensus::{OpDepositReceipt, OpReceiptEnvelope};
use proptest::prelude::*;

use super::*;

fn receipt(tx_type: u8, outcome: ReceiptOutcome, cumulative_gas_used: u64) -> Receipt {
    Receipt {
        tx_type,
        outcome,
        cumulative_gas_used,
        logs: vec![],
        deposit_nonce: None,
        deposit_receipt_version: None,
    }
}

fn log(address: u8, topics: &[u8], data: &'static [u8]) -> Log {
    let topics = topics.iter().map(|&each| B256::repeat_byte(each)).collect();
    Log {
        address: Address::repeat_byte(address),
        data: LogData::new_unchecked(topics, Bytes::from_static(data)),
    }
}

/// The receipt as an alloy type.
fn theirs(receipt: &Receipt) -> OpReceiptEnvelope {
    let status = match receipt.outcome {
        ReceiptOutcome::Status(success) => Eip658Value::Eip658(success),
        ReceiptOutcome::PostState(root) => Eip658Value::PostState(root),
    };
    let inner = alloy_consensus::Receipt {
        status,
        cumulative_gas_used: receipt.cumulative_gas_used,
        logs: receipt.logs.clone(),
    };
    let logs_bloom = receipt.logs.iter().collect();
    let plain = ReceiptWithBloom { receipt: inner.clone(), logs_bloom };
    match receipt.tx_type {
        0 => OpReceiptEnvelope::Legacy(plain),
        1 => OpReceiptEnvelope::Eip2930(plain),
        2 => OpReceiptEnvelope::Eip1559(plain),
        4 => OpReceiptEnvelope::Eip7702(plain),
        DEPOSIT_TYPE => OpReceiptEnvelope::Deposit(ReceiptWithBloom {
            receipt: OpDepositReceipt {
                inner,
                deposit_nonce: receipt.deposit_receipt_version.and(receipt.deposit_nonce),
                deposit_receipt_version: receipt.deposit_receipt_version,
            },
            logs_bloom,
        }),
        other => panic!("no type {other} on the second layer"),
    }
}

/// Block 1 of the published test chain.
#[test]
fn receipts_before_byzantium_hold_state_roots() {
    let receipts = [
        (0x102d3, b256!("9d6eec3457f11763a235d68c58367a740f429f01fd310692736b54e0019df44b")),
        (0x22adc, b256!("52c619f59247e66f4abaf6e08c54e8d448d1b0d5e5fb2be0e3d63a019b5ca593")),
        (0x38231, b256!("a851d26965f49357466094e46aae53927fb78359e834150e28f63a679deb10b1")),
        (0x527eb, b256!("c45c61f676847ea82577acf0615c26796772a3c803b3c2cbf205284cc978375c")),
    ]
    .map(|(gas, root)| receipt(0, ReceiptOutcome::PostState(root), gas));
    assert_eq!(
        receipts_root(&receipts),
        b256!("68e78088e89f476d25495c7802dbed8a5735ef869ea2aae927ed4e62966e1a4f")
    );
    assert_eq!(logs_bloom(&receipts), Bloom::ZERO);
}

/// Before Regolith, with its nonce, and since Canyon: the first two have the same hash.
#[test]
fn a_deposit_receipt_gains_its_fields_with_the_version() {
    let mut deposit = receipt(DEPOSIT_TYPE, ReceiptOutcome::Status(true), 0xb741);
    let bare = deposit.encode();
    deposit.deposit_nonce = Some(0x3d3bbf);
    assert_eq!(deposit.encode(), bare);
    assert_eq!(bare.len(), 1 + 3 + 0x108);

    deposit.deposit_receipt_version = Some(1);
    let canyon = deposit.encode();
    assert_eq!(canyon[..8], hex!("7ef9010d0182b741"));
    assert!(canyon.ends_with(&hex!("c0833d3bbf01")));
    assert_eq!(canyon.len(), 1 + 3 + 0x10d);
}

#[test]
fn deposit_fields_do_not_show_in_other_types() {
    let plain = receipt(2, ReceiptOutcome::Status(true), 21_000);
    let mut with_fields = plain.clone();
    with_fields.deposit_nonce = Some(1);
    with_fields.deposit_receipt_version = Some(1);
    assert_eq!(with_fields.encode(), plain.encode());
}

#[test]
fn blob_receipts_encode_as_alloys() {
    let mut blob = receipt(3, ReceiptOutcome::Status(false), u64::MAX);
    blob.logs = vec![log(1, &[2, 3, 4, 5], b"data"), log(6, &[], b"")];
    let theirs = ReceiptEnvelope::Eip4844(ReceiptWithBloom {
        receipt: alloy_consensus::Receipt {
            status: false.into(),
            cumulative_gas_used: u64::MAX,
            logs: blob.logs.clone(),
        },
        logs_bloom: blob.bloom(),
    });
    assert_eq!(blob.encode(), theirs.encoded_2718());
}

#[test]
fn the_bloom_of_a_block_has_every_address_and_topic_and_nothing_else() {
    let mut first = receipt(0, ReceiptOutcome::Status(true), 1);
    first.logs = vec![log(1, &[2], b"ignored")];
    let mut second = receipt(2, ReceiptOutcome::Status(true), 2);
    second.logs = vec![log(3, &[], b""), log(1, &[4, 5], b"")];
    assert_eq!(logs_bloom([&first, &second]), first.bloom() | second.bloom());

    let mut expected = Bloom::ZERO;
    for address in [1, 3] {
        expected.accrue(alloy_primitives::BloomInput::Raw(&[address; 20]));
    }
    for topic in [2, 4, 5] {
        expected.accrue(alloy_primitives::BloomInput::Raw(&[topic; 32]));
    }
    assert_eq!(logs_bloom([&first, &second]), expected);
}

#[test]
fn no_receipts_have_the_empty_root() {
    assert_eq!(
        receipts_root::<Receipt>(&[]),
        b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")
    );
}

prop_compose! {
    fn any_log()(
        address in any::<[u8; 20]>(),
        topics in prop::collection::vec(any::<[u8; 32]>(), 0..=4),
        data in prop::collection::vec(any::<u8>(), 0..80),
    ) -> Log {
        let topics = topics.into_iter().map(B256::from).collect();
        Log { address: address.into(), data: LogData::new_unchecked(topics, data.into()) }
    }
}

prop_compose! {
    fn any_receipt()(
        tx_type in prop::sample::select(vec![0, 1, 2, 4, DEPOSIT_TYPE]),
        outcome in prop_oneof![
            any::<bool>().prop_map(ReceiptOutcome::Status),
            any::<[u8; 32]>().prop_map(|root| ReceiptOutcome::PostState(root.into())),
        ],
        cumulative_gas_used in any::<u64>(),
        logs in prop::collection::vec(any_log(), 0..4),
        deposit_nonce in any::<u64>().prop_map(Some),
        deposit_receipt_version in any::<Option<u64>>(),
    ) -> Receipt {
        Receipt { tx_type, outcome, cumulative_gas_used, logs, deposit_nonce, deposit_receipt_version }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn encodings_and_roots_agree_with_alloy(
        receipts in prop::collection::vec(any_receipt(), 0..140),
    ) {
        let envelopes: Vec<_> = receipts.iter().map(theirs).collect();
        for (ours, theirs) in receipts.iter().zip(&envelopes) {
            prop_assert_eq!(ours.encode(), theirs.encoded_2718());
        }
        let root = alloy_consensus::proofs::calculate_receipt_root(&envelopes);
        prop_assert_eq!(receipts_root(&receipts), root);
    }
}
