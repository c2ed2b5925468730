//! Block headers.
//!
//! A `Header` is immutable and caches its hash. Its optional fields have no gaps: each fork only
//! appended fields, and the encoding identifies them by their number alone, so a header with a gap
//! would encode as a different one. Rules between a header and its parent or body are not checked
//! here.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::OnceLock;

pub use alloy_consensus::Header as Fields;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rlp::{Decodable, Encodable};

use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub struct Header {
    fields: Fields,
    /// Derived from the fields, so it is excluded from comparisons.
    hash: OnceLock<B256>,
    /// The part of a second that the block adds to the timestamp, if it has one. It is in the
    /// block's body, so it is excluded as well.
    milliseconds: Option<u16>,
}

impl Header {
    /// Creates a header from its fields.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a field of a later fork is present and one of an earlier fork is
    /// missing.
    pub fn new(fields: Fields) -> Result<Self> {
        check_gapless(&fields)?;
        Ok(Self { fields, hash: OnceLock::new(), milliseconds: None })
    }

    /// Decodes exactly one header in canonical encoding.
    ///
    /// # Errors
    ///
    /// `Undecodable` for anything else.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let fields = Fields::decode(&mut rest).map_err(|why| undecodable(why.to_string()))?;
        if !rest.is_empty() {
            return Err(undecodable(format!("{} bytes left over after it", rest.len())));
        }
        if alloy_rlp::encode(&fields) != bytes {
            return Err(undecodable("not the canonical encoding"));
        }
        Ok(Self { fields, hash: keccak256(bytes).into(), milliseconds: None })
    }

    pub fn encode(&self) -> Bytes {
        alloy_rlp::encode(&self.fields).into()
    }

    pub fn hash(&self) -> B256 {
        *self.hash.get_or_init(|| {
            let mut encoded = Vec::with_capacity(self.size());
            self.fields.encode(&mut encoded);
            keccak256(encoded)
        })
    }

    /// The length of the encoding in bytes.
    pub fn size(&self) -> usize {
        self.fields.length()
    }

    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    #[must_use]
    pub fn with_milliseconds(self, milliseconds: Option<u16>) -> Self {
        Self { milliseconds, ..self }
    }

    /// The time in milliseconds, if it is known.
    pub fn timestamp_ms(&self) -> Option<u64> {
        timestamp_ms(self.fields.timestamp, self.milliseconds)
    }
}

/// The time in milliseconds of a block with this timestamp, if the part of a second is known.
pub fn timestamp_ms(timestamp: u64, milliseconds: Option<u16>) -> Option<u64> {
    milliseconds.map(|part| timestamp.saturating_mul(1000).saturating_add(part.into()))
}

impl PartialEq for Header {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Header {}

impl Hash for Header {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields.hash(state);
    }
}

impl Deref for Header {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

/// The optional fields in order: London, Shanghai, Cancun (three), Prague and Amsterdam (two).
fn check_gapless(header: &Fields) -> Result<()> {
    let appended = [
        ("base_fee_per_gas", header.base_fee_per_gas.is_some()),
        ("withdrawals_root", header.withdrawals_root.is_some()),
        ("blob_gas_used", header.blob_gas_used.is_some()),
        ("excess_blob_gas", header.excess_blob_gas.is_some()),
        ("parent_beacon_block_root", header.parent_beacon_block_root.is_some()),
        ("requests_hash", header.requests_hash.is_some()),
        ("block_access_list_hash", header.block_access_list_hash.is_some()),
        ("slot_number", header.slot_number.is_some()),
    ];
    match appended.windows(2).find(|pair| !pair[0].1 && pair[1].1) {
        None => Ok(()),
        Some(pair) => {
            Err(Error::invalid(format!("a header with {} needs {}", pair[1].0, pair[0].0)))
        }
    }
}

fn undecodable(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "header", why: why.into() }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{U256, b256, hex};

    use super::*;

    fn amsterdam() -> Fields {
        Fields {
            number: 7,
            difficulty: U256::MAX,
            extra_data: Bytes::from_static(&[0xff; 32]),
            base_fee_per_gas: Some(0),
            withdrawals_root: Some(B256::ZERO),
            blob_gas_used: Some(u64::MAX),
            excess_blob_gas: Some(1),
            parent_beacon_block_root: Some(B256::ZERO),
            requests_hash: Some(B256::ZERO),
            block_access_list_hash: Some(B256::ZERO),
            slot_number: Some(9),
            ..Default::default()
        }
    }

    /// The header as it would be in each earlier fork, newest first.
    fn ladder() -> Vec<Fields> {
        let mut headers = vec![amsterdam()];
        let remove: [fn(&mut Fields); 8] = [
            |header| header.slot_number = None,
            |header| header.block_access_list_hash = None,
            |header| header.requests_hash = None,
            |header| header.parent_beacon_block_root = None,
            |header| header.excess_blob_gas = None,
            |header| header.blob_gas_used = None,
            |header| header.withdrawals_root = None,
            |header| header.base_fee_per_gas = None,
        ];
        for step in remove {
            let mut next = headers[headers.len() - 1].clone();
            step(&mut next);
            headers.push(next);
        }
        headers
    }

    #[test]
    fn headers_of_every_fork_survive_a_round_trip() {
        for fields in ladder() {
            let header = Header::new(fields).unwrap();
            let encoded = header.encode();
            assert_eq!(header.size(), encoded.len());
            assert_eq!(header.hash(), keccak256(&encoded));
            assert_eq!(Header::decode(&encoded).unwrap(), header);
        }
    }

    #[test]
    fn the_mainnet_genesis_header_has_its_famous_hash() {
        let genesis = Fields {
            state_root: b256!("d7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544"),
            difficulty: U256::from(0x4_0000_0000_u64),
            gas_limit: 5000,
            extra_data: hex!("11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa")
                .into(),
            nonce: 0x42_u64.to_be_bytes().into(),
            ..Default::default()
        };
        assert_eq!(
            Header::new(genesis).unwrap().hash(),
            b256!("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")
        );
    }

    #[test]
    fn a_gap_in_the_fields_by_fork_is_refused() {
        let mut fields = amsterdam();
        fields.excess_blob_gas = None;
        let error = Header::new(fields).unwrap_err();
        assert_eq!(
            error,
            Error::invalid("a header with parent_beacon_block_root needs excess_blob_gas")
        );
    }

    #[test]
    fn decoding_is_exact() {
        let encoded = Header::new(amsterdam()).unwrap().encode();
        let longer = [&encoded[..], &[0]].concat();
        assert!(Header::decode(&longer).unwrap_err().to_string().contains("1 bytes left over"));
        for length in 0..encoded.len() {
            assert!(Header::decode(&encoded[..length]).is_err());
        }
        for bit in 0..encoded.len() * 8 {
            let mut changed = encoded.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(header) = Header::decode(&changed) {
                assert_eq!(header.encode(), changed);
            }
        }
    }
}
