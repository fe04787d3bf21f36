/* A pool in two processes: one exports it and sends its descriptor over a Unix socket, the other imports it
 * and reads what the first one writes. */
#define _GNU_SOURCE
#include "avsg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 1000, ROW_BYTES = 256 };

static void check(int done, const char *what) {
    if (done) return;
    fprintf(stderr, "%s: %s\n", what, avsg_last_error());
    exit(1);
}
#define CHECK(call) check((call) == AVSG_OK, #call)

/* A descriptor as the bytes of a message, and beside it room for one file descriptor. */
typedef struct message {
    uint8_t desc[AVSG_POOL_DESC_BYTES];
    size_t beside[CMSG_SPACE(sizeof(int32_t)) / sizeof(size_t)];
    struct iovec part;
    struct msghdr whole;
} message;

static void prepare(message *m) {
    memset(m, 0, sizeof *m);
    m->part.iov_base = m->desc, m->part.iov_len = sizeof m->desc;
    m->whole.msg_iov = &m->part, m->whole.msg_iovlen = 1;
    m->whole.msg_control = m->beside, m->whole.msg_controllen = sizeof m->beside;
}

static void send_pool(const avsg_pool *pool, int to) {
    message m;
    int32_t fd;
    prepare(&m);
    CHECK(avsg_pool_export(pool, m.desc, sizeof m.desc, &fd));
    struct cmsghdr *head = CMSG_FIRSTHDR(&m.whole);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    check(sendmsg(to, &m.whole, MSG_NOSIGNAL) == sizeof m.desc, "sendmsg");
    close(fd);
}

static avsg_pool *receive_pool(int from) {
    message m;
    int32_t fd;
    avsg_pool *pool;
    prepare(&m);
    check(recvmsg(from, &m.whole, MSG_WAITALL | MSG_CMSG_CLOEXEC) == sizeof m.desc, "recvmsg");
    struct cmsghdr *head = CMSG_FIRSTHDR(&m.whole);
    check(head && head->cmsg_type == SCM_RIGHTS, "no file descriptor came");
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    CHECK(avsg_pool_import(m.desc, sizeof m.desc, fd, AVSG_ROLE_READER, &pool));
    close(fd);
    return pool;
}

int main(void) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    unsigned char row[ROW_BYTES];
    pid_t reader = fork();
    if (reader == 0) {
        avsg_pool *pool = receive_pool(ends[1]);
        size_t wrong = 0;
        for (size_t r = 0; r < ROWS; r++) {
            CHECK(avsg_pool_read_row(pool, 0, r, row, ROW_BYTES));
            for (size_t i = 0; i < ROW_BYTES; i++) wrong += row[i] != (unsigned char)(r * 7 + i);
        }
        printf("%d rows read, %zu bytes wrong\n", ROWS, wrong);
        CHECK(avsg_pool_destroy(pool));
        exit(wrong != 0);
    }
    avsg_pool_config config = AVSG_INIT(avsg_pool_config);
    config.layers = 1, config.rows = ROWS;
    config.segments = 1, config.segment_bytes[0] = ROW_BYTES;
    avsg_pool *pool;
    CHECK(avsg_pool_create(&config, &pool));
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < ROW_BYTES; i++) row[i] = (unsigned char)(r * 7 + i);
        CHECK(avsg_pool_write_row(pool, 0, r, row, ROW_BYTES));
    }
    send_pool(pool, ends[0]);
    int status = 1;
    check(reader > 0 && waitpid(reader, &status, 0) == reader, "fork");
    CHECK(avsg_pool_destroy(pool));
    return status != 0;
}
