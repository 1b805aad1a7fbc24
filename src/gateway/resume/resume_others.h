// SPDX-License-Identifier: Apache-2.0
// The parts of a backlog that are not channel events: read states, threads, new channels. Each
// function requests the next part.
#pragma once

struct behind;
struct resume;

void resume_state_ask(struct resume *resume, const struct behind *behind);
void resume_threads_ask(struct resume *resume, const struct behind *behind);
void resume_created_ask(struct resume *resume);
