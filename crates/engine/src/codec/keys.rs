//! Secret keys: their addresses and signatures.
//!
//! For development chains, whose keys are public. Not hardened against side channels.

use alloy_consensus::{
    SignableTransaction,
    crypto::secp256k1::{public_key_to_address, sign_message},
};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes};
use secp256k1::{PublicKey, Secp256k1, SecretKey};

use crate::codec::transaction::{Envelope, Transaction, typed};
use crate::error::{Error, Result};
use crate::message::Message;

const BLOB: u8 = 3;

/// The compressed public key of a secret key.
///
/// # Errors
///
/// `InvalidArgument` if the secret key is invalid.
pub fn public_key(secret: &B256) -> Result<[u8; 33]> {
    Ok(public(secret)?.serialize())
}

/// The address of a secret key.
///
/// # Errors
///
/// `InvalidArgument` if the secret key is invalid.
pub fn address_of(secret: &B256) -> Result<Address> {
    Ok(public_key_to_address(public(secret)?))
}

fn public(secret: &B256) -> Result<PublicKey> {
    let key = SecretKey::from_slice(secret.as_slice())
        .map_err(|_| Error::invalid("a secret key is between 1 and the curve order"))?;
    Ok(PublicKey::from_secret_key(&Secp256k1::signing_only(), &key))
}

/// Signs the message as a transaction of type `tx_type` (0, 1, 2 or 4).
///
/// The sender is the address of the key, regardless of the message.
///
/// # Errors
///
/// `InvalidArgument` if the secret key is invalid, for other types, and for a contract creation if
/// the type does not support it.
pub fn sign_transaction(
    message: &Message,
    tx_type: u8,
    chain_id: u64,
    nonce: u64,
    secret: &B256,
) -> Result<Transaction> {
    if tx_type == BLOB {
        return Err(Error::invalid("type 3 cannot be signed here"));
    }
    let typed = typed(message, tx_type, chain_id, nonce)?;
    let signature = sign_message(*secret, typed.signature_hash())
        .map_err(|_| Error::invalid("a secret key is between 1 and the curve order"))?;
    let envelope = typed.into_envelope(signature);
    let raw: Bytes = envelope.encoded_2718().into();
    let (hash, sender) = (*envelope.tx_hash(), address_of(secret)?);
    Ok(Transaction { envelope: Envelope::Signed(envelope), hash, sender, raw })
}

/// Signs a digest in the format of wallets: r, s, and 27 or 28.
///
/// # Errors
///
/// `InvalidArgument` if the secret key is invalid.
pub fn sign_digest(digest: B256, secret: &B256) -> Result<[u8; 65]> {
    sign_message(*secret, digest)
        .map(|signature| signature.as_bytes())
        .map_err(|_| Error::invalid("a secret key is between 1 and the curve order"))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{U256, address, b256, hex};

    use super::*;
    use crate::codec::transaction::decode;
    use crate::message::Fees;

    /// The first account of the mnemonic that development tools share.
    const SECRET: B256 =
        b256!("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    const OWNER: Address = address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");

    fn message() -> Message {
        Message {
            to: Some(Address::repeat_byte(0xc1)),
            value: U256::from(1000),
            gas: 21_000,
            fees: Fees::Dynamic { max_fee_per_gas: 9, max_priority_fee_per_gas: 2 },
            ..Message::default()
        }
    }

    #[test]
    fn a_secret_has_the_address_that_everybody_knows() {
        assert_eq!(address_of(&SECRET).expect("a key"), OWNER);
        // The generator of secp256k1 is the public key of the secret 1.
        let one = B256::with_last_byte(1);
        let generator = hex!("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
        assert_eq!(public_key(&one).expect("a key"), generator);
    }

    #[test]
    fn what_is_signed_decodes_to_its_signer() {
        for tx_type in [0, 1, 2, 4] {
            let made = sign_transaction(&message(), tx_type, 31337, 7, &SECRET).expect("signed");
            assert_eq!(decode(&made.raw).expect("decodes"), made);
            assert_eq!((made.sender, made.fields().nonce()), (OWNER, 7));
            assert_eq!((made.fields().ty(), made.fields().chain_id()), (tx_type, Some(31337)));
        }
    }

    #[test]
    fn a_signed_digest_has_the_bytes_that_wallets_give() {
        // personal_sign of the empty text, as computed by eth-account.
        let digest = b256!("0x5f35dce98ba4fba25530a026ed80b2cecdaa31091ba4958b99b52ea1d068adad");
        let signature = sign_digest(digest, &SECRET).expect("signed");
        let found = alloy_primitives::Signature::from_raw_array(&signature).expect("a signature");
        assert_eq!(found.recover_address_from_prehash(&digest).expect("a signer"), OWNER);
        assert!(matches!(signature[64], 27 | 28));
        assert!(sign_digest(digest, &B256::ZERO).is_err());
    }

    #[test]
    fn what_cannot_be_signed_is_refused() {
        assert!(public_key(&B256::ZERO).is_err());
        assert!(sign_transaction(&message(), 2, 1, 0, &B256::repeat_byte(0xff)).is_err());
        assert!(sign_transaction(&message(), 3, 1, 0, &SECRET).is_err());
        let create = Message { to: None, ..message() };
        assert!(sign_transaction(&create, 4, 1, 0, &SECRET).is_err());
    }
}
