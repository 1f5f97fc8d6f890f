/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include <pthread.h>

#include "base/rng.h"
#include "bpfvm/store.h"

static struct store *make(const struct map_def *def)
{
        struct store *store = NULL;
        struct fault fault;

        assert_int_equal(map_check(def, &fault), 0);
        assert_int_equal(store_new(def, 1, &store, NULL), 0);
        return store;
}

static void test_array(void **state)
{
        const struct map_def def = {.name = "a",
                                    .kind = MAP_ARRAY,
                                    .key_size = 4,
                                    .value_size = 5,
                                    .max_entries = 3,
                                    .initial = span_of("\1\2\3\4\5", 5)};
        _cleanup_store_ struct store *store = make(&def);
        uint32_t key = 0;
        uint8_t value[5] = {9, 9, 9, 9, 9};

        assert_memory_equal(store_lookup(store, 0, &key), "\1\2\3\4\5", 5);
        key = 2;
        assert_memory_equal(store_lookup(store, 0, &key), "\0\0\0\0\0", 5);
        assert_int_equal(store_update(store, 0, &key, value, STORE_ANY), 0);
        assert_memory_equal(store_lookup(store, 0, &key), value, 5);
        assert_int_equal(store_update(store, 0, &key, value, STORE_EXISTING), 0);
        assert_int_equal(store_update(store, 0, &key, value, STORE_NEW), -EEXIST);
        assert_int_equal(store_update(store, 0, &key, value, 3), -EINVAL);
        assert_int_equal(store_delete(store, 0, &key), -EINVAL);
        key = 3;
        assert_null(store_lookup(store, 0, &key));
        assert_int_equal(store_update(store, 0, &key, value, STORE_ANY), -E2BIG);
        store_clear(store);
        key = 0;
        assert_memory_equal(store_lookup(store, 0, &key), "\1\2\3\4\5", 5);
        key = 2;
        assert_memory_equal(store_lookup(store, 0, &key), "\0\0\0\0\0", 5);
}

/* Against a table of 64 keys that is kept beside it. */
static void test_hash_against_a_table(void **state)
{
        const struct map_def def = {.name = "h", .kind = MAP_HASH, .key_size = 6, .value_size = 8, .max_entries = 20};
        _cleanup_store_ struct store *store = make(&def);
        bool there[64] = {0};
        uint64_t values[64] = {0};
        unsigned n = 0;
        struct rng rng;

        rng_seed(&rng, 5);
        for (unsigned i = 0; i < 20000; i++) {
                uint8_t key[6] = {0xaa, 0, 0, 0, 0, (uint8_t)rng_below(&rng, 64)};
                unsigned k = key[5];
                uint64_t value = rng_next(&rng), flags = rng_below(&rng, 3);
                const uint8_t *found = store_lookup(store, 0, key);
                int want;

                assert_int_equal(found != NULL, there[k]);
                if (found)
                        assert_memory_equal(found, &values[k], 8);
                if (rng_below(&rng, 2)) {
                        assert_int_equal(store_delete(store, 0, key), there[k] ? 0 : -ENOENT);
                        n -= there[k];
                        there[k] = false;
                        continue;
                }
                want = there[k] ? (flags == STORE_NEW ? -EEXIST : 0)
                                : (flags == STORE_EXISTING ? -ENOENT
                                   : n == 20               ? -E2BIG
                                                           : 0);
                assert_int_equal(store_update(store, 0, key, &value, flags), want);
                if (want == 0) {
                        n += !there[k];
                        there[k] = true;
                        values[k] = value;
                }
        }
}

/* The address that a program holds stays good when its key goes. */
static void test_hash_values_stay_where_they_are(void **state)
{
        const struct map_def def = {.name = "h", .kind = MAP_HASH, .key_size = 1, .value_size = 4, .max_entries = 2};
        _cleanup_store_ struct store *store = make(&def);
        uint32_t value = 7;
        uint8_t *held;

        assert_int_equal(store_update(store, 0, "a", &value, STORE_ANY), 0);
        held = store_lookup(store, 0, "a");
        assert_int_equal(store_update(store, 0, "b", &value, STORE_ANY), 0);
        assert_int_equal(store_update(store, 0, "c", &value, STORE_ANY), -E2BIG);
        assert_ptr_equal(store_lookup(store, 0, "a"), held);
        assert_int_equal(store_delete(store, 0, "a"), 0);
        assert_int_equal(*held, 7);
        assert_int_equal(store_update(store, 0, "c", held, STORE_ANY), 0);
        assert_int_equal(*store_lookup(store, 0, "c"), 7);
        store_clear(store);
        assert_null(store_lookup(store, 0, "b"));
        assert_null(store_lookup(store, 0, "c"));
}

