//! The bytes that Python holds, as text that the engine reads.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::invalid;

/// What `read` makes of the bytes that Python holds.
pub fn reading<T>(json: &PyBuffer<u8>, read: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let Some(text) = json.as_slice_ptr() else {
        return Err(invalid("the text must lie in one piece"));
    };
    // SAFETY: the buffer keeps its bytes in place, and nobody writes to them: the interpreter,
    // which every writer needs, is not released while they are read.
    Ok(read(unsafe { text.as_ref() }))
}
