//! RLP items of stored rows, read in place.

use alloy_rlp::Header;

use crate::error::{Error, Result};

/// The payload of the next RLP item of any kind.
#[inline]
pub(crate) fn take_item<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    take(rest).map(|(payload, _)| payload)
}

/// The payload of the next RLP item, which must be a list.
#[inline]
pub(crate) fn take_list<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    match take(rest)? {
        (payload, true) => Ok(payload),
        _ => Err(damaged("a string where a list should be")),
    }
}

/// A number of up to 64 bits.
pub(crate) fn number(payload: &[u8]) -> Result<u64> {
    wide_number(payload)?.try_into().map_err(|_| damaged("a number has more than 64 bits"))
}

/// A number of up to 128 bits.
pub(crate) fn wide_number(payload: &[u8]) -> Result<u128> {
    if payload.len() > 16 {
        return Err(damaged("a number has more than 128 bits"));
    }
    Ok(payload.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

#[cold]
pub(crate) fn damaged(why: &str) -> Error {
    Error::StoreDamaged(format!("a row of a block: {why}"))
}

#[inline]
fn take<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], bool)> {
    let Some((start, length, list)) = header(rest) else { return take_unusual(rest) };
    match rest.get(start..).and_then(|rest| rest.split_at_checked(length)) {
        Some((payload, after)) => {
            *rest = after;
            Ok((payload, list))
        }
        None => Err(damaged("an RLP item is cut short")),
    }
}

/// The length of the header of an item, that of its payload, and whether it is a list. `None` if
/// the header is unusual or not canonical.
#[inline]
fn header(item: &[u8]) -> Option<(usize, usize, bool)> {
    let first = *item.first()?;
    let list = first >= 0xc0;
    let kind = if list { first - 0x40 } else { first };
    let (high, low) = (item.get(1).copied().unwrap_or(0), item.get(2).copied().unwrap_or(0));
    match kind {
        ..0x80 => Some((0, 1, false)),
        0x81 if !list && high < 0x80 => None,
        0x80..0xb8 => Some((1, usize::from(kind - 0x80), list)),
        0xb8 if high >= 56 => Some((2, high.into(), list)),
        0xb9 if high > 0 && item.len() > 2 => {
            Some((3, u16::from_be_bytes([high, low]).into(), list))
        }
        _ => None,
    }
}

#[cold]
fn take_unusual<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], bool)> {
    let header = Header::decode(rest).map_err(|why| damaged(&why.to_string()))?;
    let (payload, after) = rest
        .split_at_checked(header.payload_length)
        .ok_or_else(|| damaged("an RLP item is cut short"))?;
    *rest = after;
    Ok((payload, header.list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_that_alloy_reads() {
        let mut starts: Vec<Vec<u8>> = (0..=255).map(|first| vec![first]).collect();
        for first in [0x81, 0xb7, 0xb8, 0xb9, 0xba, 0xf7, 0xf8, 0xf9, 0xfa] {
            for second in [0, 1, 55, 56, 0x7f, 0x80, 255] {
                starts.extend([
                    vec![first, second],
                    vec![first, second, 0],
                    vec![first, second, 1, 2],
                ]);
            }
        }
        for start in starts {
            let item = [&start[..], &[0x90; 1 << 16]].concat();
            for item in [&item[..], &item[..start.len()]] {
                let mut rest = item;
                let expected = Header::decode(&mut rest).ok().and_then(|header| {
                    rest.get(..header.payload_length).map(|payload| (payload, header.list))
                });
                assert_eq!(take(&mut &*item).ok(), expected, "{start:02x?}");
            }
        }
    }
}
