/* Loaded before libc: counts what a process does to files, and kills it at the n-th such call.

   So a test reaches each moment between two changes of the disk, also those inside DuckDB, which no
   clock hits. Nothing is counted before dying_at() is called; 0 counts and kills nobody. Every other
   fatal write is torn: half of it reaches the file first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long at, seen;
static pid_t owner;

void dying_at(long n)
{
    at = n;
    seen = 0;
    owner = getpid();
}

long dying_seen(void)
{
    return seen;
}

static int is_last(void)
{
    if (!owner || owner != getpid())
        return 0;
    return __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) == at;
}

static void die(void)
{
    kill(owner, SIGKILL);
    for (;;)
        pause();
}

static int is_file(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define COUNTED(type, name, given, passed)                                                              \
    type name given                                                                                     \
    {                                                                                                   \
        if (is_last())                                                                                  \
            die();                                                                                      \
        return REAL(name) passed;                                                                       \
    }
#define WRITES(name, given, passed, torn)                                                               \
    ssize_t name given                                                                                  \
    {                                                                                                   \
        if (owner && is_file(fd) && is_last()) {                                                        \
            if (at % 2)                                                                                 \
                REAL(name) torn;                                                                        \
            die();                                                                                      \
        }                                                                                               \
        return REAL(name) passed;                                                                       \
    }

WRITES(write, (int fd, const void *from, size_t size), (fd, from, size), (fd, from, size / 2))
WRITES(pwrite, (int fd, const void *from, size_t size, off_t to), (fd, from, size, to),
       (fd, from, size / 2, to))
WRITES(pwrite64, (int fd, const void *from, size_t size, off64_t to), (fd, from, size, to),
       (fd, from, size / 2, to))
COUNTED(int, fsync, (int fd), (fd))
COUNTED(int, fdatasync, (int fd), (fd))
COUNTED(int, ftruncate, (int fd, off_t size), (fd, size))
COUNTED(int, ftruncate64, (int fd, off64_t size), (fd, size))
COUNTED(int, rename, (const char *from, const char *to), (from, to))
COUNTED(int, link, (const char *from, const char *to), (from, to))
COUNTED(int, unlink, (const char *path), (path))
COUNTED(int, unlinkat, (int at_fd, const char *path, int flags), (at_fd, path, flags))
COUNTED(int, remove, (const char *path), (path))
COUNTED(int, mkdir, (const char *path, mode_t mode), (path, mode))
COUNTED(int, rmdir, (const char *path), (path))
