/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/seccomp.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/test.h"

/* The kernel itself is asked what a filter lets through: each test runs under its filter in a process of its own. */

/* Return: the exit status of @fn under @f, or minus the number of the signal that ended it. */
static int under(const struct seccomp_filter *f, int (*fn)(void))
{
        struct err err = {0};
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(f, &err) < 0)
                        _exit(99);
                _exit(fn());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define FAILS_WITH(call, expected) ((call) < 0 && errno == (expected))

static int refusals(void)
{
        if (!FAILS_WITH(syscall(__NR_getppid), ENOTTY))
                return 1;
        if (!FAILS_WITH(syscall(5000), EXFULL))
                return 2;
        if (!FAILS_WITH(syscall(4999), ENOSYS) || syscall(__NR_getpid) <= 0)
                return 3;
        /* bit 0x10 of the first argument */
        if (!FAILS_WITH(syscall(__NR_umask, 0x12), EDOM) || !FAILS_WITH(syscall(__NR_umask, 0x1ffffffffL), EDOM) ||
            syscall(__NR_umask, 0x2) < 0)
                return 4;
        /* the kernel takes an unsigned int: what stands above it does not matter, and must not help */
        if (!FAILS_WITH(ioctl(-1, TIOCSTI, ""), EPERM) ||
            !FAILS_WITH(syscall(__NR_ioctl, -1, 0x100000000L | TIOCSTI, ""), EPERM) ||
            !FAILS_WITH(ioctl(-1, TIOCGWINSZ, NULL), EBADF))
                return 5;
        return 0;
}

static void calls_are_refused_by_number_and_argument(void **state)
{
        struct seccomp_filter f;

        seccomp_filter_begin(&f);
        seccomp_refuse(&f, __NR_getppid, ENOTTY);
        seccomp_refuse_bits(&f, __NR_umask, 0, 0x10, EDOM);
        seccomp_refuse_value(&f, __NR_ioctl, 1, UINT32_MAX, TIOCSTI, EPERM);
        seccomp_refuse_from(&f, 5000, EXFULL);
        seccomp_filter_end(&f);
        assert_int_equal(under(&f, refusals), 0);
}

static int sockets(void)
{
        if (socket(AF_INET, SOCK_STREAM, 0) < 0 || socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP) < 0)
                return 1;
        if (!FAILS_WITH(socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT) ||
            !FAILS_WITH(syscall(__NR_socket, 0x100000000L | AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT))
                return 2;
        if (!FAILS_WITH(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), ESOCKTNOSUPPORT))
                return 3;
        if (!FAILS_WITH(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), EPROTONOSUPPORT))
                return 4;
        /* only socket() was named */
        return socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}) < 0 ? 5 : 0;
}

static void sockets_are_an_allowlist(void **state)
{
        static const int types[] = {SOCK_STREAM, SOCK_DGRAM, -1}, protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP, -1};
        static const struct seccomp_socket kinds[] = {{AF_INET6, types, protocols}, {AF_INET, types, protocols}};
        struct seccomp_filter f;

        seccomp_filter_begin(&f);
        seccomp_allow_sockets(&f, __NR_socket, kinds, ARRAY_SIZE(kinds));
        seccomp_filter_end(&f);
        assert_int_equal(under(&f, sockets), 0);
}

#ifdef __x86_64__
static int call_i386(void)
{
        long r;

        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
        return 0;
}

static int call_x32(void)
{
        syscall(0x40000000 | __NR_getpid);
        return 0;
}

static void foreign_abis_are_killed(void **state)
{
        struct seccomp_filter f;

        seccomp_filter_begin(&f);
        seccomp_filter_end(&f);
        assert_int_equal(under(&f, call_i386), -SIGSYS);
        assert_int_equal(under(&f, call_x32), -SIGSYS);
}
#endif

static void a_filter_that_is_too_long_is_not_installed(void **state)
{
        struct seccomp_filter f;
        struct err err = {0};

        seccomp_filter_begin(&f);
        for (int i = 0; i < SECCOMP_CODE_MAX; i++)
                seccomp_refuse(&f, i, EPERM);
        seccomp_filter_end(&f);
        assert_int_equal(seccomp_install(&f, &err), -E2BIG);
        assert_int_equal(err.kind, ERR_BUG);
}

/* ---- questions ---- */

static int channel[2];

static int ask(void)
{
        struct err err = {0};
        struct seccomp_filter f;
        char path[] = "memory";
        int listener;

        seccomp_filter_begin(&f);
        seccomp_ask(&f, __NR_getppid);
        seccomp_ask_pointer(&f, __NR_faccessat, 1);
        seccomp_filter_end(&f);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install_asking(&f, &listener, &err) < 0)
                return 1;
        if (write(channel[1], &listener, sizeof(listener)) != sizeof(listener))
                return 2;
        if (!FAILS_WITH(syscall(__NR_getppid), EXDEV)) /* the first answer */
                return 3;
        if (syscall(__NR_getppid) <= 0) /* the second: go on */
                return 4;
        if (!FAILS_WITH(syscall(__NR_faccessat, AT_FDCWD, NULL, 0), EFAULT)) /* not asked */
                return 5;
        return FAILS_WITH(syscall(__NR_faccessat, AT_FDCWD, path, 0), EBADE) ? 0 : 6;
}

static void answer_next(int listener, int errnum, int number)
{
        struct pollfd fd = {.fd = listener, .events = POLLIN};
        struct seccomp_question q;

        assert_int_equal(poll(&fd, 1, 20000), 1);
        assert_int_equal(seccomp_question_receive(listener, &q), 0);
        assert_int_equal(q.number, number);
        assert_true(q.pid > 0);
        assert_true(seccomp_question_stands(listener, &q));
        assert_int_equal(seccomp_answer(listener, &q, errnum), 0);
        assert_false(seccomp_question_stands(listener, &q));
}

static void questions_are_answered(void **state)
{
        int status, number, listener;
        pid_t pid;

        assert_int_equal(pipe(channel), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(ask());
        assert_int_equal(read(channel[0], &number, sizeof(number)), sizeof(number));
        listener = (int)syscall(__NR_pidfd_getfd, syscall(__NR_pidfd_open, pid, 0), number, 0);
        if (listener < 0 && errno == EPERM) {
                kill(pid, SIGKILL);
                waitpid(pid, &status, 0);
                skip(); /* children may not be looked into here */
        }
        assert_true(listener >= 0);
        answer_next(listener, EXDEV, __NR_getppid);
        answer_next(listener, 0, __NR_getppid);
        answer_next(listener, EBADE, __NR_faccessat);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(listener);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_are_refused_by_number_and_argument),
                cmocka_unit_test(sockets_are_an_allowlist),
#ifdef __x86_64__
                cmocka_unit_test(foreign_abis_are_killed),
#endif
                cmocka_unit_test(a_filter_that_is_too_long_is_not_installed),
                cmocka_unit_test(questions_are_answered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
