//! Headers. Fields are set by name, for a new header and for a modified copy.

use foreblock_engine::codec::header as engine;
use foreblock_engine::codec::json;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::convert::{Arg, FromPython, Integer};
use crate::error::to_python;

/// A block header.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct Header(pub engine::Header);

/// Fields without a default.
const REQUIRED: [&str; 6] =
    ["parent_hash", "beneficiary", "state_root", "number", "gas_limit", "timestamp"];

impl Header {
    fn from_fields(fields: engine::Fields) -> PyResult<Self> {
        engine::Header::new(fields).map(Self).map_err(to_python)
    }
}

#[pymethods]
impl Header {
    #[new]
    #[pyo3(
        signature = (**fields),
        text_signature = "(*, parent_hash, beneficiary, state_root, number, gas_limit, timestamp, \
            ommers_hash=..., transactions_root=..., receipts_root=..., logs_bloom=..., \
            difficulty=0, gas_used=0, extra_data=b'', mix_hash=..., nonce=..., \
            base_fee_per_gas=None, withdrawals_root=None, blob_gas_used=None, \
            excess_blob_gas=None, parent_beacon_block_root=None, requests_hash=None, \
            block_access_list_hash=None, slot_number=None)"
    )]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut header = engine::Fields::default();
        let mut given = [false; REQUIRED.len()];
        for (name, value) in fields.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?;
            set(&mut header, name, &value)?;
            if let Some(at) = REQUIRED.iter().position(|required| *required == name) {
                given[at] = true;
            }
        }
        match given.iter().position(|given| !given) {
            None => Self::from_fields(header),
            Some(at) => Err(PyTypeError::new_err(format!("Header() needs '{}'", REQUIRED[at]))),
        }
    }

    #[pyo3(signature = (**fields))]
    fn replace(&self, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut header = self.0.fields().clone();
        for (name, value) in fields.into_iter().flatten() {
            set(&mut header, name.cast::<PyString>()?.to_str()?, &value)?;
        }
        Self::from_fields(header)
    }

    fn with_milliseconds(&self, milliseconds: Option<u16>) -> Self {
        Self(self.0.clone().with_milliseconds(milliseconds))
    }

    #[getter]
    fn timestamp_ms(&self) -> Option<u64> {
        self.0.timestamp_ms()
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode().into()
    }

    #[getter]
    fn hash(&self) -> [u8; 32] {
        self.0.hash().0
    }

    #[pyo3(signature = (size = None))]
    fn members(&self, size: Option<Arg<usize>>) -> Vec<u8> {
        let mut out = Vec::with_capacity(2048);
        json::header(&mut out, &self.0, size.map(|size| size.0));
        out
    }

    #[getter]
    fn parent_hash(&self) -> [u8; 32] {
        self.0.parent_hash.0
    }

    #[getter]
    fn ommers_hash(&self) -> [u8; 32] {
        self.0.ommers_hash.0
    }

    #[getter]
    fn beneficiary(&self) -> [u8; 20] {
        self.0.beneficiary.into_array()
    }

    #[getter]
    fn state_root(&self) -> [u8; 32] {
        self.0.state_root.0
    }

    #[getter]
    fn transactions_root(&self) -> [u8; 32] {
        self.0.transactions_root.0
    }

    #[getter]
    fn receipts_root(&self) -> [u8; 32] {
        self.0.receipts_root.0
    }

    #[getter]
    fn logs_bloom(&self) -> [u8; 256] {
        self.0.logs_bloom.into_array()
    }

    #[getter]
    fn difficulty(&self) -> Integer {
        Integer(self.0.difficulty)
    }

    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn gas_limit(&self) -> u64 {
        self.0.gas_limit
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.0.gas_used
    }

    #[getter]
    fn timestamp(&self) -> u64 {
        self.0.timestamp
    }

    #[getter]
    fn extra_data(&self) -> &[u8] {
        &self.0.extra_data
    }

    #[getter]
    fn mix_hash(&self) -> [u8; 32] {
        self.0.mix_hash.0
    }

    #[getter]
    fn nonce(&self) -> [u8; 8] {
        self.0.nonce.0
    }

    #[getter]
    fn base_fee_per_gas(&self) -> Option<u64> {
        self.0.base_fee_per_gas
    }

    #[getter]
    fn withdrawals_root(&self) -> Option<[u8; 32]> {
        self.0.withdrawals_root.map(|root| root.0)
    }

    #[getter]
    fn blob_gas_used(&self) -> Option<u64> {
        self.0.blob_gas_used
    }

    #[getter]
    fn excess_blob_gas(&self) -> Option<u64> {
        self.0.excess_blob_gas
    }

    #[getter]
    fn parent_beacon_block_root(&self) -> Option<[u8; 32]> {
        self.0.parent_beacon_block_root.map(|root| root.0)
    }

    #[getter]
    fn requests_hash(&self) -> Option<[u8; 32]> {
        self.0.requests_hash.map(|hash| hash.0)
    }

    #[getter]
    fn block_access_list_hash(&self) -> Option<[u8; 32]> {
        self.0.block_access_list_hash.map(|hash| hash.0)
    }

    #[getter]
    fn slot_number(&self) -> Option<u64> {
        self.0.slot_number
    }

    fn __repr__(&self) -> String {
        format!("<Header {} {}>", self.0.number, self.0.hash())
    }
}

