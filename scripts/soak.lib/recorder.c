// Preloaded into the mount's process: notes every call that changes the vault's disk, in the order in
// which they took effect, so that forgetful.py can tell what a power cut may leave.
//
// $RECORD_DEVICE: the disk's number. $RECORD_LOG: the notes, one a line. $RECORD_DATA: the bytes written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int notes, bytes;
static off_t byte_count;
static dev_t device;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// When first needed: the program closes what it did not open at its start.
static void begin(void) {
  static int (*real_open)(int, const char *, int, ...);
  real_open = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
  device = (dev_t)strtoull(getenv("RECORD_DEVICE"), NULL, 10);
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  notes = real_open(AT_FDCWD, getenv("RECORD_LOG"), flags, 0600);
  bytes = real_open(AT_FDCWD, getenv("RECORD_DATA"), flags, 0600);
  if (notes < 0 || bytes < 0) abort();
}

static void prepare(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, begin);
}

// The inode behind a descriptor; 0 where it is not on the disk in question.
static ino_t inode(int fd) {
  struct stat status;
  prepare();
  return fstat(fd, &status) == 0 && status.st_dev == device ? status.st_ino : 0;
}

static ino_t inode_at(int directory, const char *name, int flags) {
  struct stat status;
  prepare();
  return fstatat(directory, name, &status, flags) == 0 && status.st_dev == device ? status.st_ino : 0;
}

static void note(const char *format, ...) {
  char line[2048];
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int used = snprintf(line, sizeof line, "%lld ", now.tv_sec * 1000000000LL + now.tv_nsec);
  va_list arguments;
  va_start(arguments, format);
  used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
  va_end(arguments);
  line[used++] = '\n';
  static ssize_t (*real_write)(int, const void *, size_t);
  if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (real_write(notes, line, (size_t)used) != used) abort();
}

static void keep(const void *data, size_t size) {
  static ssize_t (*real_write)(int, const void *, size_t);
  if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (real_write(bytes, data, size) != (ssize_t)size) abort();
  byte_count += (off_t)size;
}

static const char *hex(const char *name, char *buffer) {
  char *end = buffer;
  for (; *name && end < buffer + 1020; name++) end += sprintf(end, "%02x", (unsigned char)*name);
  *end = 0;
  return buffer;
}

// Runs CALL while nobody else's call can come between, then NOTE if it succeeded.
#define NOTED(type, CALL, NOTE) \
  pthread_mutex_lock(&lock); \
  type result = CALL; \
  int error = errno; \
  if (result >= 0) { NOTE; } \
  pthread_mutex_unlock(&lock); \
  errno = error; \
  return result

int openat(int directory, const char *path, int flags, ...) {
  REAL(openat);
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  char name[1024];
  int is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
  if (!is_nameless && !(flags & (O_CREAT | O_TRUNC))) return real(directory, path, flags, mode);
  ino_t before = is_nameless ? 0 : inode_at(directory, path, AT_SYMLINK_NOFOLLOW);
  NOTED(int, real(directory, path, flags, mode), {
    ino_t made = inode(result);
    if (made && is_nameless) note("nameless %lu", made);
    else if (made && !before) note("create %lu %s %lu", inode(directory), hex(path, name), made);
    else if (made && flags & O_TRUNC) note("truncate %lu 0", made);
  });
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  REAL(pwrite);
  ino_t file = inode(fd);
  if (!file) return real(fd, data, size, offset);
  NOTED(ssize_t, real(fd, data, size, offset), {
    note("write %lu %lld %zd %lld", file, (long long)offset, result, (long long)byte_count);
    keep(data, (size_t)result);
  });
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  ino_t file = inode(fd);
  if (!file) return real(fd, data, size);
  NOTED(ssize_t, real(fd, data, size), {
    note("write %lu %lld %zd %lld", file, (long long)(lseek(fd, 0, SEEK_CUR) - result), result,
         (long long)byte_count);
    keep(data, (size_t)result);
  });
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  ino_t file = inode(fd);
  NOTED(int, real(fd, size), if (file) note("truncate %lu %lld", file, (long long)size));
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int linkat(int from, const char *old, int directory, const char *new, int flags) {
  REAL(linkat);
  char name[1024];
  NOTED(int, real(from, old, directory, new, flags), {
    ino_t file = inode_at(directory, new, AT_SYMLINK_NOFOLLOW);
    if (file) note("link %lu %s %lu", inode(directory), hex(new, name), file);
  });
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  REAL(renameat2);
  char name[1024], new_name[1024];
  NOTED(int, real(from, old, to, new, flags), {
    if (inode(from))
      note("rename %lu %s %lu %s %u", inode(from), hex(old, name), inode(to), hex(new, new_name), flags);
  });
}

int unlinkat(int directory, const char *path, int flags) {
  REAL(unlinkat);
  char name[1024];
  ino_t parent = inode(directory);
  NOTED(int, real(directory, path, flags), if (parent) note("unlink %lu %s", parent, hex(path, name)));
}

int mkdirat(int directory, const char *path, mode_t mode) {
  REAL(mkdirat);
  char name[1024], above[1024];
  NOTED(int, real(directory, path, mode), {
    ino_t made = inode_at(directory, path, AT_SYMLINK_NOFOLLOW);
    const char *last = strrchr(path, '/');
    snprintf(above, sizeof above, "%.*s", last ? (int)(last - path) : 1, last ? path : ".");
    if (made)
      note("mkdir %lu %s %lu", inode_at(directory, above, 0), hex(last ? last + 1 : path, name), made);
  });
}

int symlinkat(const char *target, int directory, const char *path) {
  REAL(symlinkat);
  char name[1024], to[1024];
  NOTED(int, real(target, directory, path), {
    if (inode(directory)) note("symlink %lu %s %s", inode(directory), hex(path, name), hex(target, to));
  });
}

int fsetxattr(int fd, const char *attribute, const void *value, size_t size, int flags) {
  REAL(fsetxattr);
  char name[1024];
  ino_t file = inode(fd);
  NOTED(int, real(fd, attribute, value, size, flags), {
    if (file) {
      note("setxattr %lu %s %zu %lld", file, hex(attribute, name), size, (long long)byte_count);
      keep(value, size);
    }
  });
}

int fremovexattr(int fd, const char *attribute) {
  REAL(fremovexattr);
  char name[1024];
  ino_t file = inode(fd);
  NOTED(int, real(fd, attribute), if (file) note("removexattr %lu %s", file, hex(attribute, name)));
}

int fchmod(int fd, mode_t mode) {
  REAL(fchmod);
  ino_t file = inode(fd);
  NOTED(int, real(fd, mode), if (file) note("mode %lu %o", file, mode));
}

int fsync(int fd) {
  REAL(fsync);
  ino_t file = inode(fd);
  NOTED(int, real(fd), if (file) note("sync %lu", file));
}

int fdatasync(int fd) {
  REAL(fdatasync);
  ino_t file = inode(fd);
  NOTED(int, real(fd), if (file) note("datasync %lu", file));
}

int syncfs(int fd) {
  REAL(syncfs);
  ino_t file = inode(fd);
  NOTED(int, real(fd), if (file) note("syncall"));
}
