use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, b256, hex};
use proptest::prelude::*;

use super::*;
use crate::codec::transaction::{DEPOSIT_TYPE, decode};

/// Block 25 of the published test chain: a legacy and two access list transactions, and
/// an uncle.
const WITH_UNCLE: &[u8] = &hex!(
    "f905b9f901f8a0d4c1a87837460a5d00d7225a1406ccafcfe765d40f277eaae65f17adff7dc50aa0581786e08a07c3\
     64bcca9500add85d1029ff2cc1eca409ea594f4418d6303cc2940000000000000000000000000000000000000000a0\
     2e3517286957b0d55234d1d7b0928c4ad67ed5b7552409e8606d62598118e0eea054d373137774dfc061d466d72ba5\
     1ff35126b72c3ab28bde11bd022fb9fedd97a03d67427de365cae22334f85da3ead96b3f5d8a5e19a9d9c1fe702cfa\
     c8b4a0e3b9010000000000000000000000000000000000000000000000080000000000800000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000000040000000000002000000000000\
     0000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000009000000000000000000000000010\
     0000000000000000000000000000000000000000000000000000000000000000000040000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000083020280198405f5e10083016eac81fa80a000\
     00000000000000000000000000000000000000000000000000000000000000880000000000000000f901aef8678189\
     01825208944a0f1452281bcec5bd90c3dce6162a5995bfe9df01808718e5bb3abd109fa0b3b7f2acfd6f2ea660c5b3\
     0fd7b104aa6b5113beb2298b97592aa9aee16c044da0341274e0c82cf5b67669e532d9e4b6a6cb8e3e11b93a77bd00\
     c93c81ffb7d917b8d501f8d2870c72dd9d5e883e818a01830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27\
     df028c189bbcaf26329a7f656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a000000000\
     00000000000000000000000000000000000000000000000000000000a02b1dc61696ce0d983a26626db16ebd899be2\
     d7ecaed2ef9355a5e4aea276fd4580a0d75c2374bf42ef0f6af8186fb69c620a18c0dc6809b69e7311aeaca750d364\
     2aa066e4b762ff8b4a1e8a5bd391e579b454cb2bc1e2d406c612cac6263c7791c085b86c01f869870c72dd9d5e883e\
     818b01825208940c2c51a0990aee1d73c1228de1586883415575080180c080a05f4e6fee116fa6e221a3186489c5a5\
     5c6bb291b0e1f122f60278c1a4c74cb2eda04b2ec580eac3e785d2147f4f1e80a6b10e231dbc19c5944f43ba4726eb\
     ed6b01f9020af90207a017621eaa7235763cbf2edc1d677d0f3d95a41e0a71b30b5122663177be8448d0a01dcc4de8\
     dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d4934794000000000000000000000000000000000000\
     0000a00000000000000000000000000000000000000000000000000000000000000000a056e81f171bcc55a6ff8345\
     e692c0f86e5b48e01b996cadc001622fb5e363b421a056e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001\
     622fb5e363b421b9010000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000083020240188405f5e1008081fa926869\
     7665636861696e20756e636c65203134a0000000000000000000000000000000000000000000000000000000000000\
     0000880000000000000000"
);

