//! Exact bytes of bodies, and decoding of arbitrary bytes.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use proptest::prelude::*;

use super::*;
use crate::error::{Error, Result};
use crate::state::{AccountChange, AccountState, Changes};
use crate::store::batch::{Batch, Parent};

/// A new account with a slot and code.
fn changes(who: u8, code: &[u8]) -> Changes {
    let code = Bytes::copy_from_slice(code);
    let code_hash = keccak256(&code);
    let account = AccountState { nonce: 1, balance: U256::from(2), code_hash, generation: 5 };
    let slots = BTreeMap::from([(U256::from(3), U256::from(4))]);
    let change = AccountChange { before: None, after: Some(account), slots };
    Changes {
        accounts: BTreeMap::from([(Address::repeat_byte(who), change)]),
        codes: BTreeMap::from([(code_hash, code)]),
    }
}

fn undecodable(body: &[u8]) -> String {
    match Batch::decode(body, 7, 20) {
        Err(Error::Undecodable { what: "commit", why }) => why,
        other => panic!("{other:?} of {}", hex::encode(body)),
    }
}

/// The expected bytes are complete for steps that do not need others.
#[test]
fn steps_are_written_as_they_are_documented() {
    let deadline = [vec![0xbb; 16], vec![0, 0, 0, 0, 0, 0, 1, 0]].concat();
    let written = |add: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::new(7);
        add(&mut batch);
        hex::encode(batch.encode().unwrap())
    };
    let number = |number: u64| hex::encode(number.to_be_bytes());
    let hash = hex::encode(B256::repeat_byte(0xcc));
    type Case<'a> = (&'a dyn Fn(&mut Batch), String);
    let cases: [Case; 15] = [
        (&|_| {}, String::new()),
        (&|batch| batch.seal(9, B256::repeat_byte(0xcc)), format!("03{}{hash}", number(9))),
        (
            &|batch| batch.drop_partials(vec![1, 2], "why".into()),
            format!("0400000002{}{}00000003776879", number(1), number(2)),
        ),
        (&|batch| batch.revive(vec![3]), format!("0500000001{}", number(3))),
        (&|batch| batch.rewind(4), format!("06{}", number(4))),
        (&|batch| batch.pending(Some(5)), format!("0701{}", number(5))),
        (&|batch| batch.pending(None), format!("0700{}", number(0))),
        (&|batch| batch.safe(6), format!("08{}", number(6))),
        (&|batch| batch.finalized(7), format!("09{}", number(7))),
        (&|batch| batch.note(deadline.clone()), format!("0a{}", hex::encode(&deadline))),
        (
            &|batch| batch.put(b"k".to_vec(), b"row".to_vec()).unwrap(),
            "0b000000016b00000003726f77".into(),
        ),
        (&|batch| batch.delete(b"k".to_vec()).unwrap(), "0c000000016b".into()),
        (&Batch::fold_all, "0d".into()),
        (&|batch| batch.forget(vec![8]), format!("0e00000001{}", number(8))),
        (&|batch| batch.note(b"long".to_vec()), "0f000000046c6f6e67".into()),
    ];
    for (add, expected) in cases {
        assert_eq!(written(add), expected);
    }
}

#[test]
fn state_is_written_as_its_entries() {
    let code = b"\x60\x00";
    let (account, index) = (Address::repeat_byte(0x11), BTreeMap::from([(vec![9], vec![8, 7])]));
    let entries = [
        "00000003",
        // The account: flags, code hash, nonce, generation, balance.
        &format!("1561{}0024", hex::encode(account)),
        &format!("01{}010502", hex::encode(keccak256(code))),
        "036901090002", // the index row
        "0807",
        &format!("3d73{}0000000000000005", hex::encode(account)),
        &format!("{}000104", hex::encode(U256::from(3).to_be_bytes::<32>())),
    ]
    .concat();
    let codes = format!("00000001{}00000002{}", hex::encode(keccak256(code)), hex::encode(code));
    let number = |number: u64| hex::encode(number.to_be_bytes());
    let (hash, parent) = (B256::repeat_byte(0xcc), B256::repeat_byte(0xdd));
    let mut batch = Batch::new(7);
    batch.append(3, hash, changes(0x11, code), index.clone());
    let appended = format!("01{}{}{}", number(8), number(3), hex::encode(hash));
    assert_eq!(hex::encode(batch.encode().unwrap()), [&appended, &*entries, &codes].concat());
    let on = [
        (Parent::Sealed(3), format!("00{}", number(3))),
        (Parent::Partial(6), format!("01{}", number(6))),
        (Parent::Stacked(6, parent), format!("02{}{}", number(6), hex::encode(parent))),
    ];
    for (parent, written) in on {
        let mut batch = Batch::new(7);
        batch.draw();
        batch.extend(4, 2, hash, parent, changes(0x11, code), index.clone());
        let place = [number(9), number(4), number(2), hex::encode(hash)].concat();
        let expected = format!("02{place}{written}{entries}{codes}");
        assert_eq!(hex::encode(batch.encode().unwrap()), expected);
        assert_eq!((batch.before(), batch.after()), (7, 9));
    }
}

