/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* What a client asks by one datagram, and what is the right answer: an echo, the same bytes back; or a look-up, the
 * address of a name by DNS. Both ends make and check these here. */

#define DATAGRAM_BYTES_MIN 16
#define DATAGRAM_BYTES_MAX 65507

struct datagram_question {
        const char *name;       /* to look up; NULL: an echo; borrowed */
        struct in_addr address; /* that the name has */
        size_t bytes;           /* of an echo: DATAGRAM_BYTES_MIN to DATAGRAM_BYTES_MAX */
};

/* How an answer is. */
enum datagram_answer {
        DATAGRAM_RIGHT,
        DATAGRAM_STALE, /* to an earlier question, or to none of ours: the right one may still come */
        DATAGRAM_WRONG,
};

/* datagram_ask - write question number @i
 * @buf: DATAGRAM_BYTES_MAX; of a look-up 512
 *
 * Return: its length; -EINVAL where the name is none.
 */
int datagram_ask(const struct datagram_question *question, uint64_t i, uint8_t *buf);

/* datagram_check - compare an answer to question number @i with what it has to be */
enum datagram_answer datagram_check(const struct datagram_question *question, uint64_t i, struct span answer);

/* datagram_reply - answer what arrived, as an origin does
 * @question: what the origin knows; of an echo nothing
 * @buf:      DATAGRAM_BYTES_MAX
 *
 * Return: the length of the answer; 0 where there is none, for it is no question.
 */
size_t datagram_reply(const struct datagram_question *question, struct span bytes, uint8_t *buf);
