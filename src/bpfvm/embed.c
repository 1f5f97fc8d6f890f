/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/embed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

#define TRACE_MAX 512 /* bytes of a line, as in the kernel */

/* A conversion of a trace format behind its "%": l and ll, then one of d, i, u, x. Returns its length, 0 for others. */
static size_t trace_conversion(const char *format, size_t len, uint64_t arg, char *buf, size_t size)
{
        size_t i = 0;
        bool is_wide;

        while (i < len && format[i] == 'l' && i < 2)
                i++;
        is_wide = i > 0;
        if (i == len)
                return 0;
        switch (format[i]) {
        case 'd':
        case 'i':
                snprintf(buf, size, "%" PRIi64, is_wide ? (int64_t)arg : (int64_t)(int32_t)arg);
                return i + 1;
        case 'u':
                snprintf(buf, size, "%" PRIu64, is_wide ? arg : (uint64_t)(uint32_t)arg);
                return i + 1;
        case 'x':
                snprintf(buf, size, "%" PRIx64, is_wide ? arg : (uint64_t)(uint32_t)arg);
                return i + 1;
        default:
                return 0;
        }
}

/* Format up to the first NUL of @len bytes; control characters of the program's text become "?". */
static int64_t trace(const struct embed *embed, const char *format, size_t len, const uint64_t *args)
{
        char line[TRACE_MAX];
        size_t used = 0;
        unsigned n_args = 0;

        len = strnlen(format, len);
        for (size_t i = 0; i < len && used < sizeof(line) - 1; i++) {
                char number[32];
                size_t taken;

                if (format[i] != '%' || (i + 1 < len && format[i + 1] == '%')) {
                        line[used++] = (unsigned char)format[i] < 0x20 && format[i] != '\n' ? '?' : format[i];
                        i += format[i] == '%';
                        continue;
                }
                if (n_args == 3)
                        return -EINVAL;
                taken = trace_conversion(format + i + 1, len - i - 1, args[n_args++], number, sizeof(number));
                if (taken == 0)
                        return -EINVAL;
                i += taken;
                for (size_t k = 0; number[k] && used < sizeof(line) - 1; k++)
                        line[used++] = number[k];
        }
        line[used] = 0;
        if (embed->trace)
                embed->trace(embed->userdata, line, used);
        return (int64_t)used;
}

/* Bits of the clock, spread: for programs that only want to differ from run to run. */
static uint32_t random_u32(void)
{
        return (uint32_t)((uint64_t)clock_now_ns(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static uint64_t call_map(struct store *store, uint64_t id, const uint64_t *args)
{
        uint32_t map = store_find_handle(store, args[0]);
        const void *memory = (const void *)(uintptr_t)args[1];

        switch (id) {
        case HELPER_MAP_LOOKUP:
                return (uintptr_t)store_lookup(store, map, memory);
        case HELPER_MAP_UPDATE:
                return (uint64_t)(int64_t)store_update(store, map, memory, (const void *)(uintptr_t)args[2], args[3]);
        case HELPER_MAP_DELETE:
                return (uint64_t)(int64_t)store_delete(store, map, memory);
        default: /* HELPER_RING_OUTPUT; its flags only say whom to wake */
                return (uint64_t)(int64_t)store_ring_output(store, map, memory, args[2]);
        }
}

uint64_t embed_call(const struct embed *embed, struct store *store, uint64_t id,
                    const uint64_t args[static HELPER_ARGS])
{
        switch (id) {
        case HELPER_MAP_LOOKUP:
        case HELPER_MAP_UPDATE:
        case HELPER_MAP_DELETE:
        case HELPER_RING_OUTPUT:
                return call_map(store, id, args);
        case HELPER_KTIME_NS:
                return embed->time_ns ? embed->time_ns(embed->userdata) : (uint64_t)clock_now_ns(CLOCK_MONOTONIC);
        case HELPER_RANDOM_U32:
                return embed->random_u32 ? embed->random_u32(embed->userdata) : random_u32();
        case HELPER_TRACE:
                return (uint64_t)trace(embed, (const char *)(uintptr_t)args[0], args[1], args + 2);
        case HELPER_GPIO_SET:
        case HELPER_GPIO_GET:
        case HELPER_PWM_WRITE:
        case HELPER_MOTOR_PAIR:
                return embed->actuate ? (uint64_t)embed->actuate(embed->userdata, (enum helper_id)id, args)
                                      : (uint64_t)(int64_t)-ENOSYS;
        default:
                return (uint64_t)(int64_t)-ENOSYS;
        }
}
