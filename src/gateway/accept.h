// SPDX-License-Identifier: Apache-2.0
// Takes connections over from the acceptor.
#pragma once

struct gateway;
struct http_head;

// `head` is the request's; takes over `fd`.
void accept_connection(struct gateway *gateway, int fd, const struct http_head *head);
