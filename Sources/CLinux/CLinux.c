#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

const int pv_O_TMPFILE = O_TMPFILE;
const int pv_O_PATH = O_PATH;
const int pv_O_NOATIME = O_NOATIME;
const int pv_AT_EMPTY_PATH = AT_EMPTY_PATH;
const unsigned int pv_RENAME_NOREPLACE = RENAME_NOREPLACE;
const unsigned int pv_RENAME_EXCHANGE = RENAME_EXCHANGE;
const int pv_MADV_DONTDUMP = MADV_DONTDUMP;
const int pv_MADV_WIPEONFORK = MADV_WIPEONFORK;

int pv_openat(int directory, const char *path, int flags, mode_t mode) {
  return openat(directory, path, flags, mode);
}

int pv_renameat2(
    int old_directory, const char *old_path, int new_directory, const char *new_path,
    unsigned int flags) {
  return renameat2(old_directory, old_path, new_directory, new_path, flags);
}

int pv_fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate(fd, mode, offset, length);
}

int pv_sync_file_range_write(int fd, off_t offset, off_t length) {
  return sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE);
}

int pv_syncfs(int fd) { return syncfs(fd); }
int pv_pipe2(int fds[2], int flags) { return pipe2(fds, flags); }
int pv_mkostemp(char *template_path, int flags) { return mkostemp(template_path, flags); }

int pv_link_descriptor(int fd, int directory, const char *path) {
  // The short way takes CAP_DAC_READ_SEARCH or Linux 6.10; without, ENOENT. The other one is open(2)'s own.
  static atomic_bool must_go_by_proc;
  if (!atomic_load_explicit(&must_go_by_proc, memory_order_relaxed)) {
    if (linkat(fd, "", directory, path, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT) return -1;
  }
  char from[32];
  snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
  if (linkat(AT_FDCWD, from, directory, path, AT_SYMLINK_FOLLOW) != 0) return -1;
  atomic_store_explicit(&must_go_by_proc, true, memory_order_relaxed);
  return 0;
}

ssize_t pv_getdents64(int fd, void *buffer, size_t size) {
  return syscall(SYS_getdents64, fd, buffer, size);
}

int pv_close_range(unsigned int first, unsigned int last) {
  return (int)syscall(SYS_close_range, first, last, 0);
}

int pv_fcntl_int(int fd, int command, int value) { return fcntl(fd, command, value); }

int pv_lock_whole_file(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(fd, F_OFD_SETLK, &lock);
}

int pv_is_whole_file_locked(int fd) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0) return -1;
  return lock.l_type != F_UNLCK;
}

ssize_t pv_fgetxattr(int fd, const char *name, void *value, size_t size) {
  return fgetxattr(fd, name, value, size);
}
ssize_t pv_flistxattr(int fd, char *list, size_t size) { return flistxattr(fd, list, size); }
int pv_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags) {
  return fsetxattr(fd, name, value, size, flags);
}
int pv_fremovexattr(int fd, const char *name) { return fremovexattr(fd, name); }
long pv_file_system_type(int fd) {
  struct statfs status;
  return fstatfs(fd, &status) < 0 ? 0 : (long)status.f_type;
}
ssize_t pv_lgetxattr(const char *path, const char *name, void *value, size_t size) {
  return lgetxattr(path, name, value, size);
}
ssize_t pv_llistxattr(const char *path, char *list, size_t size) {
  return llistxattr(path, list, size);
}
int pv_lsetxattr(
    const char *path, const char *name, const void *value, size_t size, int flags) {
  return lsetxattr(path, name, value, size, flags);
}
int pv_lremovexattr(const char *path, const char *name) { return lremovexattr(path, name); }
ssize_t pv_getxattrat(
    int directory, const char *path, const char *name, void *value, size_t size) {
  // Source: linux/xattr.h and syscall.tbl of Linux 6.13; Debian 12's libc has no wrapper for it.
  struct {
    uint64_t value;
    uint32_t size;
    uint32_t flags;
  } arguments = {(uint64_t)(uintptr_t)value, (uint32_t)size, 0};
  return syscall(464, directory, path, AT_SYMLINK_NOFOLLOW, name, &arguments, sizeof arguments);
}

int pv_lock_all_memory(void) { return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT); }

int pv_limit_heaps(int count) { return mallopt(M_ARENA_MAX, count); }

int pv_set_not_dumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
int pv_set_thread_name(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

int pv_spawn_close_from(void *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int pv_signalfd(const void *signals) { return signalfd(-1, signals, SFD_CLOEXEC); }

static int peer(int socket, struct ucred *credentials) {
  socklen_t size = sizeof *credentials;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, credentials, &size);
}

int64_t pv_peer_user(int socket) {
  struct ucred credentials;
  return peer(socket, &credentials) == 0 ? (int64_t)credentials.uid : -1;
}

pid_t pv_peer_process(int socket) {
  struct ucred credentials;
  return peer(socket, &credentials) == 0 ? credentials.pid : -1;
}

int pv_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }
