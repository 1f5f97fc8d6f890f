/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "sys/child.h"

#define LONG_NS (20 * NSEC_PER_SEC)

static const struct child_options plain = {.name = "test-child"};

static int return_number(struct child_side *side, void *userdata)
{
        return *(int *)userdata;
}

/* Until a signal ends it. */
static int stay(struct child_side *side, void *userdata)
{
        child_ready(side);
        pause();
        return 1;
}

static void exit_status_arrives(void **state)
{
        int statuses[] = {0, 1, 77, 255};

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
                _cleanup_child_ struct child child = CHILD_INIT;
                struct child_status status;
                struct err err = {0};

                assert_int_equal(child_start(&plain, return_number, &statuses[i], &child, &err), 0);
                assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
                assert_int_equal(status.exit_code, statuses[i]);
                assert_int_equal(status.signal, 0);
                assert_int_equal(child_check("it", &status, &err), statuses[i] == 0 ? 0 : -EIO);
                assert_int_equal(child_wait(&child, 0, &status), -ECHILD);
        }
}

static void killing_signal_arrives(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_start(&plain, stay, NULL, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        assert_true(child_is_alive(&child));
        assert_int_equal(child_wait(&child, 0, &status), -ETIMEDOUT);
        assert_int_equal(child_signal(&child, SIGKILL), 0);
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        assert_int_equal(status.exit_code, -1);
        assert_int_equal(status.signal, SIGKILL);
        assert_int_equal(child_check("it", &status, &err), -EIO);
        assert_string_equal(err.text, "it was killed by signal 9 (Killed)");
        assert_false(child_is_alive(&child));
}

static int ignore_term(struct child_side *side, void *userdata)
{
        signal(SIGTERM, SIG_IGN);
        return stay(side, userdata);
}

static void stop_ends_what_ignores_sigterm(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_start(&plain, ignore_term, NULL, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        assert_int_equal(child_stop(&child, NSEC_PER_MSEC, &status), 0);
        assert_int_equal(status.signal, SIGKILL);
}

static int fail_to_prepare(struct child_side *side, void *userdata)
{
        struct err err = {0};

        err_set(&err, ERR_UNSUPPORTED, EPERM, "no wings");
        return child_failed(side, &err);
}

static void reason_of_failure_arrives(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_start(&plain, fail_to_prepare, NULL, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), -EPERM);
        assert_int_equal(err.kind, ERR_UNSUPPORTED);
        assert_string_equal(err.text, "no wings");
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        assert_int_equal(status.exit_code, 255);
}

static void end_without_a_word_is_an_error(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct err err = {0};
        int zero = 0;

        assert_int_equal(child_start(&plain, return_number, &zero, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), -EPIPE);
}

static void silence_times_out(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct err err = {0};

        assert_int_equal(child_start(&plain, stay, NULL, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        assert_int_equal(child_wait_ready(&child, 1, &err), -ETIMEDOUT);
}

/* Exits with 7 where the go brought the expected time, 8 where it was withdrawn. */
static int wait_for_go(struct child_side *side, void *userdata)
{
        int64_t start_ns;
        int r;

        child_ready(side);
        r = child_wait_go(side, &start_ns);
        if (r == 0 && start_ns == INT64_C(1234567890123))
                return 7;
        return r == -ECANCELED ? 8 : 9;
}

static void go_brings_the_time(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_start(&plain, wait_for_go, NULL, &child, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        assert_int_equal(child_go(&child, INT64_C(1234567890123), &err), 0);
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        assert_int_equal(status.exit_code, 7);
        assert_true(child_go(&child, 0, &err) < 0); /* and no SIGPIPE */
}

static void go_is_withdrawn_by_closing(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT, sibling = CHILD_INIT;
        struct child_status status;
        struct err err = {0};

        assert_int_equal(child_start(&plain, wait_for_go, NULL, &child, &err), 0);
        assert_int_equal(child_start(&plain, stay, NULL, &sibling, &err),
                         0); /* must not hold the first one's channel */
        assert_int_equal(child_wait_ready(&sibling, LONG_NS, &err), 0);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        close(TAKE_FD(child.channel_fd));
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        assert_int_equal(status.exit_code, 8);
}

struct descriptors {
        int kept, lost;
};

static int look_at_descriptors(struct child_side *side, void *userdata)
{
        struct descriptors *d = userdata;

        if (fcntl(d->kept, F_GETFD) < 0)
                return 1;
        if (fcntl(d->lost, F_GETFD) >= 0)
                return 2;
        if (fcntl(side->channel_fd, F_GETFD) < 0)
                return 3;
        return 0;
}

static void only_named_descriptors_stay_open(void **state)
{
        _cleanup_close_ int a = open("/dev/null", O_RDONLY | O_CLOEXEC), b = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int both[] = {a, b};

        for (size_t i = 0; i < 2; i++) {
                _cleanup_child_ struct child child = CHILD_INIT;
                struct descriptors d = {.kept = both[i], .lost = both[1 - i]};
                struct child_options options = {.keep_fds = &both[i], .n_keep_fds = 1};
                struct child_status status;
                struct err err = {0};

                assert_int_equal(child_start(&options, look_at_descriptors, &d, &child, &err), 0);
                assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
                assert_int_equal(status.exit_code, 0);
        }
}

static void sink_to_pipe(enum log_level level, const char *text, void *userdata)
{
        if (write(*(int *)userdata, text, strlen(text)) < 0)
                abort();
}

static int speak(struct child_side *side, void *userdata)
{
        log_error("from the log");
        printf("-");
        fflush(stdout);
        return 0;
}

static void neither_log_nor_buffers_are_inherited(void **state)
{
        int ends[2], stdout_before = dup(STDOUT_FILENO);
        char seen[64];
        ssize_t n;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        fflush(stdout);
        assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
        log_set_sink(sink_to_pipe, LOG_DEBUG, &ends[1]);
        printf("pending");
        {
                _cleanup_child_ struct child child = CHILD_INIT;
                struct child_options options = {.keep_fds = &ends[1], .n_keep_fds = 1, .keep_stdio = true};
                struct err err = {0};

                assert_int_equal(child_start(&options, speak, NULL, &child, &err), 0);
                assert_int_equal(child_wait(&child, LONG_NS, NULL), 0);
        }
        fflush(stdout);
        log_set_sink(NULL, LOG_ERROR, NULL);
        dup2(stdout_before, STDOUT_FILENO);
        close(stdout_before);
        n = read(ends[0], seen, sizeof(seen) - 1);
        close(ends[0]);
        close(ends[1]);
        assert_true(n > 0);
        seen[n] = '\0';
        assert_string_equal(seen, "-pending");
}

static int look_at_signals(struct child_side *side, void *userdata)
{
        struct sigaction action;
        sigset_t mask;

        sigaction(SIGINT, NULL, &action);
        sigprocmask(SIG_SETMASK, NULL, &mask);
        return action.sa_handler != SIG_DFL || sigismember(&mask, SIGTERM);
}

static void signals_are_reset(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        sigset_t term;
        struct err err = {0};

        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigprocmask(SIG_BLOCK, &term, NULL);
        signal(SIGINT, SIG_IGN);
        assert_int_equal(child_start(&plain, look_at_signals, NULL, &child, &err), 0);
        signal(SIGINT, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &term, NULL);
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        assert_int_equal(status.exit_code, 0);
}

/* A middle process starts a child, tells its pid, and is killed. */
static int start_grandchild(struct child_side *side, void *userdata)
{
        struct child child = CHILD_INIT;
        struct child_options options = {.keep_fds = userdata, .n_keep_fds = 1};
        struct err err = {0};
        int fd = *(int *)userdata;

        if (child_start(&options, stay, NULL, &child, &err) < 0 || child_wait_ready(&child, LONG_NS, &err) < 0)
                return child_failed(side, &err);
        if (write(fd, &child.pid, sizeof(child.pid)) != sizeof(child.pid))
                return 1;
        return stay(side, NULL);
}

static void grandchild_dies_with_its_parent(void **state)
{
        _cleanup_child_ struct child child = CHILD_INIT;
        struct child_status status;
        struct err err = {0};
        int ends[2], n;
        pid_t grandchild;
        char byte;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        {
                struct child_options options = {.keep_fds = &ends[1], .n_keep_fds = 1};

                assert_int_equal(child_start(&options, start_grandchild, &ends[1], &child, &err), 0);
        }
        close(ends[1]);
        assert_int_equal(child_wait_ready(&child, LONG_NS, &err), 0);
        assert_int_equal(read(ends[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
        assert_int_equal(kill(grandchild, 0), 0);
        assert_int_equal(child_signal(&child, SIGKILL), 0);
        assert_int_equal(child_wait(&child, LONG_NS, &status), 0);
        /* The grandchild holds the pipe's other end as long as it lives: its end is the end of the file. */
        n = poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, (int)(LONG_NS / NSEC_PER_MSEC));
        if (n != 1)
                kill(grandchild, SIGKILL);
        assert_int_equal(n, 1);
        assert_int_equal(read(ends[0], &byte, 1), 0);
        close(ends[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(exit_status_arrives),
                cmocka_unit_test(killing_signal_arrives),
                cmocka_unit_test(stop_ends_what_ignores_sigterm),
                cmocka_unit_test(reason_of_failure_arrives),
                cmocka_unit_test(end_without_a_word_is_an_error),
                cmocka_unit_test(silence_times_out),
                cmocka_unit_test(go_brings_the_time),
                cmocka_unit_test(go_is_withdrawn_by_closing),
                cmocka_unit_test(only_named_descriptors_stay_open),
                cmocka_unit_test(neither_log_nor_buffers_are_inherited),
                cmocka_unit_test(signals_are_reset),
                cmocka_unit_test(grandchild_dies_with_its_parent),
        };

        return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
