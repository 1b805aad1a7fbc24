// SPDX-License-Identifier: Apache-2.0
// Finds apps with sockets here, and chooses the socket for an envelope.
#include "app.h"

#include "../connection/connection.h"
#include "../connection/packet.h"
#include "../core.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVENTS_AT_ONCE = 32 };

struct app *app_find(struct gateway *gateway, const char *id)
{
    struct app *app;
    HASH_FIND_STR(gateway->envelopes->apps, id, app);
    return app;
}

struct app *app_make(struct gateway *gateway, const char *id)
{
    struct app *app = app_find(gateway, id);
    if (app)
        return app;
    app = calloc(1, sizeof *app);
    if (!app)
        return NULL;
    app->gateway = gateway;
    snprintf(app->id, sizeof app->id, "%s", id);
    list_init(&app->sockets);
    list_init(&app->envelopes);
    HASH_ADD_STR(gateway->envelopes->apps, id, app);
    return app;
}

void app_free(struct app *app)
{
    LIST_FOREACH(link, &app->envelopes)
    {
        list_remove(link);
        free(LIST_ITEM(link, struct envelope, link));
    }
    HASH_DEL(app->gateway->envelopes->apps, app);
    free(app);
}

bool app_socket_is_open(const struct app_socket *app_socket)
{
    return app_socket->connection->state == CONNECTION_OPEN &&
           (app_socket->state == APP_SOCKET_READY || app_socket->state == APP_SOCKET_WARNED);
}

void app_socket_send(const struct app_socket *app_socket, const char *text, size_t length)
{
    if (app_socket->connection->state != CONNECTION_OPEN)
        return;
    struct packet *packet = packet_new(text, length);
    connection_push(app_socket->connection, packet);
    packet_unref(packet);
}

struct app_socket *app_next_socket(struct app *app, const struct app_socket *last)
{
    struct app_socket *found = NULL;
    LIST_FOREACH(item, &app->sockets)
    {
        struct app_socket *app_socket = LIST_ITEM(item, struct app_socket, app_link);
        if (app_socket_is_open(app_socket) && (!found || found == last))
            found = app_socket;
    }
    if (found) {
        list_remove(&found->app_link);
        list_append(&app->sockets, &found->app_link);
    }
    return found;
}

int64_t app_room(const struct app *app)
{
    bool has_link = false;
    int64_t room = EVENTS_AT_ONCE;
    LIST_FOREACH(item, &app->sockets)
    {
        has_link = has_link || app_socket_is_open(LIST_ITEM(item, struct app_socket, app_link));
    }
    LIST_FOREACH(item, &app->envelopes)
    {
        room -= LIST_ITEM(item, struct envelope, link)->state == ENVELOPE_SENT;
    }
    return has_link && room > 0 ? room : 0;
}

bool app_is_idle(const struct app *app)
{
    return app_room(app) == EVENTS_AT_ONCE;
}
