//! A file descriptor that is readable while set: an eventfd on Linux, a pipe elsewhere.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Signal {
    read: OwnedFd,
    /// The write end of the pipe; an eventfd needs only one descriptor.
    write: Option<OwnedFd>,
}

impl Signal {
    pub(super) fn new() -> Result<Self> {
        Self::open().map_err(|error| Error::Execution(format!("no signal for calls: {error}")))
    }

    #[cfg(target_os = "linux")]
    fn open() -> io::Result<Self> {
        // SAFETY: eventfd takes plain integers and returns a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and has no other owner.
        Ok(Self { read: unsafe { OwnedFd::from_raw_fd(fd) }, write: None })
    }

    #[cfg(not(target_os = "linux"))]
    fn open() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: pipe writes two descriptors into the given array of two.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are open and have no other owner.
        let [read, write] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        for end in [&read, &write] {
            // SAFETY: fcntl on an owned descriptor, with plain integers.
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
        // SAFETY: the buffer has the given length. Writing to a full pipe or counter fails, but the
        // signal is already set then.
        unsafe { libc::write(fd, one.as_ptr().cast(), one.len()) };
    }

    pub(super) fn clear(&self) {
        let mut buffer = [0_u8; 512];
        loop {
            // SAFETY: the buffer has the given length. The descriptor does not block.
            let read = unsafe {
                libc::read(self.read.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
            };
            // An eventfd returns its counter in one read; a pipe may hold more.
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
