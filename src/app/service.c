// SPDX-License-Identifier: Apache-2.0
// One event loop with all its parts (server, api, gateway, store, cache) on a thread of its own.
#include "service.h"

#include "api/api.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "pages.h"
#include "parts.h"
#include "sessions.h"
#include "unread/sidebar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BUSY_UPDATE_MS = 50,
    // Grace period: busy keep-alive connections get `Connection: close` on their next reply.
    // Whatever is idle afterwards is closed, when hardly any request can be on its way.
    IDLE_WAIT_MS = 500
};

struct service {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct writer *writer;
    struct marker *marker;
    struct sidebar *sidebar;
    struct reader *reader;
    struct api *api;
    struct gateway *gateway;
    struct sessions *sessions;
    struct server *server;
    struct relay *relay;
    struct readiness *readiness;
    const struct secrets *secrets;
    const struct storage *storage;
    const struct heat *heat;
    struct notify *notify;
    struct pages *pages;
    int sockets_max;
    struct loop_timer *busy_timer; // keeps `busy` current while draining
    int64_t idle_until_ms;         // how long to wait for idle connections
    pthread_t thread;
    bool started;
    atomic_bool busy;
};

static void on_post_local(void *arg, struct event *const *events, size_t count)
{
    struct service *service = CAST(service, arg);

    gateway_offer(service->gateway, events, count);
}

static void on_post_committed(void *arg, const char *outbox_id, struct event *const *events,
                              size_t count)
{
    struct service *service = CAST(service, arg);

    relay_submit(service->relay, outbox_id, events, count);
}

static void on_mark_settled(void *arg, const char *outbox_id)
{
    struct service *service = CAST(service, arg);

    relay_forget(service->relay, outbox_id);
}

static void on_change_committed(void *arg, const char *outbox_id)
{
    struct service *service = CAST(service, arg);

    relay_submit(service->relay, outbox_id, NULL, 0);
}

static void on_change_committed_later(void *arg, const char *outbox_id)
{
    struct service *service = CAST(service, arg);

    relay_submit_later(service->relay, outbox_id);
}

static void on_session_changed(void *arg, const char *id)
{
    struct service *service = CAST(service, arg);

    sessions_publish(service->sessions, id);
}

// `id` NULL: notices may have been missed; the gateway detects that by itself.
static void session_changed(void *arg, const char *id)
{
    struct service *service = CAST(service, arg);

    api_session_changed(service->api, id);
    if (id)
        gateway_session_changed(service->gateway, id);
}

static void on_call(void *arg, struct request *request)
{
    struct service *service = CAST(service, arg);

    api_call(service->api, request);
}

static void on_admit(void *arg, struct request *request)
{
    struct service *service = CAST(service, arg);

    api_admit(service->api, request);
}

static void on_takeover(void *arg, int fd, const struct http_head *head)
{
    static const char full[] =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    struct service *service = CAST(service, arg);

    if (gateway_sockets(service->gateway) < service->sockets_max) {
        gateway_takeover(service->gateway, fd, head);
        return;
    }
    metric_add(METRIC_SOCKETS_REFUSED, 1);
    (void)!write(fd, full, sizeof full - 1); // best effort
    close(fd);
}

// Creates Postgres, Redis, and the parts that use only these.
static int service_make_stores(struct service *service, const struct settings *settings)
{
    struct store_options store_options = parts_store_options(settings);
    struct cache_options cache_options = parts_cache_options(settings);
    int batch_max = (int)settings->batch_max;
    int queue_max = (int)settings->queue_max;

    int r = store_new(service->loop, &store_options, &service->store);
    if (r < 0)
        return r;
    r = cache_new(service->loop, &cache_options, &service->cache);
    if (r < 0)
        return r;
    r = sessions_new(service->loop, service->cache, session_changed, service, &service->sessions);
    if (r < 0)
        return r;
    r = writer_new(service->loop, service->store,
                   &(struct writer_options){.batch_max = batch_max,
                                            .batch_bytes = (size_t)settings->batch_bytes,
                                            .queue_bytes = (size_t)settings->queue_bytes,
                                            .queue_max = queue_max,
                                            .wait_max_ms = settings->statement_timeout_ms,
                                            .heat = service->heat,
                                            .on_local = on_post_local,
                                            .on_committed = on_post_committed,
                                            .arg = service},
                   &service->writer);
    if (r < 0)
        return r;
    r = reader_new(service->store, service->cache, (int)settings->rebuilds_max, &service->reader);
    if (r < 0)
        return r;
    r = marker_new(service->loop, service->store, service->cache,
                   &(struct marker_options){.batch_max = batch_max,
                                            .queue_max = queue_max,
                                            .singles_max = (int)settings->singles_max,
                                            .on_settled = on_mark_settled,
                                            .arg = service},
                   &service->marker);
    if (r < 0)
        return r;
    return sidebar_new(service->loop, service->store,
                       &(struct sidebar_options){.cached_bytes = settings->sidebar_bytes,
                                                 .cached_min = settings->sidebar_min},
                       &service->sidebar);
}

static int service_make_gateway(struct service *service, const struct settings *settings)
{
    const struct gateway_options options = {
        .settings = settings->gateway,
        .marker = service->marker,
        .log = relay_log(service->relay),
        .active_s = settings->push_active_s,
        .cors_origins = settings->cors_origins,
        .on_session = session_changed,
        .on_call = on_call,
        .arg = service,
    };

    return gateway_new(service->loop, service->store, service->cache, &options, &service->gateway);
}