#[test]
fn an_anchor_is_written_with_its_rows_and_read_again() {
    let (hash, root) = (B256::repeat_byte(0xcc), B256::repeat_byte(0xdd));
    let number = |number: u64| hex::encode(number.to_be_bytes());
    let index = BTreeMap::from([(vec![9], vec![8, 7])]);
    for (anew, place) in [("00", false), ("01", true)] {
        let mut batch = Batch::new(7);
        let drawn = match place {
            true => batch.rebase(3, hash, root, 2, index.clone()),
            false => batch.begin_at(3, hash, root, 2, index.clone()),
        };
        assert_eq!(drawn, 8);
        let body = batch.encode().unwrap();
        let place =
            [number(8), number(3), hex::encode(hash), hex::encode(root), number(2)].concat();
        let rows = "0000000103690109000208070000 0000".replace(' ', "");
        assert_eq!(hex::encode(&body), format!("10{place}{anew}{rows}"));
        let read = Batch::decode(&body, 7, 8).unwrap();
        assert_eq!(read.encode().unwrap(), body);
    }
    let with = |anew: u8, rest: &[u8]| {
        let fixed = [&8_u64.to_be_bytes()[..], &[0; 8 + 32 + 32 + 8]].concat();
        undecodable(&[&[ANCHOR], &fixed[..], &[anew], rest].concat())
    };
    assert_eq!(with(2, &[0; 8]), "an anchor is neither the first nor another one");
    let mut batch = Batch::new(7);
    batch.append(3, hash, changes(0x11, b"code"), BTreeMap::new());
    let state = batch.encode().unwrap().split_off(1 + 8 + 8 + 32);
    assert_eq!(with(0, &state), "an anchor has state");
}

#[test]
fn what_is_local_is_not_written() {
    let mut batch = Batch::new(7);
    batch.put_local(b"k".to_vec(), b"v".to_vec()).unwrap();
    batch.nodes(3, Default::default());
    assert_eq!(batch.encode().unwrap(), b"");
    assert_eq!((batch.before(), batch.after()), (7, 8));
    batch.note(b"of the writer".to_vec());
    assert_eq!(batch.writers_note(), None);
    batch.rewind(5);
    batch.rewind(6);
    let mut read = Batch::decode(&batch.encode().unwrap(), 7, 8).unwrap();
    read.note(b"own".to_vec());
    assert_eq!(read.writers_note(), Some(&b"of the writer"[..]));
    assert_eq!(read.rewinds_to(), Some(5));
}

#[test]
fn index_rows_that_are_too_long_are_refused() {
    let mut batch = Batch::new(7);
    let index = BTreeMap::from([(vec![1; 200], vec![])]);
    batch.append(1, B256::ZERO, Changes::default(), index);
    assert!(matches!(batch.encode(), Err(Error::InvalidArgument(_))));
}

/// A batch with every kind of step.
fn full() -> Batch {
    let mut batch = Batch::new(7);
    batch.rewind(2);
    batch.append(3, B256::repeat_byte(1), changes(1, b"code"), BTreeMap::new());
    let index = BTreeMap::from([(vec![1], vec![2; 300]), (vec![2], vec![])]);
    let hash = B256::repeat_byte(2);
    let first = batch.extend(4, 0, hash, Parent::Sealed(3), changes(2, b"a"), index);
    let parent = Parent::Partial(first);
    let next = batch.extend(4, 1, hash, parent, Changes::default(), BTreeMap::new());
    let stacked = Parent::Stacked(next, hash);
    batch.extend(5, 0, hash, stacked, changes(3, b"b"), BTreeMap::new());
    batch.seal(next, hash);
    batch.drop_partials(vec![first], "as a test".into());
    batch.revive(vec![first]);
    batch.forget(vec![1, 2]);
    batch.pending(Some(next));
    batch.safe(3);
    batch.finalized(2);
    batch.note(vec![1; 24]);
    batch.note(vec![1; 48]);
    batch.put(b"key".to_vec(), vec![1; 500]).unwrap();
    batch.delete(b"key".to_vec()).unwrap();
    batch.fold_all();
    batch
}

fn read_again(body: &[u8]) -> Result<()> {
    let batch = Batch::decode(body, 7, 20)?;
    assert_eq!((batch.before(), batch.after()), (7, 20));
    assert_eq!(batch.encode()?, body);
    Ok(())
}

#[test]
fn a_body_that_is_cut_is_refused_unless_it_is_whole_steps() {
    let body = full().encode().unwrap();
    read_again(&body).unwrap();
    let whole = (0..body.len()).filter(|end| read_again(&body[..*end]).is_ok()).count();
    assert_eq!(whole, 17, "one before each step");
    for end in 0..body.len() {
        let longer = [&body[..], &body[..end]].concat();
        assert_eq!(read_again(&longer).is_ok(), end == 0);
    }
}

