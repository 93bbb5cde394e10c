/* A disk that fails where a test wants it to, and remembers what it was told: preloaded into a process.
 *
 * DISK_UNDER   only what lies below this directory counts
 * DISK_FAIL    "<kinds> <n> <errno> <how>": the n-th call of these kinds fails; `how` is one of
 *                once   this call alone
 *                on     this one and all of these kinds after it, as on a full disk
 *                short  a write that keeps half of its bytes, then as `on`
 *                die    the process itself is killed there, at odd ones after half of a write; not its forks
 * DISK_RECORD  a file that gets each change in order: a line of fields, then the bytes that were written
 *
 * Kinds: w write · c make a file or a directory · r rename or link · s fsync · t truncate · u remove.
 * `disk_begin` reads the variables again: for a process that forks. `disk_counted` says how many were counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char under[PATH_MAX], kinds[16], how[8];
static long counted, place;
static int number, record = -1;
static pid_t owner;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((visibility("default"))) void disk_begin(void) {
  const char *told = getenv("DISK_UNDER"), *fail = getenv("DISK_FAIL"), *to = getenv("DISK_RECORD");
  snprintf(under, sizeof under, "%s", told ? told : "");
  counted = place = number = 0;
  owner = getpid();
  if (fail) sscanf(fail, "%15s %ld %d %7s", kinds, &place, &number, how);
  if (record >= 0) REAL(close)(record);
  record = -1;
  if (to) {
    int low = REAL(open64)(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    record = fcntl(low, F_DUPFD_CLOEXEC, 400);  /* out of the way of who closes what it does not know */
    REAL(close)(low);
  }
}

__attribute__((visibility("default"))) long disk_counted(void) { return counted; }

static void die(void) {
  kill(owner, SIGKILL);
  for (;;) pause();
}

__attribute__((constructor)) static void begin(void) { disk_begin(); }

