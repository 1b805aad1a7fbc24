// SPDX-License-Identifier: Apache-2.0
// The handlers of /healthz, /readyz, /metrics, pictures and the static files.
#include "pages.h"
#include "web.h"

#include "base/check.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "http/picture.h"

#include <stdlib.h>

struct pages {
    uint32_t tag;
    const struct readiness *readiness;
    const struct log *log;
    bool draining;
};

static const char JSON_TYPE[] = "application/json; charset=utf-8";

static int healthz(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    (void)arg, (void)path;
    *ret_type = JSON_TYPE;
    buffer_append_text(body, "{\"status\":\"ok\"}\n");
    return 200;
}

// "unreachable" means lost after it was connected; posts are accepted all the same.
static const char *log_word(const struct log *log)
{
    if (!log_is_ready(log))
        return "missing";
    return log_answers(log) ? "ok" : "unreachable";
}

// 200 if everything that calls need is available; otherwise 503 with the missing parts.
static int readyz(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    const struct pages *pages = CAST(pages, arg);
    struct json_writer w = json_writer_to(body);
    bool postgres = readiness_of_postgres(pages->readiness);
    bool redis = readiness_of_redis(pages->readiness);
    bool log = log_is_ready(pages->log);
    bool ready = postgres && redis && log && !pages->draining;

    (void)path;
    *ret_type = JSON_TYPE;
    json_open_object(&w);
    json_key_string(&w, "status", ready ? "ok" : pages->draining ? "draining" : "unavailable");
    json_key_string(&w, "postgres", postgres ? "ok" : "missing");
    json_key_string(&w, "redis", redis ? "ok" : "missing");
    json_key_string(&w, "log", log_word(pages->log));
    json_close_object(&w);
    return ready ? 200 : 503;
}

static int metrics(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    const struct pages *pages = CAST(pages, arg);

    (void)path;
    metric_set(METRIC_PART_POSTGRES, readiness_of_postgres(pages->readiness));
    metric_set(METRIC_PART_REDIS, readiness_of_redis(pages->readiness));
    metric_set(METRIC_PART_LOG, log_is_ready(pages->log) && log_answers(pages->log));
    *ret_type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_print(body);
    return 200;
}

int pages_new(struct server *server, const struct readiness *readiness, const struct log *log,
              struct pages **ret_pages)
{
    struct pages *pages = calloc(1, sizeof *pages);

    if (!pages)
        return -ERROR_MEMORY;
    *pages = (struct pages){.tag = TAG(pages), .readiness = readiness, .log = log};
    int r = server_page_add(server, "/healthz", healthz, pages);
    if (r >= 0)
        r = server_page_add(server, "/readyz", readyz, pages);
    if (r >= 0)
        r = server_page_add(server, "/metrics", metrics, pages);
    if (r >= 0)
        r = server_page_add_cached(server, "/avatars/*", "public, max-age=86400", picture_page,
                                   NULL);
    if (r >= 0)
        r = web_add(server);
    if (r < 0) {
        TAGGED_FREE(pages);
        return r;
    }
    *ret_pages = pages;
    return 0;
}

void pages_drain(struct pages *pages)
{
    pages->draining = true;
}

void pages_free(struct pages *pages)
{
    TAGGED_FREE(pages);
}
