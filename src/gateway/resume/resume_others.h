// SPDX-License-Identifier: Apache-2.0
// What of a backlog is no event of a channel.
#pragma once

struct behind;
struct resume;

void resume_state_ask(struct resume *resume, const struct behind *behind);
void resume_threads_ask(struct resume *resume, const struct behind *behind);
void resume_created_ask(struct resume *resume);
