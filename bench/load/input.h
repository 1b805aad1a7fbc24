// SPDX-License-Identifier: Apache-2.0
// What the set-up step made, read from a JSON file:
// {"url":"http://127.0.0.1:8080","users":[{"id","token"}],"groups":{"small":[{"id":"C…","members":[0,1,…]}]}}
// (members are places in users).
#ifndef TIDINGS_BENCH_INPUT_H
#define TIDINGS_BENCH_INPUT_H

#include <stddef.h>

struct input_user {
    char *id;
    char *token;
};

struct input_channel {
    char *id;
    size_t *members;
    size_t member_count;
};

struct input {
    char *url;
    char *host; // host:port of url
    struct input_user *users;
    size_t user_count;
    struct input_channel *channels; // of the group that was asked for
    size_t channel_count;
};

// Reads the file's users and one group of channels (`group` NULL: none); dies where it is not as
// above.
void input_read(struct input *ret_input, const char *path, const char *group);
void input_done(struct input *input);

#endif
