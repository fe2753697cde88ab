/*
 * A wall clock that a test sets, for programs that run under LD_PRELOAD.
 *
 * The file that TOLLGATE_CLOCK names holds one number of eight bytes: by how many microseconds the wall clock
 * is ahead. It is mapped, so what a test writes holds from the next question on. The monotonic clock is the
 * real one: timers run on.
 *
 * A server's allocator may ask for the time before anything is set up. So nothing here allocates, looks up a
 * symbol or calls what may be replaced; until the file is mapped the clock is right.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MILLION 1000000LL
#define BILLION 1000000000LL

static const volatile int64_t *ahead;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TOLLGATE_CLOCK");
    if (path == NULL)
        return;
    long file = syscall(SYS_openat, (long)AT_FDCWD, path, (long)(O_RDONLY | O_CLOEXEC), 0L);
    if (file < 0)
        return;
    long page = syscall(SYS_mmap, NULL, sizeof *ahead, (long)PROT_READ, (long)MAP_SHARED, file, 0L);
    syscall(SYS_close, file);
    if (page != -1)
        ahead = (const volatile int64_t *)page;
}

static void shift(struct timespec *at)
{
    int64_t by = ahead == NULL ? 0 : *ahead;
    int64_t nanos = at->tv_nsec + by % MILLION * 1000;
    at->tv_sec += by / MILLION;
    if (nanos < 0) {
        nanos += BILLION;
        at->tv_sec -= 1;
    } else if (nanos >= BILLION) {
        nanos -= BILLION;
        at->tv_sec += 1;
    }
    at->tv_nsec = nanos;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    long result = syscall(SYS_clock_gettime, (long)clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(at);
    return (int)result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}
