/* SPDX-License-Identifier: Apache-2.0 */
#include "bpfvm/specimen.h"

#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "base/text.h"
#include "bpfvm/assemble.h"

#define DIAMOND_BITS 31

static void add_chain(struct text *text, unsigned n)
{
        text_add(text, "r0 = 0\n");
        for (unsigned i = 1; i <= n - 2; i++)
                text_addf(text, "r0 += %u\n", i % 100);
        text_add(text, "exit\n");
}

static void add_diamonds(struct text *text, unsigned n)
{
        text_add(text, "r2 = *(u32 *)(r1 + 0)\nr0 = 0\n");
        for (unsigned i = 0; i < n; i++)
                text_addf(text, "if r2 & %u goto +1\ngoto +1\nr0 += %u\n", 1u << i % DIAMOND_BITS,
                          1u << i % DIAMOND_BITS);
        text_add(text, "exit\n");
}

static const struct specimen {
        const char *name; /* with N where it ends in a colon */
        const char *text;
        void (*make)(struct text *text, unsigned n);
        unsigned least;
} specimens[] = {
        {"minimal", "r0 = 0\nexit\n", NULL, 0},
        {"arithmetic", "r0 = 100\nr1 = 50\nr0 += r1\nr0 -= 25\nexit\n", NULL, 0},
        {"linear", "r0 = 0\nr1 = 1\nr2 = 2\nr0 += r1\nr0 += r2\nexit\n", NULL, 0},
        {"one-branch", "r0 = 10\nif r0 == 5 goto +2\nr0 = 0\ngoto +1\nr0 = 1\nexit\n", NULL, 0},
        {"multi-branch", "r0 = 10\nr1 = 20\nif r0 == r1 goto +3\nif r0 == 10 goto +1\nr0 = 0\ngoto +1\nr0 = 1\nexit\n",
         NULL, 0},
        {"add:", NULL, add_chain, 3},
        {"diamonds:", NULL, add_diamonds, 1},
};

/* The specimen of a name, and its N. */
static const struct specimen *find(const char *name, unsigned *ret_n)
{
        for (size_t i = 0; i < ARRAY_SIZE(specimens); i++) {
                const struct specimen *s = &specimens[i];
                size_t len = strlen(s->name);
                uint64_t n;

                if (s->text && streq(s->name, name))
                        return s;
                if (s->text || strncmp(s->name, name, len) != 0)
                        continue;
                if (number_parse_u64(span_of_text(name + len), &n) < 0 || n < s->least || n > SPECIMEN_SIZE_MAX)
                        return NULL;
                *ret_n = (unsigned)n;
                return s;
        }
        return NULL;
}

bool specimen_is(const char *name)
{
        unsigned n;

        return find(name, &n) != NULL;
}

int specimen_new(const char *name, struct object **ret, struct err *err)
{
        _cleanup_text_ struct text text = {0};
        _cleanup_free_ uint8_t *slots = NULL;
        unsigned n = 0;
        const struct specimen *s = find(name, &n);
        struct fault fault;
        size_t len;
        int r;

        if (!s)
                return err_set(err, ERR_USAGE, EINVAL, "there is no program \"%.64s\"; expected %s", name,
                               SPECIMEN_EXPECTED);
        if (s->make)
                s->make(&text, n);
        else
                text_add(&text, s->text);
        if (text.failed)
                return err_set_nomem(err);
        r = assemble_text(span_of_text(text.data), name, &slots, &len, err);
        if (r >= 0)
                r = object_of_slots(span_of(slots, len), name, NULL, 0, ret, &fault, err);
        if (r < 0)
                return r;
        (*ret)->programs[0]->context = *context_find("__sk_buff");
        return 0;
}