#[test]
fn what_nobody_writes_is_refused() {
    let count = |kind: u8, count: u32| [&[kind][..], &count.to_be_bytes()].concat();
    let long = [0xff; 4];
    for (body, why) in [
        (vec![0], "unknown step 0"),
        (vec![17], "unknown step 17"),
        (vec![255], "unknown step 255"),
        (vec![FOLD_ALL, FOLD_ALL], "a step follows the last one"),
        (count(REVIVE, u32::MAX), "it is cut short"),
        (count(FORGET, 1), "it is cut short"),
        ([&[PUT][..], &long, b"key"].concat(), "it is cut short"),
        (count(PUT, 0), "a row key has 1 to 511 bytes, not 0"),
        ([&count(DELETE, 600)[..], &[1; 600]].concat(), "a row key has 1 to 511 bytes, not 600"),
        ([&count(DROP, 0)[..], &[0, 0, 0, 1, 0xff]].concat(), "a reason is no text"),
        ([&[PENDING, 2][..], &[0; 8]].concat(), "a pending block is neither there nor missing"),
        ([&[PENDING, 0][..], &[1; 8]].concat(), "a pending block is neither there nor missing"),
        ([&count(LONGER_NOTE, 24)[..], &[0; 24]].concat(), "a note has another kind"),
    ] {
        assert_eq!(undecodable(&body), why);
    }
}

#[test]
fn blocks_that_nobody_writes_are_refused() {
    let block =
        |number: u64, rest: &[u8]| [&[APPEND][..], &number.to_be_bytes(), &[0; 40], rest].concat();
    let entry = |key: &[u8], value: &[u8]| {
        let length = (value.len() as u16).to_be_bytes();
        [&[key.len() as u8][..], key, &length, value].concat()
    };
    let (low, high) = ([&b"a"[..], &[1; 20]].concat(), [&b"a"[..], &[2; 20]].concat());
    let entries = |entries: &[Vec<u8>]| {
        let count = (entries.len() as u32).to_be_bytes();
        block(8, &[&count[..], &entries.concat(), &[0; 4]].concat())
    };
    assert!(Batch::decode(&entries(&[entry(&low, b""), entry(&high, b"")]), 7, 20).is_ok());
    for (body, why) in [
        (block(7, &[0; 8]), "number 7 is not among 7 + 1 to 20"),
        (block(21, &[0; 8]), "number 21 is not among 7 + 1 to 20"),
        ([block(9, &[0; 8]), block(9, &[0; 8])].concat(), "number 9 is not among 9 + 1 to 20"),
        (block(8, &[0xff; 4]), "it is cut short"),
        (block(8, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), "it is cut short"),
        (
            entries(&[entry(&high, b""), entry(&low, b"")]),
            "entries are not in the order of their keys",
        ),
        (
            entries(&[entry(&low, b""), entry(&low, b"")]),
            "entries are not in the order of their keys",
        ),
        (entries(&[entry(b"x", b"")]), "the store is damaged: an entry has no known key"),
        (entries(&[entry(&low, b"\x02")]), "the store is damaged: an account entry is not one"),
        (
            entries(&[entry(b"i\x01k", &[0; 4097])]),
            "the store is damaged: an entry has too long a value",
        ),
        (
            entries(&[entry(&[&b"r"[..], &[0; 28]].concat(), b"\x01")]),
            "the store is damaged: an entry has too long a value",
        ),
        (
            entries(&[entry(&[&b"s"[..], &[0; 60]].concat(), b"\x00")]),
            "the store is damaged: a slot has no value of up to 32 bytes",
        ),
    ] {
        assert_eq!(undecodable(&body), why);
    }
    let codes = [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[1; 32], &[0, 0, 0, 1, 5]].concat();
    assert!(undecodable(&block(8, &codes)).starts_with("code has another hash than 0x0101"));
    let stands = [&[EXTEND][..], &8_u64.to_be_bytes(), &[0; 48], &[3], &[0; 16]].concat();
    assert_eq!(undecodable(&stands), "a partial block stands on 3");
}

#[test]
fn commits_follow_each_other() {
    for (before, after) in [(7, 7), (7, 6), (0, u64::MAX)] {
        let read = Batch::decode(b"", before, after).map(drop);
        assert!(matches!(read, Err(Error::Undecodable { .. })), "{read:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_body_of_any_bytes_is_refused_or_written_again(
        bytes in proptest::collection::vec(prop_oneof![0..17u8, any::<u8>()], 0..200),
    ) {
        let _ = read_again(&bytes);
    }

    #[test]
    fn a_spoilt_body_is_refused_or_written_again(
        spoilt in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = full().encode().unwrap();
        for (place, byte) in spoilt {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let _ = read_again(&body);
        body.truncate(cut.index(body.len()));
        let _ = read_again(&body);
    }
}
