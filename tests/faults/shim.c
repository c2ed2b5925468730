/* Faults of the disk on purpose, in any process: loaded by LD_PRELOAD.

   Calls that change files below one folder are counted. The one whose turn it is fails, or
   is cut short, and so do as many after it as are told. A page that is mapped by whoever
   tests says what, and hears what became of it; `disk.py` is its other end. */

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

struct told {
  int32_t error;      /* what errno says; 0 for none */
  int32_t cut_short;  /* writes write half, instead of failing */
  int64_t before;     /* calls that succeed first */
  int64_t failing;    /* calls that fail then; negative for all */
  int64_t between;    /* after these, calls that succeed, and one more that fails; */
                      /* negative for none */
  int64_t calls;      /* counted since it was told */
  int64_t hits;       /* calls that failed */
  char folder[488];
};

static struct told *told;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_PAGE");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page != MAP_FAILED) told = page;
}

static int below(const char *path) {
  return *told->folder && strncmp(path, told->folder, strlen(told->folder)) == 0;
}

static int is_ours(int fd) {
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return below(path);
}

/* Whether this call, which is one of those that count, fails. */
static int fails(void) {
  int32_t error = __atomic_load_n(&told->error, __ATOMIC_ACQUIRE);
  if (!error && !told->cut_short) return 0;
  int64_t at = __atomic_fetch_add(&told->calls, 1, __ATOMIC_ACQ_REL) - told->before;
  if (at < 0) return 0;
  int again = told->between >= 0 && at == told->failing + told->between;
  if (told->failing >= 0 && at >= told->failing && !again) return 0;
  __atomic_fetch_add(&told->hits, 1, __ATOMIC_ACQ_REL);
  errno = error;
  return 1;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAILS(fd) (told && is_ours(fd) && fails())

#define WRITING(name, type) \
  ssize_t name(int fd, const void *bytes, size_t count, type offset) { \
    REAL(name); \
    if (!FAILS(fd)) return real(fd, bytes, count, offset); \
    return told->cut_short && count > 1 ? real(fd, bytes, count / 2, offset) : -1; \
  }
WRITING(pwrite, off_t)
WRITING(pwrite64, off64_t)

#define GATHERING(name, type) \
  ssize_t name(int fd, const struct iovec *parts, int count, type offset) { \
    REAL(name); \
    if (!FAILS(fd)) return real(fd, parts, count, offset); \
    return told->cut_short && count > 1 ? real(fd, parts, count / 2, offset) : -1; \
  }
GATHERING(pwritev, off_t)
GATHERING(pwritev64, off64_t)

ssize_t write(int fd, const void *bytes, size_t count) {
  REAL(write);
  if (!FAILS(fd)) return real(fd, bytes, count);
  return told->cut_short && count > 1 ? real(fd, bytes, count / 2) : -1;
}

#define SYNCING(name) \
  int name(int fd) { \
    REAL(name); \
    return FAILS(fd) && told->error ? -1 : real(fd); \
  }
SYNCING(fsync)
SYNCING(fdatasync)

int msync(void *start, size_t length, int flags) {
  REAL(msync);
  return told && fails() && told->error ? -1 : real(start, length, flags);
}

#define CUTTING(name, type) \
  int name(int fd, type length) { \
    REAL(name); \
    return FAILS(fd) && told->error ? -1 : real(fd, length); \
  }
CUTTING(ftruncate, off_t)
CUTTING(ftruncate64, off64_t)

/* Opening to read only succeeds: a disk that cannot be written can be read. */
static int refuses(const char *path, int flags) {
  int writes = (flags & O_ACCMODE) != O_RDONLY;
  return told && writes && below(path) && fails() && told->error;
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
