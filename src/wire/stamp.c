/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stamp.h"

#include <errno.h>

#include "base/clock.h"
#include "base/macro.h"

/* Seconds from 1900-01-01 to 1970-01-01 (RFC 5905, figure 4). */
#define NTP_UNIX_OFFSET INT64_C(2208988800)

#define ERROR_SYNCHRONISED 0x8000
#define ERROR_PTP          0x4000
#define ERROR_SCALE_MAX    63

/* A reply's two stamps of the reflector lie closer together than this. */
#define RESIDENCE_MAX_S 3600

/* Octets of a packet; the first three stand in both directions. */
enum {
        AT_SEQUENCE = 0,
        AT_TIMESTAMP = 4,
        AT_ERROR = 12,
        AT_SESSION = 14,
        AT_RECEIVE_TIMESTAMP = 16,
        AT_SENDER_SEQUENCE = 24,
        AT_SENDER_TIMESTAMP = 28,
        AT_SENDER_ERROR = 36,
        AT_RESERVED_1 = 38, /* two octets */
        AT_SENDER_TTL = 40,
        AT_RESERVED_2 = 41, /* three octets */
};

const char *stamp_fault_name(enum stamp_fault fault)
{
        static const char *const names[N_STAMP_FAULTS] = {
                [STAMP_FAULT_NONE] = "none",
                [STAMP_FAULT_SHORT] = "short",
                [STAMP_FAULT_MULTIPLIER] = "multiplier",
                [STAMP_FAULT_REPLY] = "reply",
                [STAMP_FAULT_TIMESTAMP] = "timestamp",
        };

        return (size_t)fault < ARRAY_SIZE(names) ? names[fault] : "unknown";
}

