// SPDX-License-Identifier: Apache-2.0
// Reads the requests of a connection, one after another, and sees to it that each is answered.
#pragma once

struct http_connection;

// Starts reading. May free the connection.
void http_reader_start(struct http_connection *connection);
