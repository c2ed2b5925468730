//! Conversion of values between Python and Rust.
//!
//! An argument of the wrong type raises TypeError. An invalid value of the right type (an address
//! of 19 bytes, a negative number) raises `InvalidArgument`. Byte strings are `bytes`, numbers are
//! `int`, never hex.

use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, Bloom, Bytes, FixedBytes, U256, hex};
use foreblock_engine::deadline::Limits;
use pyo3::call::PyCallArgs;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};
use pyo3::{ffi, intern};

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

thread_local! {
    /// The limits of this thread's current job, for engine calls made by its Python code.
    pub static CURRENT: RefCell<Option<Limits>> = const { RefCell::new(None) };
}

/// A converted and checked function argument: `address: Arg<Address>`.
pub struct Arg<T>(pub T);

impl<'py, T: FromPython> FromPyObject<'_, 'py> for Arg<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        T::from_python(&value).map(Arg)
    }
}

/// A tuple of a fixed length. PyO3's own conversion raises ValueError for other lengths.
macro_rules! tuples {
    ($($name:ident($($item:ident $at:literal),+) of $length:literal;)+) => {$(
        pub struct $name<$($item),+>($(pub $item),+);

        impl<'py, $($item),+> FromPyObject<'_, 'py> for $name<$($item),+>
        where
            $($item: FromPyObjectOwned<'py, Error: Into<PyErr>>),+
        {
            type Error = PyErr;

            fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                let tuple = value.cast::<PyTuple>()?;
                let found = tuple.len();
                if found != $length {
                    let why = format!("expected a tuple of {}, not of {found}", $length);
                    return Err(PyTypeError::new_err(why));
                }
                Ok(Self($(tuple.get_item($at)?.extract().map_err(Into::into)?),+))
            }
        }
    )+};
}

tuples! {
    Pair(A 0, B 1) of 2;
    Triple(A 0, B 1, C 2) of 3;
    Quad(A 0, B 1, C 2, D 3) of 4;
}

pub trait FromPython: Sized {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl FromPython for Bytes {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::copy_from_slice(value.cast::<PyBytes>()?.as_bytes()))
    }
}

impl<const N: usize> FromPython for FixedBytes<N> {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = value.cast::<PyBytes>()?.as_bytes();
        Self::try_from(bytes)
            .map_err(|_| invalid(format!("expected {N} bytes, not {}", bytes.len())))
    }
}

impl FromPython for Address {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = value.cast::<PyBytes>()?.as_bytes();
        Self::try_from(bytes)
            .map_err(|_| invalid(format!("an address has 20 bytes, not {}", bytes.len())))
    }
}

impl FromPython for Bloom {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        FixedBytes::from_python(value).map(Self)
    }
}

impl FromPython for u64 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|error| out_of_range(error, value.py(), 64))
    }
}

impl FromPython for i64 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|_| invalid("the number must lie between -2**63 and 2**63 - 1"))
    }
}

/// An int or float. A number too large for a float is invalid.
impl FromPython for f64 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract().map_err(|error: PyErr| {
            let too_large = error.is_instance_of::<PyOverflowError>(value.py());
            if too_large { invalid("the number is too large") } else { error }
        })
    }
}

impl FromPython for usize {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|error| out_of_range(error, value.py(), Self::BITS))
    }
}

impl FromPython for u32 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|error| out_of_range(error, value.py(), 32))
    }
}

impl FromPython for u16 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|error| out_of_range(error, value.py(), 16))
    }
}

impl FromPython for u8 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        number.extract().map_err(|error| out_of_range(error, value.py(), 8))
    }
}

impl FromPython for U256 {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = value.cast::<PyInt>()?;
        let mut overflow: c_int = 0;
        // SAFETY: `number` is a live int of this interpreter, to which we are attached, and
        // `overflow` is writable. The call cannot raise for an int.
        let small =
            unsafe { ffi::PyLong_AsLongLongAndOverflow(number.as_ptr(), &raw mut overflow) };
        match (overflow, u64::try_from(small)) {
            (0, Ok(small)) => Ok(Self::from(small)),
            (1, _) => large(number),
            _ => Err(out_of_range_error(256)),
        }
    }
}