/// Block 43 of the published test chain: a dynamic fee, a blob and a legacy transaction,
/// and a withdrawal.
const WITH_WITHDRAWAL: &[u8] = &hex!(
    "f90461f90242a09e5e1e79c57f257def6a0e882d10863e2a98b034e6e0fdaccd7ff7b31312105da01dcc4de8dec75d\
     7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347940000000000000000000000000000000000000000a0\
     06ee55bafebcddee5a1e28517b3eb11d3f89c710fefb755081b1bf17a9688160a06f57cd2c59231c5c2e0772f25b0a\
     d7c2feb6aac2c6790a09634413ef92b38a46a0ef2e5d7aa1e56fc62284965eee2ea4ed9fd89e3e14ef07a3bb2f443e\
     e363e51cb9010000000000000000000000000000000000000000000000000000000000800000000000000000000000\
     0000000000000000000000000000000004000000000000000000000000000000000040000000000002000000000000\
     0000000000000000200000000000000000000000000000000000000000000000000000000000000000000000000000\
     0000000000000000000000000000000000000000000000000000000000000000009000000000004000000000000000\
     0000000000000000000000000100000000000000000000000000000000000000000000000000000000000000000000\
     00000000000000000000000000000000000000000000000000000000802b840bebc2008302b9da8201ae80a0000000\
     0000000000000000000000000000000000000000000000000000000000880000000000000000840711e8d2a0b6efc5\
     d2e636b239783cb930fe09147194de680b560c56b7a50fb77c22614aae8302000080a02c809fbc7e3991c8ab560d14\
     31fa8b6f25be4ab50977f0294dfeca9677866b6ef901feb87102f86e870c72dd9d5e883e81cb01840711e8d3825208\
     94d803681e487e6ac18053afc5a6cd813c86ec3e4d0180c001a0b043ce5f1e513ed66a41420919674968469839f14b\
     6c09c2622fd5456c447ce6a009bfbf057afe407631a737e204ba56b083b75e5f9afc947c3c07252a2a27e535b90100\
     03f8fd870c72dd9d5e883e81cc01840711e8d3830186a0947dcd17433742f4c0ca53122ab541d0ba67fc27df038ceb\
     e7a54f122c1cf1656d6974f85bf859947dcd17433742f4c0ca53122ab541d0ba67fc27dff842a00000000000000000\
     000000000000000000000000000000000000000000000000a0feeef6a225ce61c62b83116eb877dcaaffdb3534e894\
     841ac1b667cec5082f2383020000e1a0015a4cab4911426699ed34483de6640cf55a568afc5c5edffdcbd8bcd4452f\
     6880a02c42c741934fc12126476fe495af87549dc7e60896d84b5d82ac9ab788b82e51a066f4001113af48964cbc6b\
     65c04e0b0b16e4b4c84459ec93c374a30a1e3376c3f88681cd840711e8d38301bc1c8080ae43600052600060205260\
     405b604060002060208051600101905281526020016101408110600b57506101006040f38718e5bb3abd109fa0b227\
     bd00d46cdbe791f5714c70971f30af37a926d32561cf50ec3b112c4fc4a1a00b62d61edccaf909bb86abc4680344ed\
     9ffcfc6bb35beaa9dca7fd3c2da69100c0d9d802059484e75c28348fb86acea1a93a39426d7d60f4cc4664"
);

const BOTH: [&[u8]; 2] = [WITH_UNCLE, WITH_WITHDRAWAL];

fn block(bytes: &[u8]) -> Block {
    decode_block(bytes).unwrap().0
}

fn why(bytes: &[u8]) -> String {
    decode_block(bytes).expect_err("the bytes are wrong").to_string()
}