static void test_ring(void **state)
{
        const struct map_def def = {.name = "r", .kind = MAP_RING, .max_entries = 4096};
        _cleanup_store_ struct store *store = make(&def);
        static const uint8_t bytes[4096] = {1, 2, 3};
        struct span record;
        unsigned n = 0;

        assert_int_equal(store_ring_next(store, 0, &record), 0);
        assert_int_equal(store_ring_output(store, 0, bytes, 2041), -E2BIG);
        assert_int_equal(store_ring_output(store, 0, bytes, 0), 0);
        assert_int_equal(store_ring_output(store, 0, bytes, 3), 0);
        assert_int_equal(store_ring_next(store, 0, &record), 1);
        assert_int_equal(record.len, 0);
        store_ring_release(store, 0);
        assert_int_equal(store_ring_next(store, 0, &record), 1);
        assert_int_equal(record.len, 3);
        assert_memory_equal(record.data, "\1\2\3", 3);
        store_ring_release(store, 0);

        while (store_ring_output(store, 0, bytes, 92) == 0)
                n++; /* each takes 8 + 96 bytes, from byte 24 on; the ring's end is left out */
        assert_int_equal(n, 4096 / 104);
        assert_int_equal(store_ring_output(store, 0, bytes, 92), -EAGAIN);
        while (store_ring_next(store, 0, &record) == 1) {
                assert_int_equal(record.len, 92);
                store_ring_release(store, 0);
                n--;
        }
        assert_int_equal(n, 0);
        assert_int_equal(store_update(store, 0, bytes, bytes, 0), -EINVAL);
        assert_int_equal(store_delete(store, 0, bytes), -EINVAL);
        assert_null(store_lookup(store, 0, bytes));
}

#define RECORDS 200000

static void *produce(void *argument)
{
        struct store *store = argument;

        for (uint64_t i = 0; i < RECORDS;) {
                uint64_t record[20] = {i};

                if (store_ring_output(store, 0, record, 8 + i % 150) == 0)
                        i++;
        }
        return NULL;
}

/* A producer and a consumer at once: every record, in order, whole. */
static void test_ring_between_threads(void **state)
{
        const struct map_def def = {.name = "r", .kind = MAP_RING, .max_entries = 4096};
        _cleanup_store_ struct store *store = make(&def);
        pthread_t producer;

        assert_int_equal(pthread_create(&producer, NULL, produce, store), 0);
        for (uint64_t i = 0; i < RECORDS;) {
                struct span record;

                if (store_ring_next(store, 0, &record) != 1)
                        continue;
                assert_int_equal(record.len, 8 + i % 150);
                assert_int_equal(get_le64(record.data), i);
                store_ring_release(store, 0);
                i++;
        }
        assert_int_equal(pthread_join(producer, NULL), 0);
}

static void test_handles_and_entries(void **state)
{
        const struct map_def defs[] = {
                {.name = "a", .kind = MAP_ARRAY, .key_size = 4, .value_size = 5, .max_entries = 3},
                {.name = "r", .kind = MAP_RING, .max_entries = 4096},
        };
        _cleanup_store_ struct store *store = NULL;
        uint32_t key = 1;
        uint64_t at;

        assert_int_equal(store_new(defs, 2, &store, NULL), 0);
        assert_int_equal(store_count(store), 2);
        assert_int_equal(store_find_handle(store, store_handle(store, 0)), 0);
        assert_int_equal(store_find_handle(store, store_handle(store, 1)), 1);
        assert_int_equal(store_find_handle(store, store_handle(store, 1) + 1), 2);
        assert_int_equal(store_find_handle(store, 2 * store_handle(store, 1) - store_handle(store, 0)), 2);
        assert_int_equal(store_find_handle(store, 0), 2);

        at = (uintptr_t)store_lookup(store, 0, &key);
        assert_ptr_equal(store_entry_at(store, 0, at), at);
        assert_ptr_equal(store_entry_at(store, 0, at + 4), at);
        assert_null(store_entry_at(store, 0, at + 5)); /* between values */
        assert_null(store_entry_at(store, 0, at + 2 * 8));
        assert_null(store_entry_at(store, 0, at - 9));
        assert_null(store_entry_at(store, 1, at));
        assert_null(store_entry_at(store, 0, 0));
}

static void test_too_large(void **state)
{
        struct map_def def = {.name = "a", .kind = MAP_ARRAY, .key_size = 4, .value_size = 1 << 20, .max_entries = 600};
        const struct map_def both[] = {def, def};
        struct store *store = NULL;
        struct fault fault;
        struct err err = {0};

        assert_int_equal(map_check(&def, &fault), 0);
        assert_int_equal(store_new(both, 2, &store, &err), -E2BIG);
        assert_null(store);
        def.max_entries = 2000;
        assert_int_equal(map_check(&def, &fault), 1);
        assert_int_equal(fault.kind, FAULT_MAP);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_array),
                cmocka_unit_test(test_hash_against_a_table),
                cmocka_unit_test(test_hash_values_stay_where_they_are),
                cmocka_unit_test(test_ring),
                cmocka_unit_test(test_ring_between_threads),
                cmocka_unit_test(test_handles_and_entries),
                cmocka_unit_test(test_too_large),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
