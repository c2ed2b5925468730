use std::sync::{Arc, Barrier, RwLock};
use std::thread::{self, ThreadId};

use alloy_consensus::crypto::{SECP256K1N_HALF, secp256k1::sign_message};
use alloy_consensus::{
    SignableTransaction, Transaction as _, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxEnvelope,
    TxLegacy,
};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::Authorization;
use alloy_primitives::{
    Address, B256, Bytes, Signature, TxKind, U256, address, b256, hex, keccak256,
};
use proptest::prelude::*;

use super::*;
use crate::error::Error;

/// The sender of every transaction of the published test chain.
const SENDER: Address = address!("7435ed30a8b4aeb0877cef0c6e8cffe834eb865f");
/// The first account of the well-known test mnemonic, and its key.
const SIGNER: Address = address!("f39fd6e51aad88f6f4ce6ab8827279cfffb92266");
const KEY: B256 = b256!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const CHAIN_ID: u64 = 0xc72dd9d5e883e;

const UNPROTECTED: &[u8] = &hex!(
    "f85c050183020bc8808090435b8080556001015a6161a8106001571ca0737f9ad19c4f2ab24419743a4ca8c4e02a97\
     3fe6b2576faf603b7e88aea0fc5ea037758c7c173e667d3cbf5d0352185c89f443ab803b87c1be40db5fba8217e1ed"
);
const PROTECTED: &[u8] = &hex!(
    "f8664901825208940c2c51a0990aee1d73c1228de15868834155750801808718e5bb3abd109fa031c82ffa1eb4a48e\
     fbdbc324f5a248c3708b7a83df0ccf954c57bf5c84de7767a0018c2c95d517af9bdf5af3693fba7d54f87d665a7159\
     12f416646c2318418d98"
);
const ACCESS_LIST: &[u8] = &hex!(
    "01f8d2870c72dd9d5e883e818501830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27df028c0e394e7c8a2b\
     32c9656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a000000000000000000000000000\
     00000000000000000000000000000000000000a095104e47e1982aba633477f377b1511396c3fe83600224bcb0c789\
     49be705b3380a001e97c47fb0c7d9e7db3438a25220049eed0bc14e4a8f33bbeb333e552a367cfa01aaf9e88acf606\
     e16781220c398aa61cfa0f68a4dc612b0a7c0103daff021c01"
);
const DYNAMIC_FEE: &[u8] = &hex!(
    "02f86e870c72dd9d5e883e819101843b9aca0182520894717f8aa2b982bee0e29f573d31df288663e1ce160180c080\
     a0e6645e29f57a516694e7b8ef47b6c6569f25df1fe45f14e332b8edff86bd8ecca037fafbbe6aeb5600ae0061e536\
     58a897fca1afaa4b8ca868fcaf02a2fa994f3e"
);
const BLOB: &[u8] = &hex!(
    "03f8fd870c72dd9d5e883e81c701840813f23c830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27df038c29\
     db68258899c2fe656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a00000000000000000\
     000000000000000000000000000000000000000000000000a035f96bc70aa62a539fa99d9153b0f8aaa4594abf70cc\
     8a8d9018e04e39a1798283020000e1a0015a4cab4911426699ed34483de6640cf55a568afc5c5edffdcbd8bcd4452f\
     6801a0f5b2ecf5fb4a93d85bfa76fab96a57eed00c3e5ed379f0018756e33d3cbb985aa06647a16a0b2aee4772edf9\
     c03afb679e21d134ce3231f0fce7f6bfa9d1152f03"
);
const SET_CODE: &[u8] = &hex!(
    "04f8d3870c72dd9d5e883e81d30184056a921482b3b09400000000000000000000000000000000000000008080c0f8\
     63f861870c72dd9d5e883e948c2319620d7c348bb4e2b2a0b230c81f310e95618080a0f17d59102e9ebed035d1bd77\
     bc668b170eb1d38edef6e7d971857d85781d68fea0193dbdc8dea2fc194da75febbd4de9689b625eecd1e4ca30e27b\
     45339af2257280a0333946e8b98c5b7eff15da75e7264e9e16728f06436e86611c82fd14eaee2256a03b268e5c9bb2\
     9a77f6976ae0f580f781ad765de3f9163b528ea9230ac02c996c"
);
/// The L1 attributes deposit with this hash on Base mainnet:
/// 0xc468b38a20375922828c8126912740105125143b9856936085474b2590bbca91.
const DEPOSIT: &[u8] = &hex!(
    "7ef8f8a0417d134467f4737fcdf2475f0ecdd2a0ed6d87ecffc888ba9f60ee7e3b8ac26a94deaddeaddeaddeaddead\
     deaddeaddeaddead00019442000000000000000000000000000000000000158080830f424080b8a4440a5e20000008\
     dd00101c1200000000000000040000000066c352bb000000000139c4f5000000000000000000000000000000000000\
     00000000000000000000c0cff1460000000000000000000000000000000000000000000000000000000000000001d4\
     c88f4065ac9671e8b1329b90773e89b5ddff9cf8675b2b5e9c1b283206099300000000000000000000000050\
     50f69a9786f081509234f1a7f4684b5e5b76c9"
);