/* Give the absolute path; 0 if it is none of ours. */
static int resolve(int directory, const char *path, char *found) {
  if (!under[0] || !path) return 0;
  if (path[0] == '/') {
    snprintf(found, PATH_MAX, "%s", path);
  } else {
    char link[64], base[PATH_MAX];
    snprintf(link, sizeof link, directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
    if (snprintf(found, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
  }
  size_t length = strlen(under);
  return !strncmp(found, under, length) && (found[length] == '/' || !found[length]);
}

static int is_ours(int file, char *found) {
  char link[64];
  if (!under[0] || file == record) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, found, PATH_MAX - 1);
  if (length < 0) return 0;
  found[length] = 0;
  return found[0] == '/' && resolve(AT_FDCWD, found, (char[PATH_MAX]){0});
}

/* Say whether this call is to fail: 0 no, 1 yes, 2 it is to be cut short, 3 as well and to be the last. */
static int fails(char kind) {
  if (!number || !strchr(kinds, kind)) return 0;
  int dies = !strcmp(how, "die");
  if (dies && getpid() != owner) return 0;
  long now = ++counted;
  if (dies && now == place && kind == 'w' && now % 2) return 3;
  if (dies && now == place) die();
  if (dies) return 0;
  if (now < place || (now > place && !strcmp(how, "once"))) return 0;
  if (now == place && kind == 'w' && !strcmp(how, "short")) return 2;
  return 1;
}

static void note(const char *what, unsigned long inode, long offset, size_t length, const char *one,
                 const char *other, const struct iovec *bytes, int parts) {
  if (record < 0) return;
  int before = errno;
  char line[3 * PATH_MAX];
  int size = snprintf(line, sizeof line, "%s\t%lu\t%ld\t%zu\t%s\t%s\n", what, inode, offset, length, one, other);
  struct iovec all[1 + parts + 1];
  all[0] = (struct iovec){line, size};
  for (int i = 0; i < parts; i++) all[1 + i] = bytes[i];
  REAL(writev)(record, all, 1 + parts);
  errno = before;
}

static unsigned long inode_of(int file, off_t *size) {
  struct stat found;
  if (fstat(file, &found)) return 0;
  if (size) *size = found.st_size;
  return found.st_ino;
}

/* Writes of all kinds come here; `offset` is -1 where the file's own is meant. */
static ssize_t put(int file, const void *bytes, size_t length, off_t offset) {
  char path[PATH_MAX];
  ssize_t done;
  if ((file == 1 || file == 2) && record >= 0 && offset < 0) {
    pthread_mutex_lock(&mutex);
    done = REAL(write)(file, bytes, length);
    struct iovec told = {(void *)bytes, length};
    note("told", file, 0, length, "", "", &told, 1);
    pthread_mutex_unlock(&mutex);
    return done;
  }
  if (!is_ours(file, path))
    return offset < 0 ? REAL(write)(file, bytes, length) : REAL(pwrite64)(file, bytes, length, offset);
  pthread_mutex_lock(&mutex);
  int failing = fails('w');
  if (failing == 1) {
    pthread_mutex_unlock(&mutex);
    errno = number;
    return -1;
  }
  if (failing >= 2 && length > 1) length /= 2;
  off_t at = offset, size = 0;
  unsigned long inode = inode_of(file, &size);
  if (offset < 0) at = fcntl(file, F_GETFL) & O_APPEND ? size : lseek64(file, 0, SEEK_CUR);
  done = offset < 0 ? REAL(write)(file, bytes, length) : REAL(pwrite64)(file, bytes, length, offset);
  if (failing == 3) die();
  if (done > 0) {
    struct iovec written = {(void *)bytes, done};
    note("write", inode, at, done, path, "", &written, 1);
  }
  pthread_mutex_unlock(&mutex);
  return done;
}

ssize_t write(int file, const void *bytes, size_t length) { return put(file, bytes, length, -1); }
ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return put(file, bytes, length, at); }
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) { return put(file, bytes, length, at); }
ssize_t writev(int file, const struct iovec *parts, int count) {
  ssize_t done = 0;
  for (int i = 0; i < count; i++) {
    ssize_t now = put(file, parts[i].iov_base, parts[i].iov_len, -1);
    if (now < 0) return done ? done : -1;
    done += now;
    if ((size_t)now < parts[i].iov_len) break;
  }
  return done;
}
/* Who copies without a write is asked to write. */
ssize_t sendfile(int to, int from, off_t *at, size_t length) { errno = EINVAL; return -1; }
ssize_t sendfile64(int to, int from, off64_t *at, size_t length) { errno = EINVAL; return -1; }
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t length, unsigned flags) {
  errno = EINVAL;
  return -1;
}

static int cut(int file, off_t size, int kind, int (*call)(int, off_t)) {
  char path[PATH_MAX];
  if (!is_ours(file, path)) return call(file, size);
  pthread_mutex_lock(&mutex);
  int done = -1;
  if (fails(kind)) errno = number;
  else if (!(done = call(file, size))) note("truncate", inode_of(file, NULL), size, 0, path, "", NULL, 0);
  pthread_mutex_unlock(&mutex);
  return done;
}
int ftruncate(int file, off_t size) { return cut(file, size, 't', REAL(ftruncate)); }
int ftruncate64(int file, off64_t size) { return cut(file, size, 't', REAL(ftruncate64)); }
/* Room that is asked for is taken by the writes that follow. */
int posix_fallocate(int file, off_t at, off_t length) { return EOPNOTSUPP; }
int posix_fallocate64(int file, off64_t at, off64_t length) { return EOPNOTSUPP; }
int fallocate(int file, int mode, off_t at, off_t length) { errno = EOPNOTSUPP; return -1; }
int fallocate64(int file, int mode, off64_t at, off64_t length) { errno = EOPNOTSUPP; return -1; }

static int bring(int file, int (*call)(int)) {
  char path[PATH_MAX];
  if (!is_ours(file, path)) return call(file);
  pthread_mutex_lock(&mutex);
  int done = -1;
  if (fails('s')) errno = number;
  else if (!(done = call(file))) note("sync", inode_of(file, NULL), 0, 0, path, "", NULL, 0);
  pthread_mutex_unlock(&mutex);
  return done;
}
int fsync(int file) { return bring(file, REAL(fsync)); }
int fdatasync(int file) { return bring(file, REAL(fdatasync)); }

