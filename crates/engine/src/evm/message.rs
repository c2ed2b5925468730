//! An unsigned transaction, as executed by eth_call and eth_simulateV1.

use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use revm::{
    context::{TransactionType, TxEnv},
    context_interface::either::Either,
};

use crate::{
    error::{Error, Result},
    evm::env::Env,
};

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
    /// The maximum price per unit of gas.
    pub fn cap(self) -> u128 {
        match self {
            Self::Legacy { gas_price } => gas_price,
            Self::Dynamic { max_fee_per_gas, .. } => max_fee_per_gas,
        }
    }
}

impl Message {
    pub fn is_priced(&self) -> bool {
        self.fees.cap() > 0
    }

    /// The transaction type that can carry the fields in use.
    fn transaction_type(&self) -> TransactionType {
        if !self.authorization_list.is_empty() {
            TransactionType::Eip7702
        } else if !self.blob_hashes.is_empty() {
            TransactionType::Eip4844
        } else if matches!(self.fees, Fees::Dynamic { .. }) {
            TransactionType::Eip1559
        } else if !self.access_list.is_empty() {
            TransactionType::Eip2930
        } else {
            TransactionType::Legacy
        }
    }

    /// Converts the message for revm. Rejects combinations that revm would silently accept.
    pub(crate) fn transaction(&self, env: &Env) -> Result<TxEnv> {
        if self.to.is_none() && !self.authorization_list.is_empty() {
            return refuse("a set-code transaction cannot create a contract");
        }
        if self.to.is_none() && !self.blob_hashes.is_empty() {
            return refuse("a blob transaction cannot create a contract");
        }
        if !self.blob_hashes.is_empty() && env.rules.is_optimism() {
            return refuse("there are no blob transactions on this chain");
        }
        if !self.blob_hashes.is_empty() && !self.authorization_list.is_empty() {
            return refuse("a transaction has either blobs or authorizations");
        }
        let gas_priority_fee = match self.fees {
            Fees::Legacy { .. } => None,
            Fees::Dynamic { max_priority_fee_per_gas, .. } => Some(max_priority_fee_per_gas),
        };
        Ok(TxEnv {
            tx_type: self.transaction_type() as u8,
            caller: self.from,
            gas_limit: self.gas,
            gas_price: self.fees.cap(),
            kind: self.to.map_or(TxKind::Create, TxKind::Call),
            value: self.value,
            data: self.data.clone(),
            nonce: self.nonce.unwrap_or_default(),
            chain_id: Some(env.chain_id),
            access_list: self.access_list.clone(),
            gas_priority_fee,
            blob_hashes: self.blob_hashes.clone(),
            max_fee_per_blob_gas: self.max_fee_per_blob_gas,
            authorization_list: self.authorization_list.iter().cloned().map(Either::Left).collect(),
        })
    }
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(Error::InvalidMessage(why.into()))
}
