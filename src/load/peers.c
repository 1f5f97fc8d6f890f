/* SPDX-License-Identifier: Apache-2.0 */
#include "load/peers.h"

#include "base/macro.h"

void peers_init(struct peers *peers, uint64_t key)
{
        memset(peers, 0, sizeof(*peers));
        peers->key = key;
}

/* One round of multiplication and folding for each word: enough to spread peers over the sets, and without the key
 * nobody can aim at one of them. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);

        return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(const struct peers *peers, const union address *address, uint16_t session)
{
        uint64_t hash = mix(peers->key, (uint64_t)session << 16 | address_port(address)), words[2];

        if (address->any.sa_family != AF_INET6)
                return mix(hash, address->v4.sin_addr.s_addr);
        memcpy(words, &address->v6.sin6_addr, sizeof(words));
        return mix(mix(hash, words[0]), words[1]);
}

uint32_t peers_count(struct peers *peers, const union address *address, uint16_t session, int64_t now_ns)
{
        struct peer *set = peers->sets[hash_of(peers, address, session) % PEERS_SETS], *oldest = &set[0];

        for (size_t i = 0; i < PEERS_WAYS; i++) {
                struct peer *peer = &set[i];

                if (peer->last_ns != 0 && peer->session == session && address_equal(&peer->address, address)) {
                        if (now_ns - peer->last_ns > PEERS_IDLE_NS)
                                peer->next_sequence = 0;
                        peer->last_ns = now_ns;
                        return peer->next_sequence++;
                }
                if (peer->last_ns < oldest->last_ns)
                        oldest = peer;
        }
        peers->n_evicted += oldest->last_ns != 0 && now_ns - oldest->last_ns <= PEERS_IDLE_NS;
        *oldest = (struct peer){.address = *address, .last_ns = now_ns, .next_sequence = 1, .session = session};
        return 0;
}
