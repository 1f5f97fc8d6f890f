/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex/pipeline-internal.h"

/* The PWM channels of the two motors. */
#define MOTOR_LEFT  1
#define MOTOR_RIGHT 2

void pipeline_drive_safe_set(struct pipeline *p)
{
        int64_t now_ns = pipeline_now_ns(p);

        for (uint32_t channel = 0; channel < CHANNELS; channel++) {
                int32_t value;

                if (monitor_safe_value(&p->monitor, channel, &value) &&
                    p->output->ops->write(p->output, channel, value, now_ns) < 0)
                        p->output_errors++;
        }
}

void pipeline_latch(struct pipeline *p)
{
        monitor_stop(&p->monitor, AUTHORITY_SAFETY, PIPELINE_SOURCE_HOST, pipeline_now_ns(p));
        pipeline_drive_safe_set(p);
}

void pipeline_serve_stop(struct pipeline *p)
{
        if (atomic_load_explicit(&p->is_stop_wanted, memory_order_acquire) &&
            atomic_exchange(&p->is_stop_wanted, false))
                pipeline_latch(p);
}

/* An output that fails leaves an actuator where nobody knows: everything else is driven to safety. */
static int write_output(struct point *point, uint32_t channel, int32_t value, int64_t now_ns)
{
        struct pipeline *p = point->pipeline;
        int r = p->output->ops->write(p->output, channel, value, now_ns);

        if (r < 0) {
                p->output_errors++;
                pipeline_latch(p);
                return -EIO;
        }
        if (p->observe && point->first_output_ns == 0)
                point->first_output_ns = pipeline_now_ns(p);
        return 0;
}

static struct decision decide(struct point *point, uint32_t channel, int64_t value, int64_t now_ns)
{
        struct decision d = monitor_decide(&point->pipeline->monitor, channel, value, point->attachment.authority,
                                           point->number, now_ns);

        point->counts.answers[d.answer]++;
        return d;
}

/* Return: the answer as a number, or a negative errno. */
static int64_t request(struct point *point, uint32_t channel, int64_t value, int64_t now_ns)
{
        struct decision d = decide(point, channel, value, now_ns);
        int r;

        if (d.answer == ANSWER_REJECT)
                return d.cause == CAUSE_UNKNOWN ? -ENODEV : -EPERM;
        r = write_output(point, channel, d.value, now_ns);
        return r < 0 ? r : (int64_t)d.answer;
}

/* Both or none: a rover with one motor running turns. */
static int64_t request_pair(struct point *point, int64_t left, int64_t right, int64_t now_ns)
{
        const struct monitor *m = &point->pipeline->monitor;
        uint32_t channels[] = {channel_pwm(MOTOR_LEFT), channel_pwm(MOTOR_RIGHT)};
        int64_t first, second;

        if (!monitor_may_ask(m, channels[0], point->attachment.authority))
                return request(point, channels[0], left, now_ns);
        if (!monitor_may_ask(m, channels[1], point->attachment.authority))
                return request(point, channels[1], right, now_ns);
        first = request(point, channels[0], left, now_ns);
        if (first < 0)
                return first;
        second = request(point, channels[1], right, now_ns);
        return second < 0 || second > first ? second : first;
}

static int64_t read_level(struct pipeline *p, uint32_t channel)
{
        int32_t safe;

        return monitor_safe_value(&p->monitor, channel, &safe) ? p->output->ops->read(p->output, channel) : -ENODEV;
}

int64_t pipeline_actuate(void *userdata, enum helper_id helper, const uint64_t args[static 2])
{
        struct point *point = userdata;
        struct pipeline *p = point->pipeline;

        pipeline_serve_stop(p);
        switch (helper) {
        case HELPER_GPIO_SET:
                return request(point, channel_gpio(args[0]), (int64_t)args[1], pipeline_now_ns(p));
        case HELPER_PWM_WRITE:
                return request(point, channel_pwm(args[0]), (int64_t)args[1], pipeline_now_ns(p));
        case HELPER_MOTOR_PAIR:
                return request_pair(point, (int64_t)args[0], (int64_t)args[1], pipeline_now_ns(p));
        case HELPER_GPIO_GET:
                return read_level(p, channel_gpio(args[0]));
        default:
                return -ENOSYS;
        }
}
