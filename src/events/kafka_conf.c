// SPDX-License-Identifier: Apache-2.0
// Creates and destroys librdkafka clients with the settings common to all.
#include "kafka_conf.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/wait.h"

enum { SYSLOG_WARNING = 4, DESTROY_MS = 3000 };

static const struct kafka_setting common_settings[] = {
    {"client.id", "tidings"},
    {"socket.nagle.disable", "true"}, // Nagle was the default before 2.10: 40 ms per small request
    {"socket.keepalive.enable", "true"},
    {"reconnect.backoff.max.ms", "1000"},
    {"log.connection.close", "false"},
    {0},
};

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
    (void)client;
    log_write(level <= SYSLOG_WARNING ? LOG_WARN : LOG_DEBUG, "events", "%s: %s", facility, text);
}

static void on_error(rd_kafka_t *client, int error, const char *reason, void *arg)
{
    (void)client;
    (void)arg;
    metric_add(METRIC_KAFKA_ERRORS, 1);
    log_write(LOG_DEBUG, "events", "Kafka: %s: %s", rd_kafka_err2name(error), reason);
}

void kafka_print_kbytes(int64_t bytes, char *ret_text)
{
    snprintf(ret_text, KAFKA_NUMBER_SIZE, "%" PRId64, (bytes + 1023) / 1024);
}

static bool conf_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) == RD_KAFKA_CONF_OK)
        return true;
    log_write(LOG_ERROR, "events", "invalid Kafka setting: %s", reason);
    return false;
}

static bool conf_set_all(rd_kafka_conf_t *conf, const struct kafka_setting *settings)
{
    for (const struct kafka_setting *setting = settings; setting->name; setting++)
        if (!conf_set(conf, setting->name, setting->value))
            return false;
    return true;
}

rd_kafka_conf_t *kafka_conf_new(const char *brokers, const struct kafka_setting *settings)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (conf_set(conf, "bootstrap.servers", brokers) && conf_set_all(conf, common_settings) &&
        conf_set_all(conf, settings))
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

rd_kafka_t *kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char reason[256];
    rd_kafka_t *client = rd_kafka_new(type, conf, reason, sizeof reason);
    if (client)
        return client;
    log_write(LOG_ERROR, "events", "cannot create the Kafka client: %s", reason);
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static void *destroy_run(void *client)
{
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return NULL;
}

// With librdkafka 2.0.2, rd_kafka_destroy() may wait for its own threads forever after a topic was
// lost and recreated.
void kafka_client_destroy(rd_kafka_t *client)
{
    int64_t until_ms = clock_monotonic_ms() + DESTROY_MS;
    pthread_t thread;
    if (pthread_create(&thread, NULL, destroy_run, client) != 0) {
        destroy_run(client);
        return;
    }
    if (join_until(thread, until_ms))
        return;
    log_write(LOG_WARN, "events", "a Kafka client does not stop: abandoned");
    pthread_detach(thread);
}
