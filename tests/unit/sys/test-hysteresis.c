/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/hysteresis.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A parameter of our own in place of the kernel's, since that counts for the whole host. */
struct place {
        char folder[32], parameter[64], state[64];
};

static void put(const char *path, const char *text)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *path, const char *text)
{
        char found[32] = "";
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
        assert_int_equal(fclose(f), 0);
        assert_string_equal(found, text);
}

static int make_place(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        snprintf(p->folder, sizeof(p->folder), "/tmp/hysteresis-XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        snprintf(p->parameter, sizeof(p->parameter), "%s/parameter", p->folder);
        snprintf(p->state, sizeof(p->state), "%s/state", p->folder);
        put(p->parameter, "0\n");
        *state = p;
        return 0;
}

static int remove_place(void **state)
{
        struct place *p = *state;

        unlink(p->parameter);
        unlink(p->state);
        rmdir(p->folder);
        free(p);
        return 0;
}

static struct hysteresis in_place(const struct place *p)
{
        return (struct hysteresis){.parameter = p->parameter, .state = p->state, .fd = -1};
}

static void test_last_holder_restores(void **state)
{
        struct place *p = *state;
        struct hysteresis a = in_place(p), b = in_place(p);

        assert_int_equal(hysteresis_hold(&a), 0);
        assert_holds(p->parameter, "1\n");
        assert_int_equal(hysteresis_hold(&b), 0);
        hysteresis_release(&a);
        assert_false(hysteresis_is_held(&a));
        assert_holds(p->parameter, "1\n");
        hysteresis_release(&b);
        assert_holds(p->parameter, "0\n");
        hysteresis_release(&b); /* a second time does nothing */

        put(p->parameter, "1\n"); /* who has switched it on keeps it on */
        assert_int_equal(hysteresis_hold(&a), 0);
        hysteresis_release(&a);
        assert_holds(p->parameter, "1\n");
}

/* Killed while it holds: it stays on until the next holder lets go, which then knows the value from before. */
static void test_killed_holder(void **state)
{
        struct place *p = *state;
        struct hysteresis next = in_place(p);
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                struct hysteresis h = in_place(p);

                if (hysteresis_hold(&h) == 0)
                        raise(SIGKILL);
                _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_holds(p->parameter, "1\n");
        assert_int_equal(hysteresis_hold(&next), 0);
        assert_holds(p->parameter, "1\n");
        hysteresis_release(&next);
        assert_holds(p->parameter, "0\n");
}

/* Killed while it holds: who comes next and only looks puts it back too, but not while another holds it. */
static void test_sweep(void **state)
{
        struct place *p = *state;
        struct hysteresis holds = in_place(p), sweeps = in_place(p);

        hysteresis_sweep(&sweeps); /* there is no state yet, and none is made */
        assert_int_equal(access(p->state, F_OK), -1);
        assert_int_equal(hysteresis_hold(&holds), 0);
        hysteresis_sweep(&sweeps);
        assert_holds(p->parameter, "1\n");
        close(holds.fd); /* as its end would */
        assert_holds(p->parameter, "1\n");
        hysteresis_sweep(&sweeps);
        assert_holds(p->parameter, "0\n");
        put(p->parameter, "1\n"); /* by somebody else, after that */
        hysteresis_sweep(&sweeps);
        assert_holds(p->parameter, "1\n");
}

/* Where it cannot be held, nothing changes. */
static void test_refused(void **state)
{
        struct place *p = *state;
        struct hysteresis h = in_place(p);

        h.parameter = "/nonexistent/parameter";
        assert_int_equal(hysteresis_hold(&h), -ENOENT);
        assert_false(hysteresis_is_held(&h));

        h = in_place(p);
        put(p->state, "7\n");
        assert_int_equal(chmod(p->state, 0666), 0); /* anybody could have said what to put back */
        assert_int_equal(hysteresis_hold(&h), -EPERM);
        assert_int_equal(unlink(p->state), 0);
        assert_int_equal(symlink(p->parameter, p->state), 0);
        assert_int_equal(hysteresis_hold(&h), -ELOOP);
        assert_holds(p->parameter, "0\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_last_holder_restores, make_place, remove_place),
                cmocka_unit_test_setup_teardown(test_killed_holder, make_place, remove_place),
                cmocka_unit_test_setup_teardown(test_sweep, make_place, remove_place),
                cmocka_unit_test_setup_teardown(test_refused, make_place, remove_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
