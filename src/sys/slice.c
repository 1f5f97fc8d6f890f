/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/slice.h"

#include <arpa/inet.h>

#include "bpf/slice-bpf.h"
#include "sys/bpf.h"
#include "sys/qdisc.h"
#include "wire/vlan.h"

#define COUNT_WORDS (sizeof(struct slice_count) / sizeof(uint64_t))

struct slice_filter {
        struct bpf_image *image;
};

void slice_rule_init(struct slice_rule *rule, uint16_t vlan)
{
        *rule = (struct slice_rule){.vlan = vlan};
}

/* The first @length_bits bits of word @word of an address, in network order. */
static uint32_t mask_word(unsigned length_bits, unsigned word)
{
        unsigned before = word * 32;

        if (length_bits <= before)
                return 0;
        return length_bits - before >= 32 ? UINT32_MAX : htonl(~(UINT32_MAX >> (length_bits - before)));
}

static void set_prefix(const struct ip_prefix *prefix, uint32_t *address, uint32_t *mask, unsigned n_words)
{
        memcpy(address, prefix->bytes, n_words * sizeof(*address));
        for (unsigned i = 0; i < n_words; i++) {
                mask[i] = mask_word(prefix->length_bits, i);
                address[i] &= mask[i];
        }
}

int slice_rule_allow(struct slice_rule *rule, const struct ip_prefix *source, const struct ip_prefix *destination)
{
        if (source->family != destination->family)
                return -EINVAL;
        if (source->family == AF_INET) {
                set_prefix(source, &rule->source4.address, &rule->source4.mask, 1);
                set_prefix(destination, &rule->destination4.address, &rule->destination4.mask, 1);
                rule->has_v4 = 1;
        } else {
                set_prefix(source, rule->source6.address, rule->source6.mask, 4);
                set_prefix(destination, rule->destination6.address, rule->destination6.mask, 4);
                rule->has_v6 = 1;
        }
        return 0;
}

static int check_config(const struct slice_config *config, struct err *err)
{
        if (config->n_leaving > SLICE_MAX || config->n_entering > SLICE_MAX)
                return err_set(err, ERR_BUG, EINVAL, "a link holds at most %d slices", SLICE_MAX);
        for (size_t i = 0; i < config->n_leaving; i++)
                if (config->leaving[i].vlan < 1 || config->leaving[i].vlan > VLAN_ID_MAX)
                        return err_set(err, ERR_BUG, EINVAL, "%u is no VLAN: 1 to %d are", config->leaving[i].vlan,
                                       VLAN_ID_MAX);
        for (size_t i = 0; i < config->n_entering; i++) {
                if (config->entering[i].vlan < 1 || config->entering[i].vlan > VLAN_ID_MAX)
                        return err_set(err, ERR_BUG, EINVAL, "%u is no VLAN: 1 to %d are", config->entering[i].vlan,
                                       VLAN_ID_MAX);
                for (size_t j = 0; j < i; j++)
                        if (config->entering[j].vlan == config->entering[i].vlan)
                                return err_set(err, ERR_BUG, EINVAL, "two slices of a link have the VLAN %u",
                                               config->entering[i].vlan);
        }
        return 0;
}

int slice_filter_attach(struct netlink *nl, int index, const struct slice_config *config, struct slice_filter **ret,
                        struct err *err)
{
        _cleanup_slice_filter_ struct slice_filter *filter = NULL;
        int r;

        r = check_config(config, err);
        if (r < 0)
                return r;
        filter = calloc(1, sizeof(*filter));
        if (!filter)
                return err_set_nomem(err);
        r = bpf_image_open(span_of(slice_bpf, sizeof(slice_bpf)), "slice", &filter->image, err);
        if (r == 0)
                r = bpf_image_set_constants(filter->image, config, sizeof(*config), err);
        if (r == 0)
                r = bpf_image_load(filter->image, err);
        if (r == 0)
                r = qdisc_add_clsact(nl, index, err);
        if (r == 0)
                r = bpf_image_attach(filter->image, "push", nl, index, BPF_LEAVING, 1, err);
        if (r == 0)
                r = bpf_image_attach(filter->image, "pop", nl, index, BPF_ENTERING, 1, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(filter);
        return 0;
}

void slice_filter_free(struct slice_filter *filter)
{
        if (!filter)
                return;
        bpf_image_free(filter->image);
        free(filter);
}

int slice_filter_read(const struct slice_filter *filter, struct slice_counters *ret, struct err *err)
{
        struct slice_counters c;
        int r;

        r = bpf_image_sum_counters(filter->image, "slices", 0, SLICE_MAX, COUNT_WORDS, (uint64_t *)c.leaving, err);
        if (r == 0)
                r = bpf_image_sum_counters(filter->image, "slices", SLICE_MAX, SLICE_MAX, COUNT_WORDS,
                                           (uint64_t *)c.entering, err);
        if (r == 0)
                r = bpf_image_sum_counters(filter->image, "drops", 0, SLICE_DROP_MAX, COUNT_WORDS, (uint64_t *)c.drops,
                                           err);
        if (r < 0)
                return r;
        *ret = c;
        return 0;
}

const char *slice_drop_name(enum slice_drop reason)
{
        static const char *const names[] = {
                [SLICE_DROP_NO_SLICE] = "no-slice",
                [SLICE_DROP_NOT_IP] = "not-ip",
                [SLICE_DROP_PUSH] = "push",
                [SLICE_DROP_UNTAGGED] = "untagged",
                [SLICE_DROP_UNKNOWN_TAG] = "unknown-tag",
                [SLICE_DROP_DOUBLE_TAG] = "double-tag",
                [SLICE_DROP_ADDRESS] = "address",
                [SLICE_DROP_POP] = "pop",
        };

        return (size_t)reason < ARRAY_SIZE(names) ? names[reason] : "unknown";
}
