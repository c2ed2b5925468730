//! An unsigned transaction, as executed by eth_call and eth_simulateV1.

use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, U256};

#[derive(Debug, Clone, Default)]
pub struct Message {
    pub from: Address,
    /// `None` creates a contract.
    pub to: Option<Address>,
    pub value: U256,
    pub data: Bytes,
    pub gas: u64,
    /// Checked against the state if given.
    pub nonce: Option<u64>,
    pub fees: Fees,
    pub access_list: AccessList,
    pub blob_hashes: Vec<B256>,
    pub max_fee_per_blob_gas: u128,
    pub authorization_list: Vec<SignedAuthorization>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fees {
    Legacy { gas_price: u128 },
    Dynamic { max_fee_per_gas: u128, max_priority_fee_per_gas: u128 },
}

impl Default for Fees {
    fn default() -> Self {
        Self::Legacy { gas_price: 0 }
    }
}

impl Fees {
    /// The maximum price per unit of gas, and what of it may go to the block's beneficiary.
    pub(crate) fn caps(self) -> (u128, u128) {
        match self {
            Self::Legacy { gas_price } => (gas_price, gas_price),
            Self::Dynamic { max_fee_per_gas, max_priority_fee_per_gas } => {
                (max_fee_per_gas, max_priority_fee_per_gas)
            }
        }
    }

    /// The maximum price per unit of gas.
    pub fn cap(self) -> u128 {
        self.caps().0
    }
}

impl Message {
    pub fn is_priced(&self) -> bool {
        self.fees.cap() > 0
    }
}
