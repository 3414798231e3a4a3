// What Glibc's Swift module hides: GNU calls, variadic calls and the constants that need _GNU_SOURCE.
#ifndef PV_CLINUX_H
#define PV_CLINUX_H

#include <stddef.h>
#include <stdint.h>

extern const int pv_O_TMPFILE;
extern const int pv_O_PATH;
extern const int pv_O_NOATIME;
extern const int pv_AT_EMPTY_PATH;
extern const unsigned int pv_RENAME_NOREPLACE;
extern const unsigned int pv_RENAME_EXCHANGE;
extern const int pv_MADV_DONTDUMP;
extern const int pv_MADV_WIPEONFORK;

int pv_openat(int directory, const char *_Nonnull path, int flags, unsigned int mode);
int pv_renameat2(
    int old_directory, const char *_Nonnull old_path, int new_directory,
    const char *_Nonnull new_path, unsigned int flags);
int pv_fallocate(int fd, int mode, long offset, long length);
int pv_sync_file_range_write(int fd, long offset, long length);
int pv_syncfs(int fd);
int pv_pipe2(int fds[_Nonnull 2], int flags);
int pv_mkostemp(char *_Nonnull template_path, int flags);
/// Links the open file `fd`, which may have no name.
int pv_link_descriptor(int fd, int directory, const char *_Nonnull path);
/// The raw system call: bytes of `struct linux_dirent64`, 0 at the end, -1 and errno on failure.
ptrdiff_t pv_getdents64(int fd, void *_Nonnull buffer, size_t size);
int pv_close_range(unsigned int first, unsigned int last);
int pv_fcntl_int(int fd, int command, int value);
/// An OFD or process write lock on the whole file, without waiting.
int pv_lock_whole_file(int fd);
/// 1 where another open of the file holds a lock that pv_lock_whole_file would meet, else 0.
int pv_is_whole_file_locked(int fd);

ptrdiff_t pv_fgetxattr(int fd, const char *_Nonnull name, void *_Nullable value, size_t size);
ptrdiff_t pv_flistxattr(int fd, char *_Nullable list, size_t size);
int pv_fsetxattr(
    int fd, const char *_Nonnull name, const void *_Nullable value, size_t size, int flags);
int pv_fremovexattr(int fd, const char *_Nonnull name);
long pv_file_system_type(int fd);
ptrdiff_t pv_lgetxattr(
    const char *_Nonnull path, const char *_Nonnull name, void *_Nullable value, size_t size);
ptrdiff_t pv_llistxattr(const char *_Nonnull path, char *_Nullable list, size_t size);
int pv_lsetxattr(
    const char *_Nonnull path, const char *_Nonnull name, const void *_Nullable value,
    size_t size, int flags);
int pv_lremovexattr(const char *_Nonnull path, const char *_Nonnull name);
/// "getxattrat" with AT_SYMLINK_NOFOLLOW, of Linux 6.13 and later: -1 and ENOSYS elsewhere.
ptrdiff_t pv_getxattrat(
    int directory, const char *_Nonnull path, const char *_Nonnull name, void *_Nullable value,
    size_t size);

/// prctl(PR_SET_DUMPABLE, 0).
int pv_set_not_dumpable(void);
/// mlockall for what is mapped and will be, each page when it is first used.
int pv_lock_all_memory(void);
/// mallopt(M_ARENA_MAX): heaps that threads share, so that none keeps what another could use.
int pv_limit_heaps(int count);
/// prctl(PR_SET_NAME, name).
int pv_set_thread_name(const char *_Nonnull name);
/// A descriptor that is readable while a signal of `signals`, a `sigset_t`, is pending.
int pv_signalfd(const void *_Nonnull signals);

/// posix_spawn_file_actions_addclosefrom_np on a `posix_spawn_file_actions_t`.
int pv_spawn_close_from(void *_Nonnull actions, int first);

/// The user behind a connected local socket, -1 if there is none to tell.
int64_t pv_peer_user(int socket);
/// "pidfd_open": a descriptor that is readable once the process has ended.
int pv_pidfd_open(int process);
/// The process behind a connected local socket, -1 if there is none to tell.
int pv_peer_process(int socket);

/// What libheif's functions return by value. Source: heif.h.
struct pv_heif_error {
  int code;
  int subcode;
  const char *_Nullable message;
};

#endif
