/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/vlan.h"

#include <errno.h>

#define ADDRESSES_LEN 12
#define TAGS_MAX      2

static bool is_tag_type(uint16_t ether_type)
{
        return ether_type == VLAN_ETHER_TYPE || ether_type == VLAN_SERVICE_TAG;
}

struct vlan_tag vlan_tag_of_tci(uint16_t tci)
{
        return (struct vlan_tag){
                .priority = (uint8_t)(tci >> 13),
                .is_drop_eligible = tci >> 12 & 1,
                .id = tci & 0xfff,
        };
}

uint16_t vlan_tci(const struct vlan_tag *tag)
{
        return (uint16_t)((tag->priority & 7) << 13 | tag->is_drop_eligible << 12 | (tag->id & 0xfff));
}

int vlan_parse(struct span frame, struct vlan_frame *ret)
{
        struct vlan_frame parsed = {0};
        size_t at = ADDRESSES_LEN;
        struct span field;

        for (;;) {
                struct vlan_tag tag;

                if (!span_sub(frame, at, sizeof(uint16_t), &field))
                        return -EBADMSG;
                parsed.ether_type = get_be16(field.data);
                if (!is_tag_type(parsed.ether_type))
                        break;
                if (parsed.n_tags == TAGS_MAX || !span_sub(frame, at, VLAN_TAG_LEN, &field))
                        return -EBADMSG;
                tag = vlan_tag_of_tci(get_be16(field.data + 2));
                if (parsed.n_tags == 0)
                        parsed.outer = tag;
                else
                        parsed.inner = tag;
                parsed.n_tags++;
                at += VLAN_TAG_LEN;
        }

        at += sizeof(uint16_t);
        parsed.payload = span_of(frame.data + at, frame.len - at);
        *ret = parsed;
        return 0;
}

int vlan_push(uint8_t *frame, size_t *len, size_t size, const struct vlan_tag *tag)
{
        if (*len < VLAN_ETHER_LEN)
                return -EBADMSG;
        if (size < VLAN_TAG_LEN || *len > size - VLAN_TAG_LEN)
                return -ENOSPC;

        memmove(frame + ADDRESSES_LEN + VLAN_TAG_LEN, frame + ADDRESSES_LEN, *len - ADDRESSES_LEN);
        put_be16(frame + ADDRESSES_LEN, VLAN_ETHER_TYPE);
        put_be16(frame + ADDRESSES_LEN + 2, vlan_tci(tag));
        *len += VLAN_TAG_LEN;
        return 0;
}
