/* SPDX-License-Identifier: Apache-2.0 */

/* Runs a fuzz target without libFuzzer: each file of a corpus, and the same mutations of it on every run.
 *
 *   fuzz-NAME CORPUS            run all
 *   fuzz-NAME --show FILE N     write the N-th mutation of a file to standard output (0 is the file itself)
 *
 * When the target dies, standard error names the file and the mutation. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/rng.h"
#include "fuzz/fuzz.h"

#define INPUT_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* A large seed gets fewer mutations, so that no target runs for long. */
#define MUTATIONS_MAX      ((size_t)400)
#define MUTATED_BYTES_WORK ((size_t)4 * 1024 * 1024)

static char running[512];

static void tell(void)
{
        if (write(STDERR_FILENO, running, strlen(running)) < 0)
                _exit(1);
}

static void died(int signal_number)
{
        tell();
        signal(signal_number, SIG_DFL);
        raise(signal_number);
}

/* With a sanitizer, it is told when the program is about to end. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_death(void)
{
        static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

        if (__sanitizer_set_death_callback)
                __sanitizer_set_death_callback(tell);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                signal(signals[i], died);
}

static size_t mutate_bytes(struct rng *rng, uint8_t *data, size_t len)
{
        static const uint8_t interesting[] = {0,   1,   '\n', '\r', ' ', '"', '%',  '*',  ',',  '-',  '.', '/',
                                              '0', '9', ':',  '\\', '{', '[', 0x7f, 0x80, 0xc0, 0xed, 0xff};
        uint64_t times = 1 + rng_below(rng, 4);

        for (uint64_t i = 0; i < times && len > 0; i++) {
                uint8_t *at = data + rng_below(rng, len);

                switch (rng_below(rng, 3)) {
                case 0:
                        *at ^= (uint8_t)(1u << rng_below(rng, 8));
                        break;
                case 1:
                        *at = interesting[rng_below(rng, ARRAY_SIZE(interesting))];
                        break;
                default:
                        *at = (uint8_t)rng_next(rng);
                        break;
                }
        }
        return len;
}

/* Doubles a part, or takes it out. @data has room for twice @len. */
static size_t mutate_part(struct rng *rng, uint8_t *data, size_t len)
{
        size_t start = rng_below(rng, len + 1), part = rng_below(rng, len - start + 1);

        if (rng_below(rng, 2) == 0) {
                memmove(data + start + part, data + start, len - start);
                return len + part;
        }
        memmove(data + start, data + start + part, len - start - part);
        return len - part;
}

/* The @n-th mutation of @len bytes at @data, which has room for twice as many. */
static size_t mutate(uint8_t *data, size_t len, uint64_t n)
{
        struct rng rng;

        rng_seed_stream(&rng, 1, n);
        switch (n == 0 ? 0 : 1 + n % 4) {
        case 0:
                return len;
        case 1:
                return rng_below(&rng, len + 1); /* cut off */
        case 2:
                return mutate_part(&rng, data, len);
        default:
                return mutate_bytes(&rng, data, len);
        }
}

static int run_file(int dirfd, const char *name)
{
        _cleanup_free_ char *seed = NULL;
        struct err err = {0};
        uint64_t count;
        size_t len;

        if (file_read(dirfd, name, INPUT_BYTES_MAX, &seed, &len, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return -1;
        }
        count = 1 + MIN((size_t)MUTATIONS_MAX, MUTATED_BYTES_WORK / (len + 1));
        for (uint64_t n = 0; n < count; n++) {
                /* Just as large as the input, so that a sanitizer sees a byte read after it. */
                _cleanup_free_ uint8_t *room = malloc(2 * len + 1), *input = NULL;
                size_t mutated;

                if (!room)
                        return -1;
                memcpy(room, seed, len);
                mutated = mutate(room, len, n);
                input = malloc(mutated);
                if (!input && mutated > 0)
                        return -1;
                if (mutated > 0)
                        memcpy(input, room, mutated);
                snprintf(running, sizeof(running), "\nfuzz: died of %s, mutation %llu (write it out with --show)\n",
                         name, (unsigned long long)n);
                LLVMFuzzerTestOneInput(input, mutated);
        }
        return 0;
}

static int show(const char *path, const char *number)
{
        _cleanup_free_ char *seed = NULL;
        _cleanup_free_ uint8_t *room = NULL;
        uint64_t n;
        size_t len;

        if (number_parse_u64(span_of_text(number), &n) < 0 ||
            file_read(AT_FDCWD, path, INPUT_BYTES_MAX, &seed, &len, NULL) < 0)
                return 2;
        room = malloc(2 * len + 1);
        if (!room)
                return 1;
        memcpy(room, seed, len);
        len = mutate(room, len, n);
        return file_write_all(STDOUT_FILENO, room, len) < 0;
}

static int run_corpus(const char *path)
{
        _cleanup_closedir_ DIR *corpus = opendir(path);
        struct dirent *entry;
        size_t files = 0;

        if (!corpus) {
                fprintf(stderr, "cannot open the corpus %s: %m\n", path);
                return 1;
        }
        while ((entry = readdir(corpus))) {
                if (entry->d_name[0] == '.')
                        continue;
                if (run_file(dirfd(corpus), entry->d_name) < 0)
                        return 1;
                files++;
        }
        if (files == 0)
                fprintf(stderr, "the corpus %s is empty\n", path);
        else
                printf("%zu files and their mutations\n", files);
        return files == 0;
}

int main(int argc, char **argv)
{
        if (argc == 4 && streq(argv[1], "--show"))
                return show(argv[2], argv[3]);
        if (argc != 2) {
                fprintf(stderr, "usage: %s CORPUS | --show FILE N\n", argv[0]);
                return 2;
        }
        watch_for_death();
        return run_corpus(argv[1]);
}