const ALL: [&[u8]; 7] = [UNPROTECTED, PROTECTED, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE, DEPOSIT];

fn why<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("the bytes are wrong").to_string()
}

fn signed<T: SignableTransaction<Signature>>(transaction: T) -> alloy_consensus::Signed<T> {
    let signature = sign_message(KEY, transaction.signature_hash()).unwrap();
    transaction.into_signed(signature)
}

#[test]
fn published_transactions_give_their_hash_and_sender() {
    for (raw, hash) in [
        (ACCESS_LIST, b256!("695ad02907c9e13ab7c69963f723fa46ac13cd5e2314f61eab2cb2f07b946faa")),
        (SET_CODE, b256!("99f7e58af4dd2735931a3262705fbe57ea2fcc79497668f74309cdeaf37cc223")),
        (DEPOSIT, b256!("c468b38a20375922828c8126912740105125143b9856936085474b2590bbca91")),
    ] {
        assert_eq!(decode(raw).unwrap().hash, hash);
    }
    for raw in ALL.iter().filter(|raw| raw[0] != DEPOSIT_TYPE) {
        let transaction = decode(raw).unwrap();
        assert_eq!(transaction.sender, SENDER);
        assert_eq!(transaction.raw[..], **raw);
    }
}

#[test]
fn hash_and_fields_agree_with_alloy() {
    for raw in ALL.iter().filter(|raw| raw[0] != DEPOSIT_TYPE) {
        let theirs = TxEnvelope::decode_2718(&mut &raw[..]).unwrap();
        let ours = decode(raw).unwrap();
        assert_eq!(ours.hash, *theirs.tx_hash());
        assert_eq!(ours.fields().ty(), theirs.tx_type() as u8);
        assert_eq!(ours.fields().nonce(), theirs.nonce());
        assert_eq!(ours.fields().access_list(), theirs.access_list());
        assert_eq!(ours.fields().blob_versioned_hashes(), theirs.blob_versioned_hashes());
    }
}

#[test]
fn legacy_v_shows_whether_the_chain_is_named() {
    let unprotected = decode(UNPROTECTED).unwrap();
    assert_eq!((unprotected.v(), unprotected.fields().chain_id()), (28, None));
    assert!(unprotected.fields().is_create());

    let protected = decode(PROTECTED).unwrap();
    assert_eq!(protected.v(), 35 + 2 * u128::from(CHAIN_ID));
    assert_eq!(protected.fields().chain_id(), Some(CHAIN_ID));
}

#[test]
fn typed_v_is_the_parity() {
    assert_eq!(decode(BLOB).unwrap().v(), 1);
    assert_eq!(decode(DYNAMIC_FEE).unwrap().v(), 0);
}

#[test]
fn a_deposit_names_its_sender_and_source() {
    let transaction = decode(DEPOSIT).unwrap();
    let deposit = transaction.deposit().unwrap();
    assert_eq!(transaction.sender, address!("deaddeaddeaddeaddeaddeaddeaddeaddead0001"));
    assert_eq!((transaction.v(), transaction.signature()), (0, None));
    assert_eq!((deposit.mint, deposit.is_system_transaction), (0, false));

    // Source hash of the L1 attributes: domain 1, L1 block hash and sequence number. Both are also
    // in the calldata.
    let l1_hash = &deposit.input[100..132];
    let sequence_number = U256::from_be_slice(&deposit.input[12..20]).to_be_bytes::<32>();
    let inner = keccak256([l1_hash, &sequence_number].concat());
    let source = keccak256([&U256::from(1).to_be_bytes::<32>(), inner.as_slice()].concat());
    assert_eq!(deposit.source_hash, source);
}

#[test]
fn deposits_of_every_shape_survive_a_round_trip() {
    for to in [TxKind::Create, TxKind::Call(SENDER)] {
        for (mint, is_system_transaction) in [(0, true), (u128::MAX, false)] {
            let deposit = TxDeposit {
                source_hash: B256::repeat_byte(3),
                from: SENDER,
                to,
                mint,
                value: U256::from(9),
                gas_limit: u64::MAX,
                is_system_transaction,
                input: Bytes::from_static(b"data"),
            };
            let decoded = decode(&deposit.encoded_2718()).unwrap();
            assert_eq!(decoded.deposit(), Some(&deposit));
            assert_eq!(decoded.hash, deposit.tx_hash());
        }
    }
}