json_t *stamp_faults_json(const uint64_t counts[static N_STAMP_FAULTS])
{
        _cleanup_json_ json_t *object = json_object();

        for (int i = STAMP_FAULT_NONE + 1; i < N_STAMP_FAULTS; i++)
                if (json_object_set_new(object, stamp_fault_name((enum stamp_fault)i),
                                        json_integer((json_int_t)counts[i])) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

static uint16_t error_encode(const struct stamp_error *error)
{
        uint16_t flags =
                (error->is_synchronised ? ERROR_SYNCHRONISED : 0) | (error->format == STAMP_FORMAT_PTP ? ERROR_PTP : 0);

        return (uint16_t)(flags | (error->scale & ERROR_SCALE_MAX) << 8 | MAX(error->multiplier, (uint8_t)1));
}

static struct stamp_error error_decode(uint16_t field)
{
        return (struct stamp_error){
                .is_synchronised = field & ERROR_SYNCHRONISED,
                .format = field & ERROR_PTP ? STAMP_FORMAT_PTP : STAMP_FORMAT_NTP,
                .scale = field >> 8 & ERROR_SCALE_MAX,
                .multiplier = (uint8_t)field,
        };
}

/* PTP carries nanoseconds in 32 bits, of which not all values are a time. */
static bool is_time(enum stamp_format format, uint64_t timestamp)
{
        return format != STAMP_FORMAT_PTP || (uint32_t)timestamp < NSEC_PER_SEC;
}

void stamp_request_put(const struct stamp_request *request, uint8_t buf[static STAMP_LEN])
{
        memset(buf, 0, STAMP_LEN);
        put_be32(buf + AT_SEQUENCE, request->sequence);
        put_be64(buf + AT_TIMESTAMP, request->timestamp);
        put_be16(buf + AT_ERROR, error_encode(&request->error));
        put_be16(buf + AT_SESSION, request->session);
}

/* Whether only a reflector can have written this packet: it has a second timestamp close to the first, and zeros where
 * a reflector puts zeros. Zero padding fails the first test, random padding both (one in 2^50 passes). */
static bool is_reply(const uint8_t *p)
{
        uint32_t sent_s = get_be32(p + AT_TIMESTAMP), received_s = get_be32(p + AT_RECEIVE_TIMESTAMP);

        return get_be64(p + AT_RECEIVE_TIMESTAMP) != 0 &&
               sent_s - received_s + RESIDENCE_MAX_S <= 2 * RESIDENCE_MAX_S && get_be16(p + AT_RESERVED_1) == 0 &&
               get_be16(p + AT_RESERVED_2) == 0 && p[AT_RESERVED_2 + 2] == 0;
}

enum stamp_fault stamp_request_parse(struct span packet, struct stamp_request *ret)
{
        const uint8_t *p = packet.data;
        struct stamp_error error;

        if (packet.len < STAMP_LEN)
                return STAMP_FAULT_SHORT;
        error = error_decode(get_be16(p + AT_ERROR));
        if (error.multiplier == 0)
                return STAMP_FAULT_MULTIPLIER;
        if (!is_time(error.format, get_be64(p + AT_TIMESTAMP)))
                return STAMP_FAULT_TIMESTAMP;
        if (is_reply(p))
                return STAMP_FAULT_REPLY;

        *ret = (struct stamp_request){
                .sequence = get_be32(p + AT_SEQUENCE),
                .timestamp = get_be64(p + AT_TIMESTAMP),
                .error = error,
                .session = get_be16(p + AT_SESSION),
        };
        return STAMP_FAULT_NONE;
}

void stamp_reply_put(const struct stamp_reply *reply, uint8_t buf[static STAMP_LEN])
{
        memset(buf, 0, STAMP_LEN);
        put_be32(buf + AT_SEQUENCE, reply->sequence);
        put_be64(buf + AT_TIMESTAMP, reply->timestamp);
        put_be16(buf + AT_ERROR, error_encode(&reply->error));
        put_be16(buf + AT_SESSION, reply->session);
        put_be64(buf + AT_RECEIVE_TIMESTAMP, reply->receive_timestamp);
        put_be32(buf + AT_SENDER_SEQUENCE, reply->sender_sequence);
        put_be64(buf + AT_SENDER_TIMESTAMP, reply->sender_timestamp);
        put_be16(buf + AT_SENDER_ERROR, error_encode(&reply->sender_error));
        buf[AT_SENDER_TTL] = reply->sender_ttl;
}

enum stamp_fault stamp_reply_parse(struct span packet, struct stamp_reply *ret)
{
        const uint8_t *p = packet.data;
        struct stamp_error error;

        if (packet.len < STAMP_LEN)
                return STAMP_FAULT_SHORT;
        error = error_decode(get_be16(p + AT_ERROR));
        if (error.multiplier == 0)
                return STAMP_FAULT_MULTIPLIER;
        if (!is_time(error.format, get_be64(p + AT_TIMESTAMP)) ||
            !is_time(error.format, get_be64(p + AT_RECEIVE_TIMESTAMP)))
                return STAMP_FAULT_TIMESTAMP;

        *ret = (struct stamp_reply){
                .sequence = get_be32(p + AT_SEQUENCE),
                .timestamp = get_be64(p + AT_TIMESTAMP),
                .error = error,
                .session = get_be16(p + AT_SESSION),
                .receive_timestamp = get_be64(p + AT_RECEIVE_TIMESTAMP),
                .sender_sequence = get_be32(p + AT_SENDER_SEQUENCE),
                .sender_timestamp = get_be64(p + AT_SENDER_TIMESTAMP),
                .sender_error = error_decode(get_be16(p + AT_SENDER_ERROR)),
                .sender_ttl = p[AT_SENDER_TTL],
        };
        return STAMP_FAULT_NONE;
}

/* Seconds rounded down and the rest, also before 1970. */
static void split_ns(int64_t ns, int64_t *ret_s, uint32_t *ret_ns)
{
        int64_t s = ns / NSEC_PER_SEC, rest = ns % NSEC_PER_SEC;

        if (rest < 0) {
                s--;
                rest += NSEC_PER_SEC;
        }
        *ret_s = s;
        *ret_ns = (uint32_t)rest;
}

uint64_t stamp_time_encode(enum stamp_format format, int64_t unix_ns)
{
        int64_t s;
        uint32_t ns;

        split_ns(unix_ns, &s, &ns);
        if (format == STAMP_FORMAT_PTP)
                return (uint64_t)s << 32 | ns;
        return (uint64_t)(s + NTP_UNIX_OFFSET) << 32 | (((uint64_t)ns << 32) + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
}

int stamp_time_decode(enum stamp_format format, uint64_t timestamp, int64_t near_unix_ns, int64_t *ret)
{
        uint32_t near_ns, fraction = (uint32_t)timestamp;
        int64_t offset_s = format == STAMP_FORMAT_NTP ? NTP_UNIX_OFFSET : 0, near_s, ns;
        int32_t distance_s;

        if (timestamp == 0)
                return -ENODATA;
        if (!is_time(format, timestamp))
                return -ERANGE;

        split_ns(near_unix_ns, &near_s, &near_ns);
        distance_s = (int32_t)((uint32_t)(timestamp >> 32) - (uint32_t)(near_s + offset_s));
        ns = fraction;
        if (format == STAMP_FORMAT_NTP)
                ns = (int64_t)(((uint64_t)fraction * NSEC_PER_SEC + (UINT64_C(1) << 31)) >> 32);
        *ret = (near_s + distance_s) * NSEC_PER_SEC + ns;
        return 0;
}

struct stamp_error stamp_error_of_ns(bool is_synchronised, enum stamp_format format, uint64_t error_ns)
{
        unsigned __int128 units = ((unsigned __int128)error_ns << 32) / NSEC_PER_SEC;
        uint8_t scale = 0;

        /* Rounded up at each step: an estimate may be too large, never too small. */
        if (units * NSEC_PER_SEC < (unsigned __int128)error_ns << 32)
                units++;
        while (units > UINT8_MAX) {
                units = (units + 1) >> 1;
                scale++;
        }
        return (struct stamp_error){
                .is_synchronised = is_synchronised,
                .format = format,
                .scale = scale,
                .multiplier = MAX((uint8_t)units, (uint8_t)1),
        };
}

uint64_t stamp_error_ns(const struct stamp_error *error)
{
        unsigned __int128 units = (unsigned __int128)error->multiplier << error->scale;
        unsigned __int128 ns = (units * NSEC_PER_SEC + UINT32_MAX) >> 32;

        return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t stamp_sequence_unwrap(uint64_t near, uint32_t sequence)
{
        int32_t distance = (int32_t)(sequence - (uint32_t)near);

        if (distance < 0 && (uint64_t) - (int64_t)distance > near)
                return near + (uint64_t)distance + (UINT64_C(1) << 32);
        return near + (uint64_t)(int64_t)distance;
}
