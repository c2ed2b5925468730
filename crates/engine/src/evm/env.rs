//! The environment of a block: everything a run needs besides state.
//!
//! Created once per block from plain values and shared by all its runs (`Arc`). Values are used as
//! given: base fee, blob fee and randomness are computed by the block rules in Python. Fields
//! required by the fork are checked here, so that a run cannot fail because of its environment.

use alloy_primitives::{Address, B256, U256};
use revm::{
    context::BlockEnv, context_interface::block::BlobExcessGasAndPrice,
    primitives::hardfork::SpecId,
};

use crate::{
    error::{Error, Result},
    evm::rules::Rules,
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
