/* Ways out that need calls no shell or interpreter makes.
 *
 *     escape read FILE                    a plain read, by a program without libraries
 *     escape ring-read FILE               the same calls, queued for the kernel
 *     escape ring-write FILE TEXT
 *     escape ring-send PORT TEXT
 *     escape ring-tell SOCKET TEXT
 *     escape old-read FILE                by the entry for 32-bit programs
 *     escape old-write FILE TEXT
 *     escape flip-read GOOD BAD           a path that changes while a call looks at it
 *     escape flip-write GOOD BAD TEXT
 *     escape risen now                    says whether it runs as its owner
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void show(int file) {
    char text[256];
    ssize_t length = read(file, text, sizeof text);
    if (length > 0)
        fwrite(text, 1, length, stdout);
}

/* One queue, one request at a time. */
static struct {
    int file;
    unsigned *tail, *mask, *array;
    unsigned *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *answers;
} ring;

static void *map(size_t size, off_t offset) {
    int how = MAP_SHARED | MAP_POPULATE;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, how, ring.file, offset);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

static void open_ring(void) {
    struct io_uring_params params = {0};
    ring.file = syscall(SYS_io_uring_setup, 4, &params);
    if (ring.file < 0)
        fail("io_uring_setup");
    size_t asking = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t answering = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *asked = map(asking, IORING_OFF_SQ_RING);
    char *done = map(answering, IORING_OFF_CQ_RING);
    ring.requests = map(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.tail = (unsigned *)(asked + params.sq_off.tail);
    ring.mask = (unsigned *)(asked + params.sq_off.ring_mask);
    ring.array = (unsigned *)(asked + params.sq_off.array);
    ring.done_head = (unsigned *)(done + params.cq_off.head);
    ring.done_tail = (unsigned *)(done + params.cq_off.tail);
    ring.done_mask = (unsigned *)(done + params.cq_off.ring_mask);
    ring.answers = (struct io_uring_cqe *)(done + params.cq_off.cqes);
}

static int queue(struct io_uring_sqe request) {
    unsigned at = *ring.tail & *ring.mask;
    ring.requests[at] = request;
    ring.array[at] = at;
    __atomic_store_n(ring.tail, *ring.tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        fail("io_uring_enter");
    while (__atomic_load_n(ring.done_tail, __ATOMIC_ACQUIRE) == *ring.done_head)
        ;
    int result = ring.answers[*ring.done_head & *ring.done_mask].res;
    __atomic_store_n(ring.done_head, *ring.done_head + 1, __ATOMIC_RELEASE);
    if (result < 0) {
        fprintf(stderr, "refused: %s\n", strerror(-result));
        exit(1);
    }
    return result;
}

static int ring_open(const char *path, int flags) {
    return queue((struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD,
        .addr = (unsigned long)path, .open_flags = flags, .len = 0644});
}

static void ring_write(int file, const char *text) {
    queue((struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = file,
        .addr = (unsigned long)text, .len = strlen(text)});
}

static void ring_read(const char *path) {
    static char text[256];
    open_ring();
    int file = ring_open(path, O_RDONLY);
    int length = queue((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = file,
        .addr = (unsigned long)text, .len = sizeof text});
    fwrite(text, 1, length, stdout);
}

static void ring_send(int family, void *address, size_t length, const char *text) {
    open_ring();
    int socket = queue((struct io_uring_sqe){.opcode = IORING_OP_SOCKET, .fd = family,
        .off = SOCK_STREAM});
    queue((struct io_uring_sqe){.opcode = IORING_OP_CONNECT, .fd = socket,
        .addr = (unsigned long)address, .off = length});
    ring_write(socket, text);
}

/* The number of a call means another call here, and pointers have 32 bits. */
static int old_call(int number, long first, long second, long third) {
#if defined(__x86_64__)
    int result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(first), "c"(second), "d"(third)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
#else
    (void)number, (void)first, (void)second, (void)third;
    return -38;
#endif
}

static char *low(const char *text) {
#if defined(__x86_64__)
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, how, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    return strcpy(at, text);
#else
    return strdup(text);
#endif
}

static void old_read(const char *path) {
    int file = old_call(5, (long)low(path), O_RDONLY, 0);
    if (file < 0)
        exit(1);
    show(file);
}

static void old_write(const char *path, const char *text) {
    int file = old_call(5, (long)low(path), O_WRONLY | O_CREAT, 0644);
    old_call(4, file, (long)low(text), strlen(text));
}

static char flipping[4096];
static volatile int flipped;

struct paths {
    const char *good, *bad;
};

static void *flip(void *argument) {
    struct paths *paths = argument;
    size_t good = strlen(paths->good) + 1, bad = strlen(paths->bad) + 1;
    while (!flipped) {
        memcpy(flipping, paths->bad, bad);
        memcpy(flipping, paths->good, good);
    }
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Opens the flipping path for a moment, or until it has read what it should not. */
static void race(struct paths paths, const char *text) {
    pthread_t flipper;
    char wanted[256] = "", read_back[256];
    strcpy(flipping, paths.good);
    if (pthread_create(&flipper, NULL, flip, &paths))
        fail("pthread_create");
    int good = open(paths.good, O_RDONLY);
    ssize_t known = read(good, wanted, sizeof wanted);
    for (double end = now() + 0.3; now() < end;) {
        int file = open(flipping, text ? O_WRONLY | O_CREAT | O_APPEND : O_RDONLY, 0644);
        if (file < 0)
            continue;
        if (text) {
            (void)!write(file, text, strlen(text));
        } else {
            ssize_t length = read(file, read_back, sizeof read_back);
            if (length > 0 && (length != known || memcmp(read_back, wanted, length))) {
                fwrite(read_back, 1, length, stdout);
                break;
            }
        }
        close(file);
    }
    flipped = 1;
    pthread_join(flipper, NULL);
}

int main(int count, char **words) {
    const char *how = count > 2 ? words[1] : "";
    const char *text = count > 3 ? words[3] : "";
    if (!strcmp(how, "read")) {
        show(open(words[2], O_RDONLY));
    } else if (!strcmp(how, "ring-read")) {
        ring_read(words[2]);
    } else if (!strcmp(how, "ring-write")) {
        open_ring();
        ring_write(ring_open(words[2], O_WRONLY | O_CREAT), text);
    } else if (!strcmp(how, "ring-send")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2])),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        ring_send(AF_INET, &address, sizeof address, text);
    } else if (!strcmp(how, "ring-tell")) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        strncpy(address.sun_path, words[2], sizeof address.sun_path - 1);
        ring_send(AF_UNIX, &address, sizeof address, text);
    } else if (!strcmp(how, "old-read")) {
        old_read(words[2]);
    } else if (!strcmp(how, "old-write")) {
        old_write(words[2], text);
    } else if (!strcmp(how, "flip-read")) {
        race((struct paths){words[2], words[3]}, NULL);
    } else if (!strcmp(how, "flip-write") && count > 4) {
        race((struct paths){words[2], words[3]}, words[4]);
    } else if (!strcmp(how, "risen")) {
        puts(geteuid() != getuid() ? "OPEN" : "as before");
    } else {
        return 64;
    }
    return 0;
}
