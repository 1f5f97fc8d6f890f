/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/pins.h"

#include <errno.h>

#include "base/span.h"
#include "tests/fault.h"
#include "tests/test.h"

static struct ip_prefix address_of(const char *text)
{
        struct ip_prefix address;

        assert_int_equal(ip_prefix_parse(text, &address), 0);
        return address;
}

static int add(struct pins *pins, const char *address, const char *name, int64_t expires_ns, int64_t now_ns)
{
        struct pin pin = {.address = address_of(address), .name = name, .expires_ns = expires_ns};

        return pins_add(pins, &pin, now_ns);
}

/* How many names an address has; @name is among them. */
static size_t names(const struct pins *pins, const char *address, int64_t now_ns, const char *name, bool *ret_has)
{
        struct ip_prefix a = address_of(address);
        const char *at = NULL;
        size_t n = 0;

        *ret_has = false;
        while ((at = pins_next(pins, &a, now_ns, at))) {
                *ret_has |= streq(at, name);
                n++;
        }
        return n;
}

static void test_names_of_an_address(void **state)
{
        _cleanup_pins_ struct pins *pins = NULL;
        bool has;

        assert_int_equal(pins_new(10, &pins), 0);
        assert_int_equal(names(pins, "192.0.2.1", 0, "", &has), 0);
        assert_int_equal(add(pins, "192.0.2.1", "a.example", 100, 0), 0);
        assert_int_equal(add(pins, "192.0.2.1", "b.example", 200, 0), 0);
        assert_int_equal(add(pins, "192.0.2.2", "c.example", 200, 0), 0);
        assert_int_equal(add(pins, "2001:db8::1", "d.example", 200, 0), 0);

        assert_int_equal(names(pins, "192.0.2.1", 0, "a.example", &has), 2);
        assert_true(has);
        assert_int_equal(names(pins, "192.0.2.1", 0, "b.example", &has), 2);
        assert_true(has);
        assert_int_equal(names(pins, "192.0.2.1", 0, "c.example", &has), 2);
        assert_false(has);
        assert_int_equal(names(pins, "2001:db8::1", 0, "d.example", &has), 1);
        assert_true(has);
        assert_int_equal(names(pins, "192.0.2.3", 0, "", &has), 0);

        /* The same octets in the other family are another address. */
        assert_int_equal(names(pins, "c000:201::", 0, "", &has), 0);
}

static void test_expiry(void **state)
{
        _cleanup_pins_ struct pins *pins = NULL;
        bool has;

        assert_int_equal(pins_new(10, &pins), 0);
        assert_int_equal(add(pins, "192.0.2.1", "a.example", 100, 0), 0);
        assert_int_equal(add(pins, "192.0.2.1", "b.example", 200, 0), 0);
        assert_int_equal(names(pins, "192.0.2.1", 99, "a.example", &has), 2);
        assert_int_equal(names(pins, "192.0.2.1", 100, "a.example", &has), 1);
        assert_false(has);

        /* A pin is never shortened. */
        assert_int_equal(add(pins, "192.0.2.1", "b.example", 150, 0), 0);
        assert_int_equal(names(pins, "192.0.2.1", 199, "b.example", &has), 1);
        assert_int_equal(add(pins, "192.0.2.1", "b.example", 300, 0), 0);
        assert_int_equal(names(pins, "192.0.2.1", 299, "b.example", &has), 1);

        assert_int_equal(pins_count(pins), 2);
        assert_int_equal(pins_sweep(pins, 100), 1);
        assert_int_equal(pins_sweep(pins, 100), 0);
        assert_int_equal(pins_count(pins), 1);
        assert_int_equal(pins_sweep(pins, 300), 1);
        assert_int_equal(pins_count(pins), 0);
}

static int note(const struct pin *pin, void *userdata)
{
        size_t *n = userdata;

        (*n)++;
        assert_int_equal(pin->expires_ns, 500);
        return *n > 2 ? -EIO : 0;
}

static void test_extend(void **state)
{
        struct ip_prefix address = address_of("192.0.2.1");
        _cleanup_pins_ struct pins *pins = NULL;
        size_t n = 0;
        bool has;

        assert_int_equal(pins_new(10, &pins), 0);
        assert_int_equal(add(pins, "192.0.2.1", "expired.example", 100, 0), 0);
        assert_int_equal(add(pins, "192.0.2.1", "a.example", 200, 0), 0);
        assert_int_equal(add(pins, "192.0.2.1", "b.example", 200, 0), 0);
        assert_int_equal(add(pins, "192.0.2.1", "longer.example", 600, 0), 0);
        assert_int_equal(add(pins, "192.0.2.2", "other.example", 200, 0), 0);
        assert_int_equal(pins_extend(pins, &address, 150, 500, note, &n), 0);
        assert_int_equal(n, 2);
        assert_int_equal(names(pins, "192.0.2.1", 499, "expired.example", &has), 3);
        assert_false(has);
        assert_int_equal(names(pins, "192.0.2.2", 499, "", &has), 0);

        assert_int_equal(add(pins, "192.0.2.1", "c.example", 200, 0), 0);
        assert_int_equal(pins_extend(pins, &address, 150, 500, note, &n), -EIO);
        assert_int_equal(names(pins, "192.0.2.1", 499, "c.example", &has), 3); /* the enforcer did not take it */
        assert_false(has);
}

