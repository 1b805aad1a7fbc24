// SPDX-License-Identifier: Apache-2.0
// Keeps presence in Redis: the users with connections on this gateway.
#pragma once

struct gateway;
struct user;

void presence_enter(struct user *user, struct gateway *gateway); // its connections changed
// Its last connection ended; user_find() no longer finds it.
void presence_leave(const struct user *user, struct gateway *gateway);
void presence_report_offline(
    struct gateway *gateway);                   // reports offline users whose grace period is over
void presence_refresh(struct gateway *gateway); // renews entries in Redis before they expire
void presence_forget(struct gateway *gateway);  // Redis may have lost them: writes all again
void presence_free(struct gateway *gateway);