/// Sets a field by name. Adds a note with the name to the exception on failure.
fn set(header: &mut engine::Fields, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    convert(header, name, value).inspect_err(|error| {
        let note = (format!("while processing '{name}'"),);
        // If the note cannot be added, the original exception is still raised.
        let _ = error.value(value.py()).call_method1(intern!(value.py(), "add_note"), note);
    })
}

fn convert(header: &mut engine::Fields, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match name {
        "parent_hash" => header.parent_hash = FromPython::from_python(value)?,
        "ommers_hash" => header.ommers_hash = FromPython::from_python(value)?,
        "beneficiary" => header.beneficiary = FromPython::from_python(value)?,
        "state_root" => header.state_root = FromPython::from_python(value)?,
        "transactions_root" => header.transactions_root = FromPython::from_python(value)?,
        "receipts_root" => header.receipts_root = FromPython::from_python(value)?,
        "logs_bloom" => header.logs_bloom = FromPython::from_python(value)?,
        "difficulty" => header.difficulty = FromPython::from_python(value)?,
        "number" => header.number = FromPython::from_python(value)?,
        "gas_limit" => header.gas_limit = FromPython::from_python(value)?,
        "gas_used" => header.gas_used = FromPython::from_python(value)?,
        "timestamp" => header.timestamp = FromPython::from_python(value)?,
        "extra_data" => header.extra_data = FromPython::from_python(value)?,
        "mix_hash" => header.mix_hash = FromPython::from_python(value)?,
        "nonce" => header.nonce = FromPython::from_python(value)?,
        "base_fee_per_gas" => header.base_fee_per_gas = FromPython::from_python(value)?,
        "withdrawals_root" => header.withdrawals_root = FromPython::from_python(value)?,
        "blob_gas_used" => header.blob_gas_used = FromPython::from_python(value)?,
        "excess_blob_gas" => header.excess_blob_gas = FromPython::from_python(value)?,
        "parent_beacon_block_root" => {
            header.parent_beacon_block_root = FromPython::from_python(value)?;
        }
        "requests_hash" => header.requests_hash = FromPython::from_python(value)?,
        "block_access_list_hash" => header.block_access_list_hash = FromPython::from_python(value)?,
        "slot_number" => header.slot_number = FromPython::from_python(value)?,
        other => {
            return Err(PyTypeError::new_err(format!("a header has no field '{other}'")));
        }
    }
    Ok(())
}
