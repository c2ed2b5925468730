//! The part of a second that a block of Base adds to its timestamp.
//!
//! Since the Denim upgrade the second transaction of a block is a deposit of the L1 attributes depositor
//! to the predeploy `BaseTime`, which sets the milliseconds: `setTimestampMillisPart(uint16)`.
//! Other senders are ignored: on a chain without the upgrade, anyone can force a deposit from L1.

use alloy_primitives::{Address, address};

use super::items::Items;
use super::rlp::{take_item, take_list};
use crate::error::Result;

pub const BASE_TIME: Address = address!("4200000000000000000000000000000000000030");
pub const SELECTOR: [u8; 4] = [0x86, 0xbd, 0xf3, 0x94];

const DEPOSITOR: Address = address!("deaddeaddeaddeaddeaddeaddeaddeaddead0001");
const DEPOSIT: u8 = 0x7e;
/// Index of the transaction in its block, and of its sender, receiver and data among its fields.
const INDEX: usize = 1;
const SENDER: usize = 1;
const RECEIVER: usize = 2;
const DATA: usize = 7;

/// The milliseconds that the block states whose first transactions are in a row; `None` if it
/// states none.
///
/// # Errors
///
/// `StoreDamaged` if the row is malformed.
pub fn base_time(row: &[u8]) -> Result<Option<u16>> {
    let Some((&DEPOSIT, mut rest)) = Items::new(row)?.at(INDEX)?.and_then(<[u8]>::split_first)
    else {
        return Ok(None);
    };
    let mut fields = take_list(&mut rest)?;
    let (mut sender, mut receiver, mut data) = (&[][..], &[][..], &[][..]);
    for field in 0..=DATA {
        let value = take_item(&mut fields)?;
        match field {
            SENDER => sender = value,
            RECEIVER => receiver = value,
            DATA => data = value,
            _ => (),
        }
    }
    let argument = data.strip_prefix(&SELECTOR);
    Ok(match argument.and_then(|word| word.split_last_chunk::<2>()) {
        Some((zeros, part)) if sender == DEPOSITOR && receiver == BASE_TIME && zeros == [0; 30] => {
            Some(u16::from_be_bytes(*part)).filter(|part| *part < 1000)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use alloy_primitives::hex;

    use super::*;

    /// As a public network of Base has it in its block 2, but for the milliseconds.
    const RECORDED: &str = "7ef877a0002c6109309955fa0a804192573fbb620035638bfc135b9190bc5f3dd964498a94deaddeaddead\
        deaddeaddeaddeaddeaddead00019442000000000000000000000000000000000000308080830f424080a4\
        86bdf39400000000000000000000000000000000000000000000000000000000000000";

    fn row(second: &[u8]) -> Vec<u8> {
        let mut row =
            vec![0, 0, 0, 2, 0, 0, 0, 1, 0x7e, 0, 0, 0, u8::try_from(second.len()).unwrap()];
        row.extend_from_slice(second);
        row
    }

    fn recorded(last: &str) -> Vec<u8> {
        hex::decode(format!("{RECORDED}{last}")).unwrap()
    }

    #[test]
    fn the_deposit_of_a_block_has_its_milliseconds() {
        assert_eq!(base_time(&row(&recorded("00"))).unwrap(), Some(0));
        let mut late = recorded("20");
        let end = late.len() - 2;
        late[end] = 3;
        assert_eq!(base_time(&row(&late)).unwrap(), Some(800));
    }

    #[test]
    fn other_transactions_have_none() {
        let (mut selector, mut receiver, mut sender) =
            (recorded("00"), recorded("00"), recorded("00"));
        let start = selector.len() - 36;
        selector[start] ^= 1;
        assert_eq!(base_time(&row(&selector)).unwrap(), None);
        receiver[60] ^= 1;
        assert_eq!(base_time(&row(&receiver)).unwrap(), None);
        sender[40] ^= 1;
        assert_eq!(base_time(&row(&sender)).unwrap(), None);
        let mut large = recorded("00");
        let end = large.len() - 2;
        large[end] = 4; // 1,024 ms
        assert_eq!(base_time(&row(&large)).unwrap(), None);
        assert_eq!(base_time(&row(&[0x02, 0xc0])).unwrap(), None);
        assert_eq!(base_time(&[0, 0, 0, 0]).unwrap(), None);
    }
}