static int service_make_api(struct service *service, const struct settings *settings)
{
    const struct api_options options = {
        .settings = settings->api,
        .store = service->store,
        .cache = service->cache,
        .writer = service->writer,
        .marker = service->marker,
        .sidebar = service->sidebar,
        .reader = service->reader,
        .gateway = service->gateway,
        .notify = service->notify,
        .secrets = service->secrets,
        .storage = service->storage,
        .private_allowed = settings->events_api_private,
        .app_socket_keep_s = settings->app_socket_keep_s,
        .presence_ttl_s = settings->presence_ttl_s,
        .auto_limits = {settings->auto_zset_members, settings->auto_counter_members,
                        settings->auto_bitmap_members},
        .queue_max = (int)settings->queue_max,
        .on_committed = on_change_committed,
        .on_committed_later = on_change_committed_later,
        .on_session_changed = on_session_changed,
        .arg = service,
    };

    return api_new(service->loop, &options, &service->api);
}

static int service_make_server(struct service *service, const struct settings *settings)
{
    const struct server_options options = {
        .settings = settings->server,
        .on_call = on_call,
        .on_admit = on_admit,
        .on_takeover = on_takeover,
        .arg = service,
    };

    int r = server_new(service->loop, &options, &service->server);
    if (r < 0)
        return r;
    readiness_add(service->readiness, service->store, service->cache);
    return pages_new(service->server, service->readiness, relay_log(service->relay),
                     &service->pages);
}

static int service_make(struct service *service, const struct settings *settings)
{
    int r = loop_new(&service->loop);
    if (r < 0)
        return r;
    r = service_make_stores(service, settings);
    if (r < 0)
        return r;
    r = service_make_gateway(service, settings);
    if (r < 0)
        return r;
    r = service_make_api(service, settings);
    if (r < 0)
        return r;
    return service_make_server(service, settings);
}

int service_new(const struct settings *settings, const struct secrets *secrets,
                const struct storage *storage, const struct heat *heat, struct notify *notify,
                struct relay *relay, struct readiness *readiness, int index,
                struct service **ret_service)
{
    struct service *service = TAGGED_NEW(service);

    if (!service)
        return -ERROR_MEMORY;
    service->relay = relay;
    service->readiness = readiness;
    service->secrets = secrets;
    service->storage = storage;
    service->heat = heat;
    service->notify = notify;
    service->sockets_max = (int)settings->sockets_max;
    int r = service_make(service, settings);
    if (r < 0) {
        log_write(LOG_ERROR, "app", "cannot create loop %d: %s", index, error_code(r));
        service_free(service);
        return r;
    }
    *ret_service = service;
    return 0;
}

static void *service_run(void *arg)
{
    struct service *service = CAST(service, arg);

    loop_run(service->loop);
    return NULL;
}

struct sessions *service_sessions(const struct service *service)
{
    return service->sessions;
}

int service_start(struct service *service)
{
    if (pthread_create(&service->thread, NULL, service_run, service) != 0)
        return -ERROR_MEMORY;
    service->started = true;
    return 0;
}

static void busy_update(void *arg)
{
    struct service *service = CAST(service, arg);
    bool waits = server_connections(service->server) > 0 &&
                 loop_now_ms(service->loop) < service->idle_until_ms;
    bool busy = waits || server_calls(service->server) > 0 ||
                gateway_sockets(service->gateway) > 0 || writer_waiting(service->writer) > 0 ||
                marker_waiting(service->marker) > 0;

    atomic_store(&service->busy, busy);
    loop_timer_set(service->busy_timer, BUSY_UPDATE_MS);
}

static void drain_begin(void *arg)
{
    struct service *service = CAST(service, arg);

    pages_drain(service->pages);
    server_quiesce(service->server);
    gateway_drain(service->gateway);
    service->idle_until_ms = loop_now_ms(service->loop) + IDLE_WAIT_MS;
    if (loop_timer_new(service->loop, busy_update, service, &service->busy_timer) == 0)
        busy_update(service);
    else
        atomic_store(&service->busy, false);
}

void service_drain(struct service *service)
{
    atomic_store(&service->busy, loop_post(service->loop, drain_begin, service) == 0);
}

bool service_is_busy(const struct service *service)
{
    return atomic_load(&service->busy);
}

void service_stop(struct service *service)
{
    if (!service->started)
        return;
    loop_stop(service->loop);
    pthread_join(service->thread, NULL);
    service->started = false;
}

// Redis and Postgres go first: their last replies end the work of api, writer and marker. Redis
// precedes Postgres, which is read when Redis gives no answer.
void service_free(struct service *service)
{
    if (!service)
        return;
    gateway_free(service->gateway);
    cache_free(service->cache);
    store_free(service->store);
    writer_finish(service->writer);
    marker_finish(service->marker);
    server_free(service->server);
    pages_free(service->pages);
    api_free(service->api);
    sessions_free(service->sessions);
    marker_free(service->marker);
    sidebar_free(service->sidebar);
    reader_free(service->reader);
    writer_free(service->writer);
    loop_timer_free(service->busy_timer);
    loop_free(service->loop);
    TAGGED_FREE(service);
}