#[test]
fn freshly_signed_transactions_recover_their_signer() {
    let access_list = AccessList(vec![AccessListItem {
        address: SENDER,
        storage_keys: vec![B256::ZERO, B256::repeat_byte(1)],
    }]);
    let to = TxKind::Call(SENDER);
    let encodings = [
        signed(TxLegacy { chain_id: Some(u64::MAX), to, ..Default::default() }).encoded_2718(),
        signed(TxLegacy { chain_id: None, ..Default::default() }).encoded_2718(),
        signed(TxEip2930 { access_list: access_list.clone(), to, ..Default::default() })
            .encoded_2718(),
        signed(TxEip1559 { max_fee_per_gas: u128::MAX, access_list, ..Default::default() })
            .encoded_2718(),
        signed(TxEip4844 { blob_versioned_hashes: vec![B256::ZERO; 6], ..Default::default() })
            .encoded_2718(),
        signed(TxEip7702 { value: U256::MAX, ..Default::default() }).encoded_2718(),
    ];
    for raw in encodings {
        assert_eq!(decode(&raw).unwrap().sender, SIGNER);
    }
}

#[test]
fn authorizations_recover_as_alloy_recovers_them() {
    let transaction = decode(SET_CODE).unwrap();
    let theirs: Vec<_> = transaction
        .fields()
        .authorization_list()
        .unwrap()
        .iter()
        .map(|authorization| authorization.recover_authority().ok())
        .collect();
    let ours: Vec<_> =
        transaction.recovered_authorizations().iter().map(|each| each.authority()).collect();
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 1);
    assert!(ours[0].is_some());
}

#[test]
fn an_authorization_nobody_signed_does_not_spoil_the_transaction() {
    let authorization = Authorization { chain_id: U256::ZERO, address: SENDER, nonce: 0 };
    let nobody = |y_parity, s| {
        SignedAuthorization::new_unchecked(authorization.clone(), y_parity, U256::from(1), s)
    };
    let list = vec![nobody(2, U256::from(1)), nobody(0, U256::MAX), nobody(0, U256::ZERO)];
    let raw = signed(TxEip7702 { authorization_list: list, ..Default::default() }).encoded_2718();
    let transaction = decode(&raw).unwrap();
    assert!(transaction.recovered_authorizations().iter().all(|each| each.authority().is_none()));
}

#[test]
fn a_high_s_is_a_frontier_signature() {
    let order = (SECP256K1N_HALF << 1) + U256::from(1);
    let legacy = TxLegacy { chain_id: None, ..Default::default() };
    let low = *signed(legacy.clone()).signature();
    let high = Signature::new(low.r(), order - low.s(), !low.v());
    let raw = legacy.into_signed(high).encoded_2718();
    assert_eq!(decode_at(&raw, false).unwrap().sender, SIGNER);
    assert!(why(decode(&raw)).contains("half the curve order"));

    let typed = TxEip1559::default();
    let low = *signed(typed.clone()).signature();
    let high = Signature::new(low.r(), order - low.s(), !low.v());
    let raw = typed.into_signed(high).encoded_2718();
    assert!(why(decode_at(&raw, false)).contains("half the curve order"));
}

#[test]
fn a_signature_that_recovers_nothing_is_refused() {
    for (r, s) in [(0, 1), (1, 0), (0, 0)] {
        let signature = Signature::new(U256::from(r), U256::from(s), false);
        let raw = TxEip1559::default().into_signed(signature).encoded_2718();
        assert!(why(decode(&raw)).contains("no sender"));
        assert_eq!(check(&raw), Ok(()));
    }
}

#[test]
fn unknown_types_are_named() {
    for kind in [0x00, 0x05, 0x7c, 0x7f] {
        let error = decode(&[&[kind], &DYNAMIC_FEE[1..]].concat()).unwrap_err();
        let why = format!("type {kind:#04x} is not supported");
        assert_eq!(error, Error::Undecodable { what: "transaction", why });
    }
    assert_eq!(check(&[POST_EXEC_TYPE, 0xc0]), Ok(()), "a block of a later fork may have it");
    assert!(check(&[POST_EXEC_TYPE]).is_err());
    assert!(why(decode(&[0xb8, 0x71])).contains("0xb8 starts neither"));
    assert!(why(decode(&[])).contains("no bytes"));
}

