//! A file descriptor that is readable while it is set: an eventfd, or a pipe elsewhere.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Signal {
    read: OwnedFd,
    /// The other end of the pipe; an eventfd is both ends.
    write: Option<OwnedFd>,
}

impl Signal {
    pub(super) fn new() -> Result<Self> {
        Self::open().map_err(|error| Error::Execution(format!("no signal for calls: {error}")))
    }

    #[cfg(target_os = "linux")]
    fn open() -> io::Result<Self> {
        // SAFETY: eventfd takes plain numbers and gives a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and nobody else has it.
        Ok(Self { read: unsafe { OwnedFd::from_raw_fd(fd) }, write: None })
    }

    #[cfg(not(target_os = "linux"))]
    fn open() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: pipe writes two descriptors into the array it is given.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are open and nobody else has them.
        let [read, write] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        for end in [&read, &write] {
            // SAFETY: fcntl on a descriptor we own, with plain numbers.
            unsafe {
                libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK);
                libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
        Ok(Self { read, write: Some(write) })
    }

    pub(super) fn set(&self) {
        let fd = self.write.as_ref().unwrap_or(&self.read).as_raw_fd();
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the buffer is as long as said. A full pipe or counter fails, and is
        // set already.
        unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
    }

    pub(super) fn clear(&self) {
        let mut buffer = [0_u8; 512];
        loop {
            // SAFETY: the buffer is as long as said. The descriptor does not block.
            let read = unsafe {
                libc::read(self.read.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
            };
            // An eventfd gives its counter at once; a pipe may hold more.
            if read < buffer.len() as isize {
                return;
            }
        }
    }
}

impl AsRawFd for Signal {
    fn as_raw_fd(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}
