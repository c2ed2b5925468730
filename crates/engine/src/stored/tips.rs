//! Tips that the transactions of a block paid above its base fee, prepared for percentiles.
//!
//! Bids are read from the rows of transactions and receipts by walking their RLP headers, about 100
//! ns each. Deposits pay no tip and are omitted. A block of 2,000 transactions takes 24 kB: 64 bits
//! for a tip and 32 for the cumulative gas, unless a value needs more.

#[cfg(test)]
mod tests;

use alloy_eips::eip1559::calc_effective_gas_price;

use crate::codec::transaction::{DEPOSIT_TYPE, POST_EXEC_TYPE};
use crate::error::Result;
use crate::stored::items::{Items, receipt_facts};
use crate::stored::rlp::{damaged, take_item, take_list, wide_number};

/// A tip in wei, and the gas used at that tip.
pub type Bid = (u128, u64);

/// The tip of a transaction as encoded in its trie; `None` for a deposit and a
/// post-execution transaction.
///
/// # Errors
///
/// `StoreDamaged` if the bytes are not a transaction.
pub fn tip_of(raw: &[u8], base_fee: Option<u64>) -> Result<Option<u128>> {
    let (kind, mut outer) = match raw {
        [DEPOSIT_TYPE | POST_EXEC_TYPE, ..] => return Ok(None),
        [kind @ 1..0x80, rest @ ..] => (*kind, rest),
        _ => (0, raw),
    };
    let mut fields = take_list(&mut outer)?;
    if kind != 0 {
        take_item(&mut fields)?; // chain id
    }
    take_item(&mut fields)?; // nonce
    let first = wide_number(take_item(&mut fields)?)?;
    let price = match kind {
        0 | 1 => first,
        2..=4 => {
            let most = wide_number(take_item(&mut fields)?)?;
            calc_effective_gas_price(most, first, base_fee)
        }
        _ => return Err(damaged("a transaction of an unknown type")),
    };
    Ok(Some(price.saturating_sub(base_fee.unwrap_or(0).into())))
}

/// Appends the bids of the transactions from `start` up to, but not including, `stop` of two rows.
/// Returns the cumulative gas after them.
///
/// `gas` is the cumulative gas before `start`.
///
/// # Errors
///
/// `StoreDamaged` if the row is malformed.
pub fn read_bids(
    (transactions, receipts): (&[u8], &[u8]),
    (start, stop): (usize, usize),
    base_fee: Option<u64>,
    mut gas: u64,
    bids: &mut Vec<Bid>,
) -> Result<u64> {
    let (mut raws, mut encoded) = (Items::new(transactions)?, Items::new(receipts)?);
    if raws.left() != encoded.left() {
        return Err(damaged("transactions and receipts differ in number"));
    }
    for index in 0..stop.min(raws.left()) {
        let (Some(raw), Some(receipt)) = (raws.take()?, encoded.take()?) else { break };
        if index < start {
            continue;
        }
        let before = gas;
        gas = receipt_facts(receipt)?.cumulative_gas;
        if let Some(tip) = tip_of(raw, base_fee)? {
            let used = gas.checked_sub(before).ok_or_else(|| damaged("gas that falls"))?;
            bids.push((tip, used));
        }
    }
    Ok(gas)
}

/// Tips in ascending order, and the cumulative gas up to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockTips {
    Narrow { tips: Box<[u64]>, gas: Box<[u32]> },
    Wide { tips: Box<[u128]>, gas: Box<[u64]> },
}

impl BlockTips {
    pub fn new(mut bids: Vec<Bid>) -> Self {
        bids.sort_unstable();
        let mut sum = 0_u64;
        let until: Vec<u64> = bids
            .iter()
            .map(|(_, gas)| {
                sum = sum.saturating_add(*gas);
                sum
            })
            .collect();
        let tips: Option<Box<[u64]>> =
            bids.iter().map(|(tip, _)| u64::try_from(*tip).ok()).collect();
        let gas: Option<Box<[u32]>> = until.iter().map(|gas| u32::try_from(*gas).ok()).collect();
        match (tips, gas) {
            (Some(tips), Some(gas)) => Self::Narrow { tips, gas },
            _ => Self::Wide {
                tips: bids.into_iter().map(|(tip, _)| tip).collect(),
                gas: until.into(),
            },
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Narrow { tips, .. } => tips.len(),
            Self::Wide { tips, .. } => tips.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The approximate memory size in bytes.
    pub fn size(&self) -> usize {
        128 + match self {
            Self::Narrow { tips, .. } => 12 * tips.len(),
            Self::Wide { tips, .. } => 24 * tips.len(),
        }
    }

    /// The `wanted` lowest tips, or all if there are fewer.
    pub fn lowest(&self, wanted: usize) -> Vec<u128> {
        (0..self.len().min(wanted)).map(|index| self.tip(index)).collect()
    }

    /// The tip at which this percentage of the gas is reached, starting at the lowest one; 0 if
    /// there are no bids.
    pub fn percentile(&self, percent: f64) -> u128 {
        let Some(last) = self.len().checked_sub(1) else { return 0 };
        let wanted = (self.gas_until(last) as f64 * percent / 100.0) as u64;
        let index = match self {
            Self::Narrow { gas, .. } => gas.partition_point(|gas| u64::from(*gas) < wanted),
            Self::Wide { gas, .. } => gas.partition_point(|gas| *gas < wanted),
        };
        self.tip(index.min(last))
    }

    fn tip(&self, index: usize) -> u128 {
        match self {
            Self::Narrow { tips, .. } => tips[index].into(),
            Self::Wide { tips, .. } => tips[index],
        }
    }

    fn gas_until(&self, index: usize) -> u64 {
        match self {
            Self::Narrow { gas, .. } => gas[index].into(),
            Self::Wide { gas, .. } => gas[index],
        }
    }
}
