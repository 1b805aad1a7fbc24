// SPDX-License-Identifier: Apache-2.0
// The effects of a channel's events: the hooks of all feeds.
#pragma once

extern const struct feed_hooks delivery_hooks;
