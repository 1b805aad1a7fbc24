// SPDX-License-Identifier: Apache-2.0
#include "../../src/gateway/connection/outlet.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OURS, THEIRS };

struct fixture {
    int fd[2];
    struct outlet outlet;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->fd), 0);
    (void)setsockopt(f->fd[OURS], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int));
    outlet_init(&f->outlet);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    outlet_done(&f->outlet);
    close(f->fd[OURS]);
    close(f->fd[THEIRS]);
    free(f);
    return 0;
}

static void push(struct fixture *f, const char *text, size_t length)
{
    struct packet *packet = packet_new(text, length);
    assert_non_null(packet);
    assert_int_equal(outlet_push(&f->outlet, packet), 0);
    packet_unref(packet);
}

// Reads all that is there now.
static size_t received(struct fixture *f, char *data, size_t size)
{
    size_t length = 0;
    ssize_t part;
    while (length < size && (part = read(f->fd[THEIRS], data + length, size - length)) > 0)
        length += (size_t)part;
    return length;
}

static void test_headers(void **state)
{
    (void)state;
    uint8_t header[PACKET_HEADER_MAX];
    assert_int_equal(packet_header(PACKET_TEXT, 125, header), 2);
    assert_memory_equal(header, "\x81\x7d", 2);
    assert_int_equal(packet_header(PACKET_TEXT, 126, header), 4);
    assert_memory_equal(header, "\x81\x7e\x00\x7e", 4);
    assert_int_equal(packet_header(PACKET_TEXT, 65535, header), 4);
    assert_memory_equal(header, "\x81\x7e\xff\xff", 4);
    assert_int_equal(packet_header(PACKET_TEXT, 65536, header), 10);
    assert_memory_equal(header, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10);
    assert_int_equal(packet_header(PACKET_PONG, 0, header), 2);
    assert_memory_equal(header, "\x8a\x00", 2);
}

static void test_many_packets_keep_their_order(void **state)
{
    struct fixture *f = *state;
    char data[4096];
    for (char c = 'a'; c <= 'z'; c++)
        push(f, &c, 1);
    assert_int_equal(outlet_flush(&f->outlet, f->fd[OURS]), 0);
    assert_true(outlet_is_empty(&f->outlet));
    assert_int_equal(received(f, data, sizeof data), 26 * 3);
    for (size_t i = 0; i < 26; i++)
        assert_int_equal(data[3 * i + 2], 'a' + (char)i);
}

static void test_control_overtakes(void **state)
{
    struct fixture *f = *state;
    char data[64];
    push(f, "one", 3);
    push(f, "two", 3);
    assert_int_equal(outlet_control(&f->outlet, PACKET_PONG, "x", 1), 0);
    assert_int_equal(outlet_flush(&f->outlet, f->fd[OURS]), 0);
    assert_int_equal(received(f, data, sizeof data), 13);
    assert_memory_equal(data, "\x8a\x01x\x81\x03one\x81\x03two", 13);
}

static void test_control_waits_for_a_packet_partly_sent(void **state)
{
    struct fixture *f = *state;
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG), *data = malloc(LONG + 64);
    memset(text, 't', LONG);
    push(f, text, LONG);
    push(f, "late", 4);
    assert_int_equal(outlet_flush(&f->outlet, f->fd[OURS]), 1);
    assert_int_equal(outlet_control(&f->outlet, PACKET_CLOSE, "\x03\xe9", 2), 0);
    outlet_drop_backlog(&f->outlet);
    size_t length = 0;
    for (int r = 1; r == 1; length += received(f, data + length, LONG + 64 - length))
        r = outlet_flush(&f->outlet, f->fd[OURS]);
    assert_int_equal(length, 10 + LONG + 4);
    assert_int_equal(data[10 + LONG - 1], 't');
    assert_memory_equal(data + 10 + LONG, "\x88\x02\x03\xe9", 4);
    free(text);
    free(data);
}

static void test_control_is_bounded(void **state)
{
    struct fixture *f = *state;
    int r = 0;
    for (int i = 0; i < 100000 && r == 0; i++)
        r = outlet_control(&f->outlet, PACKET_PONG, NULL, 0);
    assert_true(r < 0);
    assert_true(f->outlet.control.length <= OUTLET_CONTROL_MAX);
}

static void test_broken_socket(void **state)
{
    struct fixture *f = *state;
    close(f->fd[THEIRS]);
    f->fd[THEIRS] = open("/dev/null", O_RDONLY);
    push(f, "x", 1);
    assert_true(outlet_flush(&f->outlet, f->fd[OURS]) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test_setup_teardown(test_many_packets_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_overtakes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_waits_for_a_packet_partly_sent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_control_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_socket, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