/// A number above 2^63 - 1. The stable ABI has no cheaper conversion than `to_bytes`.
fn large(number: &Bound<'_, PyInt>) -> PyResult<U256> {
    let py = number.py();
    let bytes = number
        .call_method1(intern!(py, "to_bytes"), (32, intern!(py, "big")))
        .map_err(|error| out_of_range(error, py, 256))?;
    Ok(U256::from_be_slice(bytes.cast::<PyBytes>()?.as_bytes()))
}

/// A Python str may contain a lone surrogate, which is not valid Unicode.
impl FromPython for String {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = value.cast::<PyString>()?;
        let text = text.to_cow().map_err(|_| invalid("the text is not valid Unicode"))?;
        Ok(text.into_owned())
    }
}

impl<T: FromPython> FromPython for Option<T> {
    fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::from_python(value).map(Some) }
    }
}

/// A number to convert to a Python int.
pub struct Integer(pub U256);

impl From<u128> for Integer {
    fn from(number: u128) -> Self {
        Self(U256::from(number))
    }
}

impl<'py> IntoPyObject<'py> for Integer {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        if let Ok(small) = u64::try_from(self.0) {
            return Ok(small.into_pyobject(py)?.into_any());
        }
        // Hex digits with a terminating zero byte. Most numbers are far below 2^256, so skipping
        // the leading zeros saves time.
        let mut text = [0_u8; 65];
        let mut digits = hex::Buffer::<32>::new();
        text[..64].copy_from_slice(digits.format(&self.0.to_be_bytes()).as_bytes());
        let text = &text[self.0.leading_zeros() / 4..];
        // SAFETY: `text` is a zero-terminated string that outlives the call, and the end pointer
        // may be null. The result is a new reference, or null with an exception set.
        unsafe {
            let number = ffi::PyLong_FromString(text.as_ptr().cast(), ptr::null_mut(), 16);
            Bound::from_owned_ptr_or_err(py, number)
        }
    }
}

/// Creates exceptions by class name.
pub struct Class<'py>(pub Python<'py>);

impl<'py> Class<'py> {
    pub fn call(&self, name: &str, facts: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
        let import = || self.0.import("foreblock.errors").map(Bound::unbind);
        ERRORS.get_or_try_init(self.0, import)?.bind(self.0).getattr(name)?.call1(facts)
    }
}

pub fn invalid(why: impl Into<String>) -> PyErr {
    Python::attach(|py| {
        let made = Class(py).call("InvalidArgument", (why.into(),));
        made.map_or_else(|failure| failure, PyErr::from_value)
    })
}

/// Replaces Python's OverflowError by `InvalidArgument`. Other exceptions are unchanged.
fn out_of_range(error: PyErr, py: Python<'_>, bits: u32) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(py) { out_of_range_error(bits) } else { error }
}

/// The number is not included: it may have a million digits.
fn out_of_range_error(bits: u32) -> PyErr {
    invalid(format!("the number must lie between 0 and 2**{bits} - 1"))
}

/// The limits of an execution starting now. On a pool thread, those of its job apply too.
pub fn limits(timeout_us: Option<Arg<u64>>, step_us: Option<Arg<u64>>) -> Limits {
    let from_now = |timeout: Arg<u64>| Instant::now().checked_add(Duration::from_micros(timeout.0));
    let job = CURRENT.with_borrow(|limits| limits.clone().unwrap_or_default());
    let deadline = timeout_us.and_then(from_now);
    Limits {
        deadline: deadline.into_iter().chain(job.deadline).min(),
        step: step_us.map(|step| Duration::from_micros(step.0)),
        ..job
    }
}
