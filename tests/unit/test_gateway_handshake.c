// SPDX-License-Identifier: Apache-2.0
#include "../../src/gateway/websocket/handshake.h"
#include "http/head.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HOST "Host: chat.example\r\n"
#define LINE "GET /rtm/Abc-_9 HTTP/1.1\r\n" HOST
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// NULL for a good upgrade, else the beginning of the reply that refuses it.
static const char *answer(const char *text, struct handshake *ret_handshake)
{
    char copy[2048];
    struct http_head head;
    assert_true(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    const char *reason = head_parse(copy, strlen(text), &head);
    return reason ? "HTTP/1.1 400 " : handshake_read(&head, ret_handshake);
}

static struct handshake good(const char *head)
{
    struct handshake handshake;
    assert_null(answer(head, &handshake));
    return handshake;
}

static void refused(const char *head, const char *status)
{
    struct handshake handshake;
    char expected[32];
    const char *reply = answer(head, &handshake);
    assert_non_null(reply);
    (void)snprintf(expected, sizeof expected, "HTTP/1.1 %s ", status);
    assert_memory_equal(reply, expected, strlen(expected));
}

static void test_example_of_the_rfc(void **state)
{
    (void)state;
    struct handshake handshake = good(LINE UPGRADE VERSION KEY "\r\n");
    assert_string_equal(handshake.ticket, "Abc-_9");
    assert_non_null(strstr(handshake.reply, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_non_null(
        strstr(handshake.reply, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

static void test_what_clients_send(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "GET /rtm/Abc-_9? HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n",
        "GET /rtm/Abc-_9?batch_presence_aware=1 HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n",
        LINE "upgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n" VERSION KEY "\r\n",
        LINE "Connection: keep-alive\r\n" UPGRADE VERSION KEY "\r\n",
        LINE UPGRADE VERSION KEY "Origin: https://api.slack.com\r\n\r\n",
        LINE UPGRADE VERSION KEY "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                                 "Sec-WebSocket-Protocol: chat\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct handshake handshake = good(heads[i]);
        assert_string_equal(handshake.ticket, "Abc-_9");
        assert_null(strstr(handshake.reply, "Extensions"));
        assert_null(strstr(handshake.reply, "Protocol:"));
    }
}

static void test_not_an_upgrade(void **state)
{
    (void)state;
    refused("POST /rtm/a HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "400");
    refused("GET /rtm/a HTTP/1.0\r\n" HOST UPGRADE VERSION KEY "\r\n", "400");
    refused(LINE "Upgrade: websocket\r\n" VERSION KEY "\r\n", "400");
    refused(LINE "Connection: Upgrade\r\n" VERSION KEY "\r\n", "426");
    refused(LINE UPGRADE KEY "\r\n", "426");
    refused(LINE UPGRADE KEY "Sec-WebSocket-Version: 8\r\n\r\n", "426");
}

static void test_bad_fields(void **state)
{
    (void)state;
    refused(LINE UPGRADE VERSION "\r\n", "400");
    refused(LINE UPGRADE VERSION "Sec-WebSocket-Key: c2hvcnQ=\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION KEY KEY "\r\n", "400");
    refused(LINE UPGRADE VERSION KEY "Content-Length: 5\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION KEY "Transfer-Encoding: chunked\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION KEY "no colon\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION KEY "Name : value\r\n\r\n", "400");
    refused(LINE UPGRADE VERSION KEY " folded\r\n\r\n", "400");
}

static void test_links(void **state)
{
    static const char link[] = "GET /link/Abc? HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n";
    static const char rtm[] = "GET /rtm/Abc HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n";
    struct handshake handshake;
    (void)state;
    assert_null(answer(link, &handshake));
    assert_true(handshake.is_app_socket);
    assert_string_equal(handshake.ticket, "Abc");
    assert_null(answer(rtm, &handshake));
    assert_false(handshake.is_app_socket);
}

static void test_where_it_goes_on(void **state)
{
    static const char since[] =
        "GET /rtm/Abc?a=1&since=e1.9.8.7.6&b=2 HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n";
    static const char with_ticket[] =
        "GET /rtm/?ticket=Abc&since=e1.9.8.7.6 HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n";
    (void)state;
    struct handshake handshake = good(since);
    assert_string_equal(handshake.ticket, "Abc");
    assert_true(handshake.resumes);
    assert_int_equal(handshake.place.since.xid, 9);
    handshake = good(with_ticket);
    assert_string_equal(handshake.ticket, "Abc");
    assert_int_equal(handshake.place.since.received_xid, 8);
    assert_false(good(LINE UPGRADE VERSION KEY "\r\n").resumes);
    refused("GET /rtm/Abc?since=x HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "400");
    refused("GET /rtm/Abc?since=x&since=e1.9.8.7.6 HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n",
            "400");
    refused("GET /rtm/Abc?since= HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "400");
}

static void test_bad_paths(void **state)
{
    (void)state;
    refused("GET /rtm/ HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "404");
    refused("GET /rtm/a/b HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "404");
    refused("GET /rtm/%41 HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "404");
    refused("GET /links/a HTTP/1.1\r\n" HOST UPGRADE VERSION KEY "\r\n", "404");
    char head[512];
    (void)snprintf(head, sizeof head, "GET /rtm/%0200d HTTP/1.1\r\n" HOST "\r\n", 1);
    refused(head, "404");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_of_the_rfc),
        cmocka_unit_test(test_what_clients_send),
        cmocka_unit_test(test_not_an_upgrade),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_where_it_goes_on),
        cmocka_unit_test(test_bad_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
