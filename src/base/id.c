// SPDX-License-Identifier: Apache-2.0
// Generates and parses ids, tokens and ts.
#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

enum {
    ID_RANDOM_LENGTH = 10,
    TOKEN_RANDOM_LENGTH = 43, // 256 bits
    TS_LENGTH = TS_SIZE - 1,
    TS_SECONDS_DIGITS = 10,
    POOL_SIZE = 512
};

static const int64_t ts_max_us = 9999999999999999;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool id_is_valid(const char *text, const char *prefixes)
{
    if (!text || text[0] == '\0' || !strchr(prefixes, text[0]))
        return false;
    size_t length = 1;
    while (is_digit(text[length]) || (text[length] >= 'A' && text[length] <= 'Z'))
        if (++length > ID_LENGTH_MAX)
            return false;
    return text[length] == '\0' && length >= 3;
}

static void random_read(void *data, size_t length)
{
    char *to = data;
    while (length > 0) {
        ssize_t got = getrandom(to, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            log_write(LOG_ERROR, "base", "cannot read random bytes: errno %d", errno);
            abort();
        }
        to += got;
        length -= (size_t)got;
    }
}

void random_fill(void *data, size_t length)
{
    // Small requests are served from a per-thread pool: a system call per id would cost more than
    // the rest of its generation. Bytes are wiped from the pool once handed out.
    static _Thread_local unsigned char pool[POOL_SIZE];
    static _Thread_local size_t left;
    if (length > sizeof pool / 4) {
        random_read(data, length);
        return;
    }
    if (left < length) {
        random_read(pool, sizeof pool);
        left = sizeof pool;
    }
    left -= length;
    memcpy(data, pool + left, length);
    explicit_bzero(pool + left, length);
}

void id_make(char prefix, char *ret_id)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const uint64_t ids = 3656158440062976; // 36^10
    uint64_t number;
    // Numbers beyond the largest multiple of 36^10 are rejected: they would make some ids more
    // likely than others.
    do {
        random_fill(&number, sizeof number);
    } while (number >= UINT64_MAX / ids * ids);
    ret_id[0] = prefix;
    for (int i = 1; i <= ID_RANDOM_LENGTH; i++) {
        ret_id[i] = digits[number % 36];
        number /= 36;
    }
    ret_id[ID_RANDOM_LENGTH + 1] = '\0';
}

void id_make_secret(char *ret_secret)
{
    char id[ID_SIZE];
    size_t length = 0;

    for (int i = 0; i < ID_SECRET_IDS; i++) {
        id_make('S', id);
        length += (size_t)snprintf(ret_secret + length, ID_SECRET_SIZE - length, "%s", id);
    }
}

void token_make(const char *prefix, char *ret_token)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    enum { DIGITS = sizeof digits - 1 };
    int at = snprintf(ret_token, TOKEN_SIZE, "%s-", prefix);
    int end = at + TOKEN_RANDOM_LENGTH;
    unsigned char random;

    ASSERT(end < TOKEN_SIZE);
    while (at < end) {
        random_fill(&random, sizeof random);
        if (random < 256 / DIGITS * DIGITS) // the others would make some digits more likely
            ret_token[at++] = digits[random % DIGITS];
    }
    ret_token[at] = '\0';
    explicit_bzero(&random, sizeof random);
}

int ts_parse(const char *text, size_t length, int64_t *ret_ts_us)
{
    if (length != TS_LENGTH || text[TS_SECONDS_DIGITS] != '.')
        return -ERROR_INVALID_TIMESTAMP;
    int64_t ts_us = 0;
    for (size_t i = 0; i < TS_LENGTH; i++) {
        if (i == TS_SECONDS_DIGITS)
            continue;
        if (!is_digit(text[i]))
            return -ERROR_INVALID_TIMESTAMP;
        ts_us = ts_us * 10 + (text[i] - '0');
    }
    *ret_ts_us = ts_us;
    return 0;
}

int ts_parse_moment(const char *text, size_t length, int64_t *ret_ts_us)
{
    size_t seconds = 0;
    int64_t ts_us = 0;
    while (seconds < length && seconds < TS_SECONDS_DIGITS && is_digit(text[seconds]))
        ts_us = ts_us * 10 + (text[seconds++] - '0');
    if (seconds == 0 || seconds + 1 == length || (seconds < length && text[seconds] != '.'))
        return -ERROR_INVALID_TIMESTAMP;
    for (size_t i = seconds + 1; i < length; i++)
        if (!is_digit(text[i]))
            return -ERROR_INVALID_TIMESTAMP;
    for (size_t i = seconds + 1; i < seconds + TS_LENGTH - TS_SECONDS_DIGITS; i++)
        ts_us = ts_us * 10 + (i < length ? text[i] - '0' : 0);
    *ret_ts_us = ts_us;
    return 0;
}

// Two digits of a number below 100.
static void pair_print(uint32_t number, char *ret_text)
{
    ret_text[0] = (char)('0' + number / 10);
    ret_text[1] = (char)('0' + number % 10);
}

void ts_print(int64_t ts_us, char *ret_text)
{
    if (ts_us < 0)
        ts_us = 0;
    if (ts_us > ts_max_us)
        ts_us = ts_max_us;
    uint64_t seconds = (uint64_t)ts_us / 1000000;
    uint32_t micros = (uint32_t)((uint64_t)ts_us % 1000000);
    for (int i = TS_SECONDS_DIGITS - 2; i >= 0; i -= 2, seconds /= 100)
        pair_print((uint32_t)(seconds % 100), ret_text + i);
    ret_text[TS_SECONDS_DIGITS] = '.';
    for (int i = TS_LENGTH - 2; i > TS_SECONDS_DIGITS; i -= 2, micros /= 100)
        pair_print(micros % 100, ret_text + i);
    ret_text[TS_LENGTH] = '\0';
}

// Parses digits into a negative number, whose range is larger. False if they do not form an
// integer.
static bool digits_parse(const char *digits, size_t length, int64_t *ret_negative)
{
    int64_t number = 0;
    if (length == 0 || (digits[0] == '0' && length > 1))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_digit(digits[i]) || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digits[i] - '0', &number))
            return false;
    *ret_negative = number;
    return true;
}

int integer_parse(const char *text, size_t length, int64_t min, int64_t max, int64_t *ret_number)
{
    bool negative = length > 0 && text[0] == '-';
    int64_t number;
    if (!digits_parse(text + negative, length - negative, &number))
        return -ERROR_INVALID_ARGUMENTS;
    if (negative ? number == 0 : number == INT64_MIN)
        return -ERROR_INVALID_ARGUMENTS;
    if (!negative)
        number = -number;
    if (number < min || number > max)
        return -ERROR_INVALID_ARGUMENTS;
    *ret_number = number;
    return 0;
}
