use super::*;

const HASH_A: B256 = B256::repeat_byte(0xa);

fn entry(address: u8, place: u32) -> Vec<u8> {
    [&[address; ADDRESS][..], &place.to_be_bytes()].concat()
}

#[test]
fn entries_are_sorted_and_each_address_is_listed_once() {
    let entries = [entry(7, 300), entry(2, 1), entry(7, 2), entry(9, 0)].concat();
    let made = row(HASH_A, 1, &entries).unwrap();
    let sorted = [entry(2, 1), entry(7, 2), entry(7, 300), entry(9, 0)].concat();
    assert_eq!(made, [HASH_A.as_slice(), &[1], &sorted].concat());
    let row = TouchedRow::new(&made, &HASH_A).unwrap().unwrap();
    assert_eq!(row.addresses().collect::<Vec<_>>(), [[2; ADDRESS], [7; ADDRESS], [9; ADDRESS]]);
}

#[test]
fn rows_of_other_blocks_and_damaged_ones_are_not_read() {
    let made = row(HASH_A, 0, &[]).unwrap();
    assert_eq!(TouchedRow::new(&made, &HASH_A).unwrap().unwrap().addresses().count(), 0);
    assert!(TouchedRow::new(&made, &B256::ZERO).unwrap().is_none());
    assert!(TouchedRow::new(&made[..32], &HASH_A).is_err());
    assert!(TouchedRow::new(&[&made[..], b"x"].concat(), &HASH_A).is_err());
    assert!(row(HASH_A, 0, b"x").is_none());
}
