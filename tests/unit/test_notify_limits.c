// SPDX-License-Identifier: Apache-2.0
// How many pushes are held, in number, bytes and by app, and how many are sent at once. Each device
// has a server, which answers when it is told to.
#include "notify/notify.h"

#include "base/error.h"
#include "base/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 1000, PUSH_BYTES = 1024, WAIT_MS = 5000, DEVICES = 5 };

static struct {
    struct notify *notify;
    int listeners[DEVICES];
    int ports[DEVICES];
    pthread_mutex_t lock;
    int outcomes[NOTIFY_OUTCOME_MAX];
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct notify_settings SETTINGS = {.push_apns_url = "",
                                                .push_fcm_url = "",
                                                .push_google_token_url = "",
                                                .push_ca_file = "",
                                                .push_timeout_ms = WAIT_MS,
                                                .push_queue_max = MANY,
                                                .push_queue_bytes = MANY * PUSH_BYTES,
                                                .push_app_queue_max = MANY,
                                                .push_app_parallel = MANY};

static void on_outcome(void *arg, const struct notify_answer *answer)
{
    (void)arg;
    pthread_mutex_lock(&world.lock);
    world.outcomes[answer->outcome]++;
    pthread_mutex_unlock(&world.lock);
}

static int outcomes(enum notify_outcome outcome)
{
    pthread_mutex_lock(&world.lock);
    int count = world.outcomes[outcome];
    pthread_mutex_unlock(&world.lock);
    return count;
}

static void listen_for(int device)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    world.listeners[device] = fd;
    world.ports[device] = ntohs(address.sin_port);
}

static void begin(const struct notify_settings *settings)
{
    struct notify_options options = {.settings = *settings, .private_allowed = true};

    memset(world.outcomes, 0, sizeof world.outcomes);
    for (int i = 0; i < DEVICES; i++)
        listen_for(i);
    assert_int_equal(notify_start(&options, &world.notify), 0);
}

// `held` of the pushes have no answer yet.
static void end(int held)
{
    notify_stop(world.notify);
    notify_free(world.notify);
    for (int i = 0; i < DEVICES; i++)
        close(world.listeners[i]);
    assert_int_equal(outcomes(NOTIFY_RETRY), held);
}

// Sends a push of `bytes` bytes, as the limits count it, to a device of an app.
static int send_push(const char *app_id, int device, int bytes)
{
    struct notify_push *push = calloc(1, sizeof *push);
    char url[64];

    assert_non_null(push);
    push->platform = PUSH_MATRIX;
    snprintf(push->app_id, sizeof push->app_id, "%s", app_id);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", world.ports[device]);
    push->address = json_pack("{s:s, s:s}", "url", url, "pushkey", "x");
    push->message.title = calloc((size_t)(bytes - PUSH_BYTES) + 1, 1);
    memset(push->message.title, 'x', (size_t)(bytes - PUSH_BYTES));
    int64_t before = metric_value(METRIC_NOTIFY_FULL);
    int r = notify_send(world.notify, push, on_outcome, NULL);
    assert_int_equal(metric_value(METRIC_NOTIFY_FULL), before + (r == -ERROR_BUSY));
    if (r < 0)
        notify_push_free(push);
    return r;
}

static bool has_come(int device, int wait_ms)
{
    struct pollfd ready = {.fd = world.listeners[device], .events = POLLIN};

    return poll(&ready, 1, wait_ms) == 1;
}

// The connection on which the device's push comes, once its head is there.
static int accept_push(int device)
{
    char request[4096];

    assert_true(has_come(device, WAIT_MS));
    int fd = accept(world.listeners[device], NULL, NULL);
    assert_true(recv(fd, request, sizeof request, 0) > 0);
    return fd;
}

static void answer(int fd)
{
    static const char text[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"rejected\":[]}";
    char rest[4096];

    assert_int_equal(send(fd, text, sizeof text - 1, 0), sizeof text - 1);
    shutdown(fd, SHUT_WR);
    while (recv(fd, rest, sizeof rest, 0) > 0)
        continue; // what is closed unread would be reset
    close(fd);
}

// What has ended takes no room, a moment later.
static void expect_room(const char *app_id)
{
    int r = -ERROR_BUSY;

    for (int i = 0; i < WAIT_MS && r == -ERROR_BUSY; i++) {
        usleep(1000);
        r = send_push(app_id, DEVICES - 1, PUSH_BYTES);
    }
    assert_int_equal(r, 0);
    assert_int_equal(outcomes(NOTIFY_DELIVERED), 1);
}

static void so_many_are_held(void **state)
{
    struct notify_settings settings = SETTINGS;

    (void)state;
    settings.push_queue_max = 3;
    begin(&settings);
    assert_int_equal(send_push("T1/a", 0, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/b", 1, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/c", 2, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/d", 3, PUSH_BYTES), -ERROR_BUSY);
    answer(accept_push(0));
    expect_room("T1/d");
    end(3);
}

static void so_many_bytes_are_held(void **state)
{
    struct notify_settings settings = SETTINGS;

    (void)state;
    settings.push_queue_bytes = 2 * PUSH_BYTES + 5;
    begin(&settings);
    assert_int_equal(send_push("T1/a", 0, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/b", 1, PUSH_BYTES + 6), -ERROR_BUSY);
    assert_int_equal(send_push("T1/b", 1, PUSH_BYTES + 5), 0);
    assert_int_equal(send_push("T1/c", 2, PUSH_BYTES), -ERROR_BUSY);
    answer(accept_push(0));
    expect_room("T1/c");
    end(2);
}

static void so_many_are_held_of_one_app(void **state)
{
    struct notify_settings settings = SETTINGS;

    (void)state;
    settings.push_app_queue_max = 2;
    begin(&settings);
    assert_int_equal(send_push("T1/a", 0, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/a", 1, PUSH_BYTES), 0);
    assert_int_equal(send_push("T1/a", 2, PUSH_BYTES), -ERROR_BUSY);
    assert_int_equal(send_push("T1/b", 3, PUSH_BYTES), 0);
    answer(accept_push(0));
    expect_room("T1/a");
    end(3);
}

// The third waits for one of the first two, and the other app does not.
static void so_many_are_sent_at_once_of_one_app(void **state)
{
    struct notify_settings settings = SETTINGS;
    int fds[4];

    (void)state;
    settings.push_app_parallel = 2;
    begin(&settings);
    for (int i = 0; i < 4; i++)
        assert_int_equal(send_push(i < 3 ? "T1/a" : "T1/b", i, PUSH_BYTES), 0);
    fds[0] = accept_push(0);
    fds[1] = accept_push(1);
    fds[3] = accept_push(3);
    assert_false(has_come(2, 0));
    answer(fds[0]);
    fds[2] = accept_push(2);
    end(3);
    assert_int_equal(outcomes(NOTIFY_DELIVERED), 1);
    for (int i = 1; i < 4; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_are_held),
        cmocka_unit_test(so_many_bytes_are_held),
        cmocka_unit_test(so_many_are_held_of_one_app),
        cmocka_unit_test(so_many_are_sent_at_once_of_one_app),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
