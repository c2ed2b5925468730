/* Injected disk failures, in any process: loaded by LD_PRELOAD.

   Calls that change files below one folder are counted. A call at the given count fails, or
   is cut short, and so does a given number of calls after it. The test maps a page with the
   fault and the resulting counts; `disk.py` is its other end. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

struct fault {
  int32_t error;      /* the value of errno; 0 for none */
  int32_t cut_short;  /* writes write half instead of failing */
  int64_t before;     /* calls that succeed first */
  int64_t failing;    /* calls that then fail; negative for all */
  int64_t between;    /* calls that succeed after these, before one more fails; */
                      /* negative for none */
  int64_t calls;      /* counted since the fault was set */
  int64_t hits;       /* calls that failed */
  char folder[488];
};

static struct fault *fault;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_PAGE");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) fault = page;
}

static int below(const char *path) {
  return *fault->folder && strncmp(path, fault->folder, strlen(fault->folder)) == 0;
}

static int is_ours(int fd) {
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below(path);
}

/* Return whether this counted call fails. */
static int fails(void) {
  int32_t error = __atomic_load_n(&fault->error, __ATOMIC_ACQUIRE);
  if (!error && !fault->cut_short) return 0;
  int64_t at = __atomic_fetch_add(&fault->calls, 1, __ATOMIC_ACQ_REL) - fault->before;
  if (at < 0) return 0;
  int again = fault->between >= 0 && at == fault->failing + fault->between;
  if (fault->failing >= 0 && at >= fault->failing && !again) return 0;
  __atomic_fetch_add(&fault->hits, 1, __ATOMIC_ACQ_REL);
  errno = error;
  return 1;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAILS(fd) (fault && is_ours(fd) && fails())

#define WRITING(name, type) \
  ssize_t name(int fd, const void *bytes, size_t count, type offset) { \
    REAL(name); \
    if (!FAILS(fd)) return real(fd, bytes, count, offset); \
    return fault->cut_short && count > 1 ? real(fd, bytes, count / 2, offset) : -1; \
  }
WRITING(pwrite, off_t)
WRITING(pwrite64, off64_t)

#define GATHERING(name, type) \
  ssize_t name(int fd, const struct iovec *parts, int count, type offset) { \
    REAL(name); \
    if (!FAILS(fd)) return real(fd, parts, count, offset); \
    return fault->cut_short && count > 1 ? real(fd, parts, count / 2, offset) : -1; \
  }
GATHERING(pwritev, off_t)
GATHERING(pwritev64, off64_t)

ssize_t write(int fd, const void *bytes, size_t count) {
  REAL(write);
  if (!FAILS(fd)) return real(fd, bytes, count);
  return fault->cut_short && count > 1 ? real(fd, bytes, count / 2) : -1;
}

#define SYNCING(name) \
  int name(int fd) { \
    REAL(name); \
    return FAILS(fd) && fault->error ? -1 : real(fd); \
  }
SYNCING(fsync)
SYNCING(fdatasync)

int msync(void *start, size_t length, int flags) {
  REAL(msync);
  return fault && fails() && fault->error ? -1 : real(start, length, flags);
}

#define CUTTING(name, type) \
  int name(int fd, type length) { \
    REAL(name); \
    return FAILS(fd) && fault->error ? -1 : real(fd, length); \
  }
CUTTING(ftruncate, off_t)
CUTTING(ftruncate64, off64_t)

/* Opening to read only succeeds: a disk that cannot be written can be read. */
static int refuses(const char *path, int flags) {
  int writes = (flags & O_ACCMODE) != O_RDONLY;
  return fault && writes && below(path) && fails() && fault->error;
}

#define OPENING(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
    va_end(rest); \
    return refuses(path, flags) ? -1 : real(path, flags, mode); \
  }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name) \
  int name(int folder, const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; \
    va_end(rest); \
    return refuses(path, flags) ? -1 : real(folder, path, flags, mode); \
  }
OPENING_AT(openat)
OPENING_AT(openat64)
