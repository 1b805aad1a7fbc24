// SPDX-License-Identifier: Apache-2.0
// What follows the events of channels.
#pragma once

extern const struct feed_hooks delivery_hooks;
