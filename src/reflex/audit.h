/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What a monitor did, newest last, in a ring that overwrites its oldest records: the monitor never waits for a reader.
 */

#define AUDIT_RECORDS 128 /* a power of two */

/* Who asks, in ascending order. */
enum authority { AUTHORITY_LEARNED, AUTHORITY_MISSION, AUTHORITY_OPERATOR, AUTHORITY_SAFETY, AUTHORITIES };

enum answer { ANSWER_ALLOW, ANSWER_CLAMP, ANSWER_SAFE, ANSWER_REJECT, ANSWERS };

enum cause { CAUSE_NONE, CAUSE_UNKNOWN, CAUSE_AUTHORITY, CAUSE_ESTOP, CAUSE_HOLD, CAUSE_RANGE, CAUSE_SLEW, CAUSES };

enum audit_event { AUDIT_DECIDE, AUDIT_STOP, AUDIT_RELEASE, AUDIT_HOLD, AUDIT_UNHOLD, AUDIT_EVENTS };

struct audit_record {
        int64_t now_ns;
        int64_t asked;
        uint32_t channel; /* CHANNEL_NONE for a stop and its release, and where there is no such channel */
        uint32_t source;
        uint32_t epoch;
        int32_t applied;   /* undefined where rejected */
        uint8_t event;     /* enum audit_event */
        uint8_t authority; /* enum authority */
        uint8_t answer;    /* enum answer; of a release and an unhold: allow or reject */
        uint8_t cause;     /* enum cause */
};

struct audit {
        uint64_t n_written, n_read; /* records; what is dropped counts as read */
        uint64_t n_dropped;         /* overwritten before they were read, as far as audit_next() has seen it */
        struct audit_record records[AUDIT_RECORDS];
};

/* audit_slot - where the next record goes, to be filled in by the caller at once */
static inline struct audit_record *audit_slot(struct audit *a)
{
        return &a->records[a->n_written++ % AUDIT_RECORDS];
}

/* audit_next - take the oldest record that is left. Return: 1 with @ret; 0 where all are read. */
int audit_next(struct audit *a, struct audit_record *ret);

/* audit_dropped - how many records were overwritten before they were read */
uint64_t audit_dropped(const struct audit *a);

/* authority_name, answer_name, cause_name, audit_event_name - stable names in lower case */
const char *authority_name(enum authority authority);
const char *answer_name(enum answer answer);
const char *cause_name(enum cause cause);
const char *audit_event_name(enum audit_event event);

/* cause_meaning - one sentence for a person */
const char *cause_meaning(enum cause cause);

/* authority_choices - the names of authorities, ended by NULL */
extern const char *const authority_choices[];
