// SPDX-License-Identifier: Apache-2.0
// Keeps a gateway until the last question that it asked is answered.
#include "core.h"

#include <stdlib.h>

void gateway_ask(struct gateway *gateway)
{
    gateway->asked++;
}

bool gateway_answer(struct gateway *gateway)
{
    gateway->asked--;
    if (!gateway->ended)
        return true;
    if (gateway->asked == 0)
        free(gateway);
    return false;
}
