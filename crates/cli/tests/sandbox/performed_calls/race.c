/* Changes the path of a call while the call is judged: race ACT PROTECTED HARMLESS TRIES [SLOW].
   Prints how often the protected name was there after a call. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char path[4096];
static char *end;
static const char *names[2];
static volatile int turning = 1;

static void *turn(void *unused) {
    unsigned seed = 1;
    (void)unused;
    while (turning) {
        seed = seed * 1103515245 + 12345;
        strcpy(end, names[seed >> 16 & 1]);
        for (volatile unsigned pause = seed >> 20; pause; pause--)
            ;
    }
    return NULL;
}

static int act(const char *what) {
    int fd = 0;
    if (!strcmp(what, "open"))
        fd = open(path, O_CREAT | O_WRONLY, 0755);
    else if (!strcmp(what, "openat"))
        fd = openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR, 0755);
    else if (!strcmp(what, "write"))
        fd = open(path, O_WRONLY | O_APPEND);
    else if (!strcmp(what, "rename"))
        return rename("source", path);
    else if (!strcmp(what, "symlink"))
        return symlink("source", path);
    else if (!strcmp(what, "link"))
        return link("source", path);
    else if (!strcmp(what, "mkdir"))
        return mkdir(path, 0755);
    else if (!strcmp(what, "mknod"))
        return mknod(path, S_IFREG | 0755, 0);
    else if (!strcmp(what, "truncate"))
        return truncate(path, 0);
    if (fd > 0) {
        if (!strcmp(what, "write") && write(fd, "[core]\n\tfsmonitor = evil\n", 25) < 0)
            return -1;
        close(fd);
    }
    return fd;
}

static int evil(const char *name) {
    char text[8192] = "";
    int fd = open(name, O_RDONLY);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(fd);
    return strstr(text, "evil") != NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    struct stat found;
    int tries = atoi(argv[4]), won = 0;
    int writes = !strcmp(argv[1], "write");
    if (argc > 5)
        strcpy(path, argv[5]);
    end = path + strlen(path);
    names[0] = argv[3];
    names[1] = argv[2];
    signal(SIGXFSZ, SIG_IGN);
    pthread_create(&thread, NULL, turn, NULL);
    for (int n = 0; n < tries; n++) {
        if (!strcmp(argv[1], "rename") || !strcmp(argv[1], "link")) {
            int fd = open("source", O_CREAT | O_WRONLY, 0755);
            if (fd >= 0)
                close(fd);
        }
        act(argv[1]);
        if (writes ? evil(argv[2]) : lstat(argv[2], &found) == 0)
            won++;
        if (!writes && unlink(argv[3]))
            rmdir(argv[3]);
    }
    turning = 0;
    pthread_join(thread, NULL);
    printf("%s won %d of %d\n", argv[1], won, tries);
    return 0;
}
