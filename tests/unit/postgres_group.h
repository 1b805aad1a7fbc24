// SPDX-License-Identifier: Apache-2.0
// What tests of one group on a private Postgres begin and end with; each has setup() and
// teardown().
#pragma once

#include "base/log.h"
#include "private_postgres.h"
#include "store/statement.h"

static const struct statement nap = {"nap", "SELECT pg_sleep(20)"};
static const struct statement one = {"one", "SELECT 1"};

static int begin_group(void **state)
{
    (void)state;
    log_init(LOG_ERROR, "test");
    return postgres_launch();
}

static int end_group(void **state)
{
    (void)state;
    return postgres_end();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
