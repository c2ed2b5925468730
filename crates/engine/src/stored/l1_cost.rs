//! The cost of posting a transaction of an Optimism chain to L1, as its receipt shows it.
//!
//! `ledger/rules/l1.py` reads the prices from the first transaction of the block. As in execution,
//! amounts beyond 256 bits saturate.

use alloy_primitives::U256;

use crate::evm::transact::estimated_compressed_size;

const ZERO_BYTE: u64 = 4; // gas of L1's call data (EIP-2028)
const OTHER_BYTE: u64 = 16;
const MILLION: u64 = 1_000_000;

/// The prices of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct L1Prices {
    /// Gas added to that of the call data, before Ecotone; `None` from Ecotone on.
    pub overhead: Option<U256>,
    /// The price of a millionth of a byte in 10^-12 wei; before Ecotone that of gas in 10^-6 wei.
    pub price: U256,
    /// Sizes are those of the compressed transaction, from Fjord on.
    pub compressed: bool,
    /// The gas of a byte in the data footprint; 0 before Jovian.
    pub footprint_scalar: u64,
}

/// The cost of one transaction; zero for a deposit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct L1Cost {
    pub gas: U256,
    /// In wei.
    pub fee: U256,
    /// Its share of the block's data, in gas; 0 before Jovian.
    pub footprint: u64,
}

impl L1Prices {
    /// The cost of an encoded transaction that is not a deposit.
    pub fn cost(&self, raw: &[u8]) -> L1Cost {
        if let Some(overhead) = self.overhead {
            let gas = overhead.saturating_add(U256::from(data_gas(raw)));
            let fee = gas.saturating_mul(self.price) / U256::from(MILLION);
            return L1Cost { gas, fee, footprint: 0 };
        }
        let size = match self.compressed {
            true => estimated_compressed_size(raw),
            false => data_gas(raw) * MILLION / OTHER_BYTE,
        };
        L1Cost {
            gas: U256::from(size.saturating_mul(OTHER_BYTE) / MILLION),
            fee: U256::from(size).saturating_mul(self.price) / U256::from(MILLION * MILLION),
            footprint: (size / MILLION).saturating_mul(self.footprint_scalar),
        }
    }
}

fn data_gas(raw: &[u8]) -> u64 {
    raw.iter().map(|byte| if *byte == 0 { ZERO_BYTE } else { OTHER_BYTE }).sum()
}
