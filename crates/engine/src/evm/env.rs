//! The environment of a block: everything a run needs besides state.
//!
//! Created once per block from plain values and shared by all its runs (`Arc`). Values are used as
//! given: base fee, blob fee and randomness are computed by the block rules in Python. Fields
//! required by the fork are checked here, so that a run cannot fail because of its environment.

use alloy_primitives::{Address, B256, TxKind, U256};
use revm::{
    context::{BlockEnv, TransactionType, TxEnv},
    context_interface::{block::BlobExcessGasAndPrice, either::Either},
    primitives::hardfork::SpecId,
};

use crate::{
    error::{Error, Result},
    evm::rules::Rules,
    message::{Fees, Message},
};

/// BLOBBASEFEE of every Optimism block: L2 blocks have no blobs.
const OPTIMISM_BLOB_BASE_FEE: u128 = 1;

/// A block's values according to its header and fork schedule.
#[derive(Debug, Clone, Default)]
pub struct BlockFields {
    pub number: u64,
    pub timestamp: u64,
    pub coinbase: Address,
    pub gas_limit: u64,
    pub base_fee: u64,
    pub difficulty: U256,
    /// Required from Paris on.
    pub prevrandao: Option<B256>,
    /// The blob gas price, required on Ethereum from Cancun on.
    pub blob_base_fee: Option<u128>,
    /// `None` means unlimited.
    pub max_blobs_per_transaction: Option<u64>,
    /// Overrides the fork's maximum size of created code, in bytes. The limit of init code is twice
    /// this.
    pub max_code_size: Option<u64>,
    /// Overrides the fork's maximum gas per transaction.
    pub max_transaction_gas: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Env {
    pub rules: Rules,
    pub chain_id: u64,
    pub max_blobs_per_transaction: Option<u64>,
    pub max_code_size: Option<usize>,
    pub max_transaction_gas: Option<u64>,
    pub(crate) block: BlockEnv,
}

impl Env {
    /// # Errors
    ///
    /// `InvalidArgument` if a field required by the fork is missing.
    pub fn new(rules: Rules, chain_id: u64, fields: &BlockFields) -> Result<Self> {
        let spec = rules.spec_id();
        let prevrandao = match spec.is_enabled_in(SpecId::MERGE) {
            false => None,
            true => Some(fields.prevrandao.ok_or_else(|| missing("prevrandao", rules))?),
        };
        let blob_base_fee = match spec.is_enabled_in(SpecId::CANCUN) {
            false => None,
            true if rules.is_optimism() => Some(OPTIMISM_BLOB_BASE_FEE),
            true => Some(fields.blob_base_fee.ok_or_else(|| missing("blob base fee", rules))?),
        };
        let block = BlockEnv {
            number: U256::from(fields.number),
            timestamp: U256::from(fields.timestamp),
            beneficiary: fields.coinbase,
            gas_limit: fields.gas_limit,
            basefee: fields.base_fee,
            difficulty: fields.difficulty,
            prevrandao,
            blob_excess_gas_and_price: blob_base_fee
                .map(|blob_gasprice| BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice }),
            slot_num: 0,
        };
        let max_blobs_per_transaction = fields.max_blobs_per_transaction;
        let max_code_size =
            fields.max_code_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let max_transaction_gas = fields.max_transaction_gas;
        Ok(Self {
            rules,
            chain_id,
            max_blobs_per_transaction,
            max_code_size,
            max_transaction_gas,
            block,
        })
    }

    pub fn number(&self) -> u64 {
        self.block.number.saturating_to()
    }

    /// Moves the environment to another block with otherwise equal values.
    pub(crate) fn set_position(&mut self, number: u64, timestamp: u64) {
        self.block.number = U256::from(number);
        self.block.timestamp = U256::from(timestamp);
    }

    pub fn gas_limit(&self) -> u64 {
        self.block.gas_limit
    }

    pub fn base_fee(&self) -> u64 {
        self.block.basefee
    }

    /// Converts a message for revm. Rejects combinations that revm would silently accept.
    pub(crate) fn transaction(&self, message: &Message) -> Result<TxEnv> {
        let signed = &message.authorization_list;
        if message.to.is_none() && !signed.is_empty() {
            return refuse("a set-code transaction cannot create a contract");
        }
        if message.to.is_none() && !message.blob_hashes.is_empty() {
            return refuse("a blob transaction cannot create a contract");
        }
        if !message.blob_hashes.is_empty() && self.rules.is_optimism() {
            return refuse("there are no blob transactions on this chain");
        }
        if !message.blob_hashes.is_empty() && !signed.is_empty() {
            return refuse("a transaction has either blobs or authorizations");
        }
        let gas_priority_fee = match message.fees {
            Fees::Legacy { .. } => None,
            Fees::Dynamic { max_priority_fee_per_gas, .. } => Some(max_priority_fee_per_gas),
        };
        Ok(TxEnv {
            tx_type: transaction_type(message) as u8,
            caller: message.from,
            gas_limit: message.gas,
            gas_price: message.fees.cap(),
            kind: message.to.map_or(TxKind::Create, TxKind::Call),
            value: message.value,
            data: message.data.clone(),
            nonce: message.nonce.unwrap_or_default(),
            chain_id: Some(self.chain_id),
            access_list: message.access_list.clone(),
            gas_priority_fee,
            blob_hashes: message.blob_hashes.clone(),
            max_fee_per_blob_gas: message.max_fee_per_blob_gas,
            authorization_list: signed.iter().cloned().map(Either::Left).collect(),
        })
    }
}

/// The transaction type that can carry the fields in use.
fn transaction_type(message: &Message) -> TransactionType {
    if !message.authorization_list.is_empty() {
        TransactionType::Eip7702
    } else if !message.blob_hashes.is_empty() {
        TransactionType::Eip4844
    } else if matches!(message.fees, Fees::Dynamic { .. }) {
        TransactionType::Eip1559
    } else if !message.access_list.is_empty() {
        TransactionType::Eip2930
    } else {
        TransactionType::Legacy
    }
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(Error::InvalidMessage(why.into()))
}

fn missing(what: &str, rules: Rules) -> Error {
    Error::invalid(format!("a block under {rules:?} needs a {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_fork_requires_is_asked_for_when_the_environment_is_made() {
        let none = BlockFields::default();
        let randao = BlockFields { prevrandao: Some(B256::ZERO), ..none.clone() };
        let both = BlockFields { blob_base_fee: Some(7), ..randao.clone() };
        let make = |fork, fields| Env::new(Rules::ethereum(fork).expect("a fork"), 1, fields);

        assert!(make("London", &none).is_ok());
        assert!(make("Paris", &none).is_err());
        assert!(make("Shanghai", &randao).is_ok());
        assert!(make("Cancun", &randao).is_err());
        assert!(make("Cancun", &both).is_ok());
    }

    #[test]
    fn blob_gas_costs_one_wei_on_optimism_whatever_is_given() {
        let fields = BlockFields {
            prevrandao: Some(B256::ZERO),
            blob_base_fee: Some(99),
            ..Default::default()
        };
        let env = Env::new(Rules::optimism("Jovian").expect("a fork"), 1, &fields).expect("valid");
        let price = env.block.blob_excess_gas_and_price.map(|blob| blob.blob_gasprice);
        assert_eq!(price, Some(OPTIMISM_BLOB_BASE_FEE));
    }
}