#[test]
fn trailing_and_missing_bytes_are_refused() {
    for raw in ALL {
        assert!(why(decode(&[raw, &[0]].concat())).contains("1 bytes left over"));
        for length in 0..raw.len() {
            assert!(decode(&raw[..length]).is_err());
        }
    }
}

#[test]
fn a_typed_transaction_of_another_type_is_refused() {
    for kind in [0x01, 0x03, 0x04, DEPOSIT_TYPE] {
        assert!(decode(&[&[kind], &DYNAMIC_FEE[1..]].concat()).is_err());
    }
}

#[test]
fn a_changed_bit_never_leaves_hash_and_bytes_apart() {
    for raw in ALL {
        for bit in 0..raw.len() * 8 {
            let mut changed = raw.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(transaction) = decode(&changed) else { continue };
            let encoded = match transaction.envelope {
                Envelope::Signed(signed) => signed.encoded_2718(),
                Envelope::Deposit(deposit) => deposit.encoded_2718(),
                Envelope::PostExec(_) | Envelope::Unsigned(_) => panic!("a type of nobody's"),
            };
            assert_eq!(encoded, changed);
            assert_eq!(transaction.hash, keccak256(&changed));
        }
    }
}

#[test]
fn batches_keep_the_order_and_decode_as_single_ones_do() {
    let raws: Vec<&[u8]> = ALL.iter().cycle().take(150).map(AsRef::as_ref).collect();
    let single: Result<Vec<_>, _> = raws.iter().map(|raw| decode(raw)).collect();
    for threads in [0, 1, 2, 3, 64] {
        assert_eq!(decode_all(raws.clone(), true, false, threads), single);
    }
    assert_eq!(decode_all::<Vec<u8>>(vec![], true, false, 4), Ok(vec![]));
}

#[test]
fn the_first_broken_one_of_a_batch_is_reported() {
    let mut raws: Vec<Vec<u8>> = ALL.iter().cycle().take(150).map(|raw| raw.to_vec()).collect();
    raws[149].clear();
    raws[40].push(0);
    for threads in [0, 1, 2, 3, 64] {
        assert!(why(decode_all(raws.clone(), true, false, threads)).contains("index 40: "));
    }
}

#[test]
fn transactions_are_consumed_while_others_are_decoded() {
    let raws: Vec<&[u8]> = ALL.iter().cycle().take(150).map(AsRef::as_ref).collect();
    for threads in [0, 1, 2] {
        let decoding = Decoding::start(raws.clone(), true, false, threads);
        for index in [70, 3, 149] {
            assert_eq!(decoding.get(index).cloned(), decode(raws[index]));
        }
        assert_eq!(decoding.check(), Ok(()));
    }
}

/// A transaction that only the thread `reader` can read while the gate is closed.
struct Gated {
    reader: ThreadId,
    arrived: Arc<Barrier>,
    gate: Arc<RwLock<()>>,
}

impl AsRef<[u8]> for Gated {
    fn as_ref(&self) -> &[u8] {
        if thread::current().id() != self.reader {
            self.arrived.wait();
            drop(self.gate.read());
        }
        DYNAMIC_FEE
    }
}

#[test]
fn a_thread_that_does_not_run_holds_up_no_other() {
    let (arrived, gate) = (Arc::new(Barrier::new(2)), Arc::new(RwLock::new(())));
    let closed = gate.write();
    let reader = thread::current().id();
    let gated = || Gated { reader, arrived: arrived.clone(), gate: gate.clone() };
    let decoding = Decoding::start((0..150).map(|_| gated()).collect(), true, false, 2);
    if thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        arrived.wait(); // The other thread has claimed a transaction.
    }
    assert_eq!(decoding.check(), Ok(()));
    drop((decoding, closed));
}

#[test]
fn a_kept_sender_does_not_make_a_frontier_signature_valid() {
    let order = (SECP256K1N_HALF << 1) + U256::from(1);
    let legacy = TxLegacy { chain_id: None, ..Default::default() };
    let low = *signed(legacy.clone()).signature();
    let raw = legacy.into_signed(Signature::new(low.r(), order - low.s(), !low.v())).encoded_2718();
    for _ in 0..2 {
        assert!(decode_all(vec![raw.clone()], false, false, 1).is_ok());
        assert!(decode_all(vec![raw.clone()], true, false, 1).is_err());
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn random_damage_never_panics(
        which in 0..ALL.len(),
        at in any::<prop::sample::Index>(),
        patch in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut raw = ALL[which].to_vec();
        let at = at.index(raw.len());
        raw.splice(at..(at + patch.len() / 2).min(ALL[which].len()), patch);
        if let Ok(transaction) = decode(&raw) {
            prop_assert_eq!(transaction.raw, raw);
        }
    }
}
