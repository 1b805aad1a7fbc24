// SPDX-License-Identifier: Apache-2.0
// The subcommands of tidings-bench: each runs one measurement and prints one line of JSON.
#ifndef TIDINGS_BENCH_COMMANDS_H
#define TIDINGS_BENCH_COMMANDS_H

#include "../common/tool.h"

#define COMMAND_ARGS_LOAD "data group clients seconds warm-ms"

void command_posts(const struct tool_args *args);
void command_info(const struct tool_args *args);
void command_history(const struct tool_args *args);
void command_reconnect(const struct tool_args *args);
void command_sync(const struct tool_args *args);
void command_marks(const struct tool_args *args);
void command_delivery(const struct tool_args *args);
void command_frames(const struct tool_args *args);
void command_overload(const struct tool_args *args);
void command_listen(const struct tool_args *args);
void command_idle(const struct tool_args *args);
void command_pauses(const struct tool_args *args);
void command_disk(const struct tool_args *args);

#endif
