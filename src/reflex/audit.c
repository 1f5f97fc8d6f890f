/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/audit.h"

#include <stddef.h>

const char *const authority_choices[] = {"learned", "mission", "operator", "safety", NULL};

static uint64_t overwritten(const struct audit *a)
{
        uint64_t unread = a->n_written - a->n_read;

        return unread > AUDIT_RECORDS ? unread - AUDIT_RECORDS : 0;
}

int audit_next(struct audit *a, struct audit_record *ret)
{
        uint64_t lost = overwritten(a);

        a->n_dropped += lost;
        a->n_read += lost;
        if (a->n_read == a->n_written)
                return 0;
        *ret = a->records[a->n_read++ % AUDIT_RECORDS];
        return 1;
}

uint64_t audit_dropped(const struct audit *a)
{
        return a->n_dropped + overwritten(a);
}

const char *authority_name(enum authority authority)
{
        return (unsigned)authority < AUTHORITIES ? authority_choices[authority] : "unknown";
}

const char *answer_name(enum answer answer)
{
        static const char *const names[ANSWERS] = {"allow", "clamp", "safe", "reject"};

        return (unsigned)answer < ANSWERS ? names[answer] : "unknown";
}

const char *cause_name(enum cause cause)
{
        static const char *const names[CAUSES] = {"none", "unknown-channel", "authority", "estop",
                                                  "hold", "range",           "slew"};

        return (unsigned)cause < CAUSES ? names[cause] : "unknown";
}

const char *audit_event_name(enum audit_event event)
{
        static const char *const names[AUDIT_EVENTS] = {"decide", "stop", "release", "hold", "unhold"};

        return (unsigned)event < AUDIT_EVENTS ? names[event] : "unknown";
}

const char *cause_meaning(enum cause cause)
{
        static const char *const meanings[CAUSES] = {
                [CAUSE_NONE] = "within the channel's range and slew",
                [CAUSE_UNKNOWN] = "there is no such channel",
                [CAUSE_AUTHORITY] = "the channel asks for a higher authority",
                [CAUSE_ESTOP] = "an emergency stop is latched until an operator releases it",
                [CAUSE_HOLD] = "the channel is held at its safe value",
                [CAUSE_RANGE] = "outside the channel's range: the nearest value of the range is applied",
                [CAUSE_SLEW] = "further than the channel may move now: the nearest value within a step is applied",
        };

        return (unsigned)cause < CAUSES ? meanings[cause] : "unknown";
}
