/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "load/address.h"
#include "load/datagram.h"
#include "sys/sched.h"

/* Answers datagrams at one address: echoes them, or looks one name up. Life of one: as of an origin of HTTP
 * (load/http-origin.h). */

struct datagram_origin_config {
        struct datagram_question question; /* of an echo empty */
        union address local;               /* with a port of 0 the kernel chooses */
        struct sched_request sched;
};

struct datagram_origin;

/* datagram_origin_new - allocate; what it counts lies in memory that children share */
int datagram_origin_new(const struct datagram_origin_config *config, struct datagram_origin **ret, struct err *err);
void datagram_origin_free(struct datagram_origin *o);

DEFINE_CLEANUP(struct datagram_origin *, datagram_origin_free)
#define _cleanup_datagram_origin_ _cleanup_(datagram_origin_free_cleanup)

/* datagram_origin_open - bind; what arrives is queued from now on. Return: 0 or a negative errno with the reason. */
int datagram_origin_open(struct datagram_origin *o, struct err *err);

/* datagram_origin_run - answer until *@stop is not 0, which is looked at each tenth of a second */
int datagram_origin_run(struct datagram_origin *o, const volatile int *stop, struct err *err);

/* datagram_origin_address - where it listens, once it is open; in another process, too */
const union address *datagram_origin_address(const struct datagram_origin *o);

struct datagram_origin_counts {
        uint64_t answered;
        uint64_t ignored; /* what is no question */
};

/* datagram_origin_count - so far */
void datagram_origin_count(const struct datagram_origin *o, struct datagram_origin_counts *ret);
