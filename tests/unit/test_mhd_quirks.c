// SPDX-License-Identifier: Apache-2.0
// The versions of libmicrohttpd that we lean on. What we lean on is tested by test_http_acceptor.c
// and test_http_heads.c.
#include "../../src/http/mhd_quirks.h"
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void only_versions_that_were_tried_are_taken(void **state)
{
    (void)state;
    assert_int_equal(mhd_check("0.9.75"), 0);
    assert_int_equal(mhd_check(MHD_get_version()), 0);
    assert_int_equal(mhd_check("0.9.76"), -ERROR_UNAVAILABLE);
    assert_int_equal(mhd_check("1.0.1"), -ERROR_UNAVAILABLE);
}

// What came of a later request is read up to where libmicrohttpd's memory is zero.
static void the_fields_are_those_behind_the_request_line(void **state)
{
    (void)state;
    static char memory[MHD_MEMORY_BYTES];
    static const char request[] = "GET\0/api/now\0HTTP/1.1\0\0Host: h\r\nX: y";
    size_t length;
    memcpy(memory, request, sizeof request);
    assert_ptr_equal(mhd_fields_peek(memory, memory + 4, &length), memory + 23);
    assert_int_equal(length, strlen("Host: h\r\nX: y"));
    memory[21] = ' '; // no CR
    assert_null(mhd_fields_peek(memory, memory + 4, &length));
    memory[21] = '\0';
    memory[13] = 'F';
    assert_null(mhd_fields_peek(memory, memory + 4, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_versions_that_were_tried_are_taken),
        cmocka_unit_test(the_fields_are_those_behind_the_request_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
