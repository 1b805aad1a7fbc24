// SPDX-License-Identifier: Apache-2.0
// Opens connections to Postgres without blocking the loop, trying several hosts in turn.
#include "connector_internal.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

enum { POST_PAUSE_US = 10000 };

// Host options of a URL: comma-separated lists, all of the same length, or of one element that
// applies to every host.
static const char *const host_keys[] = {"host", "hostaddr", "port"};
enum { HOST_KEYS = sizeof host_keys / sizeof host_keys[0] };

struct hosts {
    const char *lists[HOST_KEYS]; // NULL: absent
    int count;
};

static int list_length(const char *list)
{
    int length = 1;
    for (; list && *list; list++)
        length += *list == ',';
    return length;
}

static struct hosts hosts_of(const PQconninfoOption *parsed)
{
    struct hosts hosts = {.count = 1};
    for (const PQconninfoOption *option = parsed; option && option->keyword; option++)
        for (int i = 0; i < HOST_KEYS; i++)
            if (strcmp(option->keyword, host_keys[i]) == 0)
                hosts.lists[i] = option->val;
    for (int i = 0; i < HOST_KEYS; i++)
        if (list_length(hosts.lists[i]) > hosts.count)
            hosts.count = list_length(hosts.lists[i]);
    for (int i = 0; i < HOST_KEYS; i++)
        if (list_length(hosts.lists[i]) != 1 && list_length(hosts.lists[i]) != hosts.count)
            return (struct hosts){.count = 1}; // libpq reports the error
    return hosts;
}

// Element `place` of a list, or the only element of a list of one. The caller frees it. NULL if
// there is no list or no memory.
static char *list_element(const char *list, int place)
{
    if (!list)
        return NULL;
    if (list_length(list) == 1)
        return strdup(list);
    for (; place > 0; place--)
        list += strcspn(list, ",") + 1;
    return strndup(list, strcspn(list, ","));
}

// Starts a connection to one host. libpq itself would try the next host after a refusal, but not
// after silence.
static PGconn *host_start(const struct postgres_keywords *keywords, const struct hosts *hosts,
                          int place)
{
    const char *keys[POSTGRES_KEYWORDS_MAX + HOST_KEYS];
    const char *values[POSTGRES_KEYWORDS_MAX + HOST_KEYS];
    char *elements[HOST_KEYS];
    int count = 0;
    for (; keywords->keys[count]; count++) {
        keys[count] = keywords->keys[count];
        values[count] = keywords->values[count];
    }
    // Appended after the URL: the last value of a key wins, unless it is NULL.
    for (int i = 0; i < HOST_KEYS; i++) {
        elements[i] = list_element(hosts->lists[i], place);
        keys[count] = host_keys[i];
        values[count++] = elements[i];
    }
    keys[count] = NULL;
    values[count] = NULL;
    PGconn *conn = PQconnectStartParams(keys, values, 1);
    for (int i = 0; i < HOST_KEYS; i++)
        free(elements[i]);
    return conn;
}

// Waits until libpq can proceed. False: stopped, or timed out.
static bool host_wait(PGconn *conn, PostgresPollingStatusType status, int stop_fd,
                      int64_t deadline_ms)
{
    short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    struct pollfd ready[] = {{.fd = PQsocket(conn), .events = events},
                             {.fd = stop_fd, .events = POLLIN}};
    int64_t wait_ms = deadline_ms - clock_monotonic_ms();
    return wait_ms > 0 && poll(ready, 2, (int)wait_ms) > 0 && ready[1].revents == 0;
}

static bool is_stopped(int stop_fd)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

// Runs the greeting. False: it failed, or was not answered in time.
static bool host_greet(PGconn *conn, const char *greeting, int stop_fd, int64_t deadline_ms)
{
    bool done = greeting[0] == '\0';
    if (done)
        return true;
    if (!PQsendQuery(conn, greeting))
        return false;
    for (;;) {
        while (PQisBusy(conn))
            if (!host_wait(conn, PGRES_POLLING_READING, stop_fd, deadline_ms) ||
                !PQconsumeInput(conn))
                return false;
        PGresult *result = PQgetResult(conn);
        if (!result)
            return done;
        done = PQresultStatus(result) == PGRES_TUPLES_OK;
        PQclear(result);
    }
}

static PGconn *host_connect(const struct postgres_keywords *keywords, const struct hosts *hosts,
                            int place, int stop_fd)
{
    PGconn *conn = host_start(keywords, hosts, place);
    if (PQstatus(conn) == CONNECTION_BAD)
        return conn;
    postgres_log_notices(conn);
    int64_t deadline_ms = clock_monotonic_ms() + keywords->connect_timeout_ms;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED &&
           host_wait(conn, status, stop_fd, deadline_ms))
        status = PQconnectPoll(conn);
    if (status == PGRES_POLLING_OK && !host_greet(conn, keywords->greeting, stop_fd, deadline_ms)) {
        if (!is_stopped(stop_fd))
            log_write(LOG_WARN, "store", "cannot begin: %.*s", POSTGRES_WHY(conn));
        PQfinish(TAKE(conn));
    }
    return conn;
}

PGconn *connector_connect(const struct postgres_keywords *keywords, int stop_fd)
{
    PQconninfoOption *parsed = PQconninfoParse(keywords->database_url, NULL);
    struct hosts hosts = hosts_of(parsed);
    PGconn *conn = NULL;
    for (int i = 0; i < hosts.count && !is_stopped(stop_fd); i++) {
        PQfinish(conn);
        conn = host_connect(keywords, &hosts, i, stop_fd);
        if (PQstatus(conn) == CONNECTION_OK)
            break;
    }
    PQconninfoFree(parsed);
    return conn;
}

struct connector {
    uint32_t tag;
    struct loop *loop;
    const struct postgres_keywords *keywords;
    connector_fn *fn;
    void *arg;
    int stop_fd; // becomes readable when the thread must end
    pthread_t thread;
    PGconn *conn; // the thread's until it has posted, then the loop's
};

static void connector_hand_over(void *arg)
{
    struct connector *connector = CAST(connector, arg);
    connector->fn(connector->arg, TAKE(connector->conn));
}

static void *connector_run(void *arg)
{
    struct connector *connector = CAST(connector, arg);
    connector->conn = connector_connect(connector->keywords, connector->stop_fd);
    // A full inbox means that the loop is busy, not gone: try again.
    while (loop_post(connector->loop, connector_hand_over, connector) < 0)
        usleep(POST_PAUSE_US);
    return NULL;
}

int connector_new(struct loop *loop, const struct postgres_keywords *keywords, connector_fn *fn,
                  void *arg, struct connector **ret_connector)
{
    struct connector *connector = malloc(sizeof *connector);
    int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!connector || stop_fd < 0)
        goto out;
    *connector = (struct connector){.tag = TAG(connector),
                                    .loop = loop,
                                    .keywords = keywords,
                                    .fn = fn,
                                    .arg = arg,
                                    .stop_fd = stop_fd};
    if (pthread_create(&connector->thread, NULL, connector_run, connector) != 0)
        goto out;
    *ret_connector = connector;
    return 0;
out:
    if (stop_fd >= 0)
        close(stop_fd);
    TAGGED_FREE(connector);
    return -ERROR_UNAVAILABLE;
}

void connector_free(struct connector *connector)
{
    if (!connector)
        return;
    (void)eventfd_write(connector->stop_fd, 1);
    pthread_join(connector->thread, NULL);
    close(connector->stop_fd);
    PQfinish(connector->conn);
    TAGGED_FREE(connector);
}
