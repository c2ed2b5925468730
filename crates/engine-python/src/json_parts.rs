//! Python bindings of the incremental splitting of long JSON texts.

use std::sync::{Mutex, MutexGuard};

use foreblock_engine::error::Error;
use foreblock_engine::params::parts::{Fault, Parts as EngineParts};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::{Arg, invalid};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Parts>()?;
    module.add_function(wrap_pyfunction!(read_parts, module)?)
}

/// The progress of splitting a JSON array or object.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Parts {
    text: PyBuffer<u8>,
    parts: Mutex<EngineParts>,
    #[pyo3(get)]
    is_object: bool,
}

impl Parts {
    fn parts(&self) -> MutexGuard<'_, EngineParts> {
        self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Parts {
    #[getter]
    fn done(&self) -> PyResult<bool> {
        reading(&self.text, |text| self.parts().is_done(text))
    }

    #[pyo3(signature = (bytes, parts, /))]
    fn take(&self, bytes: Arg<usize>, parts: Arg<usize>) -> PyResult<(usize, usize, usize, usize)> {
        let taken = reading(&self.text, |text| self.parts().take(text, bytes.0, parts.0))?;
        let portion = taken.map_err(refusal)?;
        Ok((portion.count, portion.start, portion.value, portion.end))
    }
}

#[pyfunction]
#[pyo3(signature = (json, /))]
fn read_parts(json: PyBuffer<u8>) -> PyResult<Option<Parts>> {
    let Some(parts) = reading(&json, EngineParts::of)? else { return Ok(None) };
    let is_object = parts.is_object();
    Ok(Some(Parts { text: json, parts: Mutex::new(parts), is_object }))
}

fn refusal(fault: Fault) -> PyErr {
    let why = match fault {
        Fault::Malformed => "malformed",
        Fault::TooDeep => "nested too deeply",
    };
    to_python(Error::Undecodable { what: "JSON", why: why.to_owned() })
}

fn reading<T>(json: &PyBuffer<u8>, read: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let Some(text) = json.as_slice_ptr() else {
        return Err(invalid("the text must lie in one piece"));
    };
    // SAFETY: the buffer keeps its bytes in place, and nothing writes to them: writers need the
    // interpreter, which is not released while the bytes are read.
    Ok(read(unsafe { text.as_ref() }))
}
