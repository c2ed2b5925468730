//! Converts a message to an unsigned transaction of a given type.
//!
//! Message fields that the type does not have are ignored.

use alloy_consensus::{
    EthereumTypedTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy,
};
use alloy_primitives::{Address, TxKind};

use crate::error::{Error, Result};
use crate::message::Message;

pub type Typed = EthereumTypedTransaction<TxEip4844>;

/// The transaction of type `tx_type` (0 to 4) that is equivalent to the message.
pub(crate) fn typed(message: &Message, tx_type: u8, chain_id: u64, nonce: u64) -> Result<Typed> {
    let (max_fee_per_gas, max_priority_fee_per_gas) = message.fees.caps();
    let gas_price = max_fee_per_gas;
    let Message { gas: gas_limit, value, .. } = *message;
    let (to, input) = (message.to.map_or(TxKind::Create, TxKind::Call), message.data.clone());
    let access_list = message.access_list.clone();
    Ok(match tx_type {
        0 => {
            let chain_id = Some(chain_id);
            TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input }.into()
        }
        1 => TxEip2930 { chain_id, nonce, gas_price, gas_limit, to, value, access_list, input }
            .into(),
        2 => TxEip1559 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to,
            value,
            access_list,
            input,
        }
        .into(),
        3 => Typed::Eip4844(TxEip4844 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to: recipient(message)?,
            value,
            access_list,
            blob_versioned_hashes: message.blob_hashes.clone(),
            max_fee_per_blob_gas: message.max_fee_per_blob_gas,
            input,
        }),
        4 => TxEip7702 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas,
            max_priority_fee_per_gas,
            to: recipient(message)?,
            value,
            access_list,
            authorization_list: message.authorization_list.clone(),
            input,
        }
        .into(),
        other => {
            return Err(Error::invalid(format!("no message is a transaction of type {other}")));
        }
    })
}

fn recipient(message: &Message) -> Result<Address> {
    message.to.ok_or_else(|| Error::invalid("this type of transaction cannot create a contract"))
}