static void test_limits(void **state)
{
        _cleanup_pins_ struct pins *pins = NULL;
        char name[32];
        bool has;

        assert_int_equal(pins_new(2, &pins), 0);
        assert_int_equal(add(pins, "192.0.2.1", "a.example", 100, 0), 0);
        assert_int_equal(add(pins, "192.0.2.2", "a.example", 200, 0), 0);
        assert_int_equal(add(pins, "192.0.2.3", "a.example", 200, 99), -ENOSPC);
        assert_int_equal(add(pins, "192.0.2.2", "a.example", 300, 99), 0); /* extended, not added */
        assert_int_equal(add(pins, "192.0.2.3", "a.example", 200, 100), 0);
        assert_int_equal(names(pins, "192.0.2.1", 0, "", &has), 0);
        pins_free(pins);

        /* Of one address the newest names stay: those are what a program connects to next. */
        assert_int_equal(pins_new(1000, &pins), 0);
        for (int i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "%d.example", i);
                assert_int_equal(add(pins, "192.0.2.1", name, 1000 + i, 0), 0);
        }
        assert_int_equal(names(pins, "192.0.2.1", 0, "199.example", &has), PINS_NAMES_MAX);
        assert_true(has);
        assert_int_equal(names(pins, "192.0.2.1", 0, "136.example", &has), PINS_NAMES_MAX);
        assert_true(has);
        assert_int_equal(names(pins, "192.0.2.1", 0, "135.example", &has), PINS_NAMES_MAX);
        assert_false(has);
        assert_int_equal(pins_count(pins), PINS_NAMES_MAX);
}

/* What does not fit into memory is not pinned; all else stays as it was. */
static void test_out_of_memory(void **state)
{
        for (unsigned n = 1;; n++) {
                _cleanup_pins_ struct pins *pins = NULL;
                char name[32];
                size_t added = 0;
                int r;

                fault_arm(FAULT_ALLOCATION, n);
                r = pins_new(1000, &pins);
                for (int i = 0; r == 0 && i < 200; i++) { /* enough for larger tables */
                        snprintf(name, sizeof(name), "192.0.2.%d", i);
                        added += add(pins, name, "a.example", 100, 0) == 0;
                }
                if (!fault_disarm()) {
                        assert_int_equal(added, 200);
                        break;
                }
                if (r < 0) {
                        assert_int_equal(r, -ENOMEM);
                        continue;
                }
                assert_true(added >= 199);
                assert_int_equal(pins_count(pins), added);
                assert_int_equal(pins_sweep(pins, 100), added);
        }
}

static struct ip_prefix nth(uint32_t i)
{
        struct ip_prefix address = {.family = i % 2 ? AF_INET6 : AF_INET, .length_bits = i % 2 ? 128 : 32};

        put_be32(address.bytes, i % 2 ? 0x20010db8 : i);
        if (i % 2)
                put_be32(address.bytes + 12, i);
        return address;
}

static void test_many(void **state)
{
        _cleanup_pins_ struct pins *pins = NULL;

        assert_int_equal(pins_new(PINS_MAX, &pins), 0);
        for (uint32_t i = 0; i < PINS_MAX; i++) {
                struct pin pin = {.address = nth(i),
                                  .name = i % 3 ? "one.example" : "other.example",
                                  .expires_ns = 1 + i};

                assert_int_equal(pins_add(pins, &pin, 0), 0);
        }
        assert_int_equal(pins_count(pins), PINS_MAX);
        for (uint32_t i = 0; i < PINS_MAX; i++) {
                struct ip_prefix address = nth(i);
                const char *name = pins_next(pins, &address, 0, NULL);

                assert_non_null(name);
                assert_string_equal(name, i % 3 ? "one.example" : "other.example");
                assert_null(pins_next(pins, &address, 0, name));
        }
        assert_int_equal(pins_sweep(pins, PINS_MAX / 2), PINS_MAX / 2);
        for (uint32_t i = 0; i < PINS_MAX; i++) {
                struct ip_prefix address = nth(i);

                assert_int_equal(pins_next(pins, &address, 0, NULL) != NULL, i >= PINS_MAX / 2);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_of_an_address),
                cmocka_unit_test(test_expiry),
                cmocka_unit_test(test_extend),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_out_of_memory),
                cmocka_unit_test(test_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