/// Encodes a block from encoded parts.
fn encoded(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    list_header(parts.iter().map(|part| part.len()).sum()).encode(&mut out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

#[test]
fn published_blocks_decode_to_what_their_headers_promise() {
    for bytes in BOTH {
        let (block, consumed) = decode_block(bytes).unwrap();
        assert_eq!(consumed, bytes.len());
        assert_eq!(block.size, bytes.len());
        assert_eq!(block.encode(), bytes);
        assert_eq!(transactions_root(&block.transactions), block.header.transactions_root);
        assert_eq!(ommers_hash(&block.uncles), block.header.ommers_hash);
        let withdrawals = block.withdrawals.as_deref().map(withdrawals_root);
        assert_eq!(withdrawals, block.header.withdrawals_root);
    }
    assert_eq!(block(WITH_UNCLE).uncles.len(), 1);
    assert_eq!(block(WITH_UNCLE).withdrawals, None);
    assert_eq!(block(WITH_WITHDRAWAL).withdrawals.unwrap()[0].amount, 100);
}

#[test]
fn blocks_decode_as_alloy_decodes_them() {
    for bytes in BOTH {
        let ours = block(bytes);
        let theirs = alloy_consensus::Block::<TxEnvelope>::decode(&mut &bytes[..]).unwrap();
        assert_eq!(*ours.header.fields(), theirs.header);
        assert_eq!(ours.hash, theirs.header.hash_slow());
        let hashes = |block: &Block| -> Vec<B256> {
            block.transactions.iter().map(|raw| decode(raw).unwrap().hash).collect()
        };
        let expected: Vec<B256> =
            theirs.body.transactions.iter().map(|each| *each.tx_hash()).collect();
        assert_eq!(hashes(&ours), expected);
    }
}

#[test]
fn blocks_back_to_back_are_taken_one_at_a_time() {
    let file = BOTH.concat();
    let (first, consumed) = decode_block(&file).unwrap();
    assert_eq!(first.header.number, 25);
    let (second, rest) = decode_block(&file[consumed..]).unwrap();
    assert_eq!(second.header.number, 43);
    assert_eq!(consumed + rest, file.len());
}

#[test]
fn a_block_of_the_second_layer_holds_deposits() {
    let deposit =
        crate::codec::transaction::TxDeposit { from: Address::ZERO, ..Default::default() };
    let raw = alloy_eips::eip2718::Encodable2718::encoded_2718(&deposit);
    let header = block(WITH_WITHDRAWAL).header;
    let made = Block::new(header, vec![raw.clone().into()], vec![], Some(vec![]));
    let decoded = block(&made.encode());
    assert_eq!(decoded, made);
    assert_eq!(decoded.transactions[0][0], DEPOSIT_TYPE);
    assert_eq!(made.size, made.encode().len());
}

#[test]
fn every_changed_bit_is_refused_or_kept_exactly() {
    for bytes in BOTH {
        let mut accepted = 0;
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok((block, consumed)) = decode_block(&changed) else { continue };
            accepted += 1;
            assert_eq!(block.encode(), changed[..consumed], "bit {bit}");
            assert_ne!(block, self::block(bytes), "bit {bit} changed nothing");
        }
        assert!(accepted > 0, "hashes in the header can hold anything");
    }
}

/// alloy does not check the length in the string header around a typed transaction, so a file with
/// that byte changed passes every root check.
#[test]
fn a_lying_length_around_a_typed_transaction_is_refused() {
    let raw = block(WITH_WITHDRAWAL).transactions[0].clone();
    let at = WITH_WITHDRAWAL.windows(raw.len()).position(|window| window == &raw[..]).unwrap();
    assert_eq!(WITH_WITHDRAWAL[at - 2..at], [0xb8, raw.len() as u8]);

    let mut lying = WITH_WITHDRAWAL.to_vec();
    lying[at - 1] -= 1;
    let theirs = alloy_consensus::Block::<TxEnvelope>::decode(&mut &lying[..]).unwrap();
    assert_eq!(alloy_rlp::encode(&theirs), WITH_WITHDRAWAL);
    assert!(why(&lying).contains("transaction 0"), "{}", why(&lying));

    lying[at - 1] += 2;
    assert!(why(&lying).contains("transaction 0"), "{}", why(&lying));
}

#[test]
fn a_legacy_transaction_in_a_string_is_refused() {
    let good = block(WITH_UNCLE);
    let legacy = &good.transactions[0];
    assert!(is_legacy(legacy));
    let header = good.header.encode();
    let wrapped = encoded(&[&alloy_rlp::encode(&legacy[..])]);
    assert!(why(&encoded(&[&header, &wrapped, &[0xc0]])).contains("canonical"));
    let plain = encoded(&[&legacy[..]]);
    assert!(decode_block(&encoded(&[&header, &plain, &[0xc0]])).is_ok());
}

#[test]
fn truncation_is_refused_everywhere() {
    for bytes in BOTH {
        for length in 0..bytes.len() {
            assert!(decode_block(&bytes[..length]).is_err());
        }
    }
    assert_eq!(why(&[]), "block: no bytes");
    assert!(why(&WITH_UNCLE[..100]).contains("too short"));
}

#[test]
fn lengths_beyond_the_buffer_are_refused_without_allocating() {
    let claims: [&[u8]; 4] = [
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xfb, 0x7f, 0xff, 0xff, 0xff],
        &[0xf8, 0xff, 0xfb, 0xff, 0xff, 0xff, 0xff],
        &[0xbf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    for claim in claims {
        assert!(decode_block(claim).is_err());
    }
}

#[test]
fn items_too_few_too_many_or_of_the_wrong_kind_are_refused() {
    let header = block(WITH_WITHDRAWAL).header.encode();
    assert!(decode_block(&encoded(&[&header, &[0xc0], &[0xc0]])).is_ok());
    assert!(decode_block(&encoded(&[&header, &[0xc0], &[0xc0], &[0xc0]])).is_ok());
    assert!(why(&encoded(&[&header, &[0xc0]])).contains("uncles"));
    assert!(why(&encoded(&[&header, &[0x80], &[0xc0]])).contains("transactions: a string"));
    assert!(why(&encoded(&[&header, &[0xc0], &[0xc0], &[0x80]])).contains("withdrawals"));
    assert!(why(&encoded(&[&header, &[0xc0], &[0xc0], &[0xc0], &[0xc0]])).contains("more items"));
    assert!(why(&encoded(&[&[0xc0], &[0xc0], &[0xc0]])).contains("header"));
}

#[test]
fn empty_lists_have_the_known_roots() {
    let empty = b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
    assert_eq!(transactions_root::<Bytes>(&[]), empty);
    assert_eq!(withdrawals_root(&[]), empty);
    assert_eq!(
        ommers_hash(&[]),
        b256!("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")
    );
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode_block(&bytes);
    }

    #[test]
    fn random_damage_is_refused_or_kept_exactly(
        which in 0..BOTH.len(),
        at in any::<prop::sample::Index>(),
        patch in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        let mut bytes = BOTH[which].to_vec();
        let at = at.index(bytes.len());
        let end = (at + patch.len()).min(bytes.len());
        bytes.splice(at..end, patch);
        if let Ok((block, consumed)) = decode_block(&bytes) {
            prop_assert_eq!(block.encode(), &bytes[..consumed]);
        }
    }
}
