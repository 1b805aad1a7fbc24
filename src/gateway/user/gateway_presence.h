// SPDX-License-Identifier: Apache-2.0
// Tells Redis who is connected here.
#pragma once

struct gateway;
struct user;

void presence_enter(struct user *user, struct gateway *gateway); // its connections changed
// Its last one ended, and it is not found any more.
void presence_leave(const struct user *user, struct gateway *gateway);
void presence_tend(struct gateway *gateway);    // users in `gone` whose time is over
void presence_refresh(struct gateway *gateway); // renews entries in Redis before they expire
void presence_forget(struct gateway *gateway);  // Redis may have lost its entries: tells all again
void presence_free(struct gateway *gateway);