static int open_at(int directory, const char *path, int flags, mode_t mode) {
  char found[PATH_MAX];
  if (!(flags & (O_CREAT | O_TRUNC)) || !resolve(directory, path, found))
    return REAL(openat64)(directory, path, flags, mode);
  pthread_mutex_lock(&mutex);
  int is_new = faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0, file = -1;
  if (is_new && fails('c')) errno = number;
  else if ((file = REAL(openat64)(directory, path, flags, mode)) >= 0) {
    unsigned long inode = inode_of(file, NULL);
    if (is_new) note("create", inode, 0, 0, found, "", NULL, 0);
    else if (flags & O_TRUNC) note("truncate", inode, 0, 0, found, "", NULL, 0);
  }
  pthread_mutex_unlock(&mutex);
  return file;
}
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); }
int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return open_at(at, path, flags, mode); }

static unsigned long inode_at(const char *found) {
  struct stat one;
  return lstat(found, &one) ? 0 : one.st_ino;
}
int mkdirat(int at, const char *path, mode_t mode) {
  char found[PATH_MAX];
  if (!resolve(at, path, found)) return REAL(mkdirat)(at, path, mode);
  pthread_mutex_lock(&mutex);
  int done = -1, is_new = faccessat(at, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  if (is_new && fails('c')) errno = number;
  else if (!(done = REAL(mkdirat)(at, path, mode))) note("mkdir", inode_at(found), 0, 0, found, "", NULL, 0);
  pthread_mutex_unlock(&mutex);
  return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int at, const char *path, int flags) {
  char found[PATH_MAX];
  if (!resolve(at, path, found)) return REAL(unlinkat)(at, path, flags);
  pthread_mutex_lock(&mutex);
  int done = -1, is_there = !faccessat(at, path, F_OK, AT_SYMLINK_NOFOLLOW);
  if (is_there && fails('u')) errno = number;
  else if (!(done = REAL(unlinkat)(at, path, flags))) note("remove", 0, 0, 0, found, "", NULL, 0);
  pthread_mutex_unlock(&mutex);
  return done;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

static int move(const char *what, int from_at, const char *from, int to_at, const char *to,
                int (*call)(int, const char *, int, const char *, int), int flags) {
  char old[PATH_MAX], new[PATH_MAX];
  if (!resolve(to_at, to, new)) return call(from_at, from, to_at, to, flags);
  if (!resolve(from_at, from, old)) old[0] = 0;
  pthread_mutex_lock(&mutex);
  int done = -1;
  if (fails('r')) errno = number;
  else if (!(done = call(from_at, from, to_at, to, flags))) note(what, 0, 0, 0, old, new, NULL, 0);
  pthread_mutex_unlock(&mutex);
  return done;
}
static int call_rename(int a, const char *from, int b, const char *to, int flags) {
  return REAL(renameat)(a, from, b, to);
}
static int call_rename2(int a, const char *from, int b, const char *to, int flags) {
  return REAL(renameat2)(a, from, b, to, flags);
}
static int call_link(int a, const char *from, int b, const char *to, int flags) {
  return REAL(linkat)(a, from, b, to, flags);
}
int rename(const char *from, const char *to) {
  return move("rename", AT_FDCWD, from, AT_FDCWD, to, call_rename, 0);
}
int renameat(int a, const char *from, int b, const char *to) { return move("rename", a, from, b, to, call_rename, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return move(flags & RENAME_EXCHANGE ? "exchange" : "rename", a, from, b, to, call_rename2, flags);
}
int link(const char *from, const char *to) { return move("link", AT_FDCWD, from, AT_FDCWD, to, call_link, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) {
  return move("link", a, from, b, to, call_link, flags);
}
int remove(const char *path) {
  int done = unlinkat(AT_FDCWD, path, 0);
  return done && (errno == EISDIR || errno == EPERM) ? rmdir(path) : done;
}
