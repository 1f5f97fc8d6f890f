/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"

static bool take_prefix(struct span *s, const char *prefix)
{
        size_t len = strlen(prefix);

        if (s->len < len || memcmp(s->data, prefix, len) != 0)
                return false;
        return span_sub(*s, len, s->len - len, s);
}

int channel_parse(struct span name, uint32_t *ret)
{
        bool is_pwm = take_prefix(&name, "pwm:");
        uint64_t index;

        if ((!is_pwm && !take_prefix(&name, "gpio:")) || number_parse_u64(name, &index) < 0)
                return -EINVAL;
        *ret = is_pwm ? channel_pwm(index) : channel_gpio(index);
        return 0;
}

char *channel_format(uint32_t channel, char buf[static 16])
{
        if (channel < CHANNEL_PWMS)
                snprintf(buf, 16, "pwm:%" PRIu32, channel);
        else if (channel < CHANNELS)
                snprintf(buf, 16, "gpio:%" PRIu32, channel - CHANNEL_PWMS);
        else
                snprintf(buf, 16, "none");
        return buf;
}
