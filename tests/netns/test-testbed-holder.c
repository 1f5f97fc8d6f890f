/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed-support.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "testbed/holder.h"

static char folder[] = "/tmp/assay-test-XXXXXX";

static int make_folder(void **state)
{
        return mkdtemp(folder) && setenv("XDG_RUNTIME_DIR", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
        return file_remove_tree(AT_FDCWD, folder);
}

/* After each test nothing stands, whatever happened in it. */
static int take_down(void **state)
{
        return holder_down(NULL) < 0 ? -1 : 0;
}

static void up(const char *const *edits, const char *identity, int expected)
{
        _cleanup_topology_ struct topology *t = topology_of(edits);
        struct err err = {0};
        int r = holder_up(t, identity, &err);

        if (r != expected)
                fail_msg("%d: %s", r, err.text);
}

static pid_t assert_status(enum holder_state state, const char *detail)
{
        _cleanup_holder_status_ struct holder_status s = {0};
        struct err err = {0};

        assert_ok(holder_status(&s, &err));
        assert_string_equal(s.detail, detail);
        assert_string_equal(holder_state_name(s.state), holder_state_name(state));
        assert_string_equal(json_string_value(json_object_get(s.json, "state")), holder_state_name(state));
        return (pid_t)json_integer_value(json_object_get(s.json, "process"));
}

static bool has_socket(void)
{
        char path[128];
        struct stat st;

        snprintf(path, sizeof(path), "%s/assay/testbed.sock", folder);
        return lstat(path, &st) == 0;
}

/* Ends a process that is not this one's child, and waits until it is gone. */
static void end_process(pid_t pid, int signal)
{
        int fd = pidfd_open(pid, 0);
        struct pollfd p = {.fd = fd, .events = POLLIN};

        assert_true(fd >= 0);
        assert_int_equal(pidfd_send_signal(fd, signal, NULL, 0), 0);
        assert_int_equal(poll(&p, 1, (int)(LONG_NS / NSEC_PER_MSEC)), 1);
        close(fd);
}

static void up_and_down_are_idempotent(void **state)
{
        struct err err = {0};
        int watch;
        pid_t pid;

        assert_status(HOLDER_DOWN, "");
        assert_int_equal(holder_down(&err), 1);
        up(NULL, "one", 0);
        pid = assert_status(HOLDER_UP, "");
        assert_int_not_equal(pid, getpid());
        up(NULL, "one", 1);
        assert_int_equal(assert_status(HOLDER_UP, ""), pid);
        up(NULL, "another", -EEXIST);
        assert_int_equal(assert_status(HOLDER_UP, ""), pid);
        watch = pidfd_open(pid, 0);
        assert_int_equal(holder_down(&err), 0);
        assert_int_equal(poll(&(struct pollfd){.fd = watch, .events = POLLIN}, 1, 0), 1);
        close(watch);
        assert_status(HOLDER_DOWN, "");
        assert_false(has_socket());
        assert_int_equal(holder_down(&err), 1);
}

/* A process of its own: in no session, and with no descriptor, of whoever started it. */
static void holder_stands_alone(void **state)
{
        int pipe_fds[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe(pipe_fds), 0); /* inheritable: it must be closed all the same */
        up(NULL, "one", 0);
        pid = assert_status(HOLDER_UP, "");
        assert_int_not_equal(getsid(pid), getsid(0));
        close(pipe_fds[1]);
        assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
        close(pipe_fds[0]);
}

static void status_says_what_stands(void **state)
{
        _cleanup_holder_status_ struct holder_status s = {0};
        struct err err = {0};

        up(EDITS(CHAIN_3), "one", 0);
        assert_ok(holder_status(&s, &err));
        assert_string_equal(json_string_value(json_object_get(s.json, "topology")), "daisy-chain");
        assert_string_equal(json_string_value(json_object_get(s.json, "scheduler")), "tree");
        assert_int_equal(json_array_size(json_object_get(s.json, "nodes")), 6);
        assert_int_equal(json_array_size(json_object_get(s.json, "links")), 5);
        assert_int_equal(json_array_size(json_object_get(s.json, "addresses")), 8);
}

static void namespaces_are_handed_out(void **state)
{
        _cleanup_netns_ struct netns zone = NETNS_INIT, gateway = NETNS_INIT, none = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct err err = {0};
        struct link_info info;
        char device[16];
        int index;

        assert_int_equal(holder_netns("front-left", &none, &err), -ENOENT);
        assert_string_equal(err.text, "no testbed stands; bring one up with `assay testbed up`");
        up(NULL, "one", 0);
        assert_ok(holder_netns("front-left", &zone, &err));
        assert_ok(netlink_open(&zone, &nl, &err));
        assert_ok(link_find(nl, "eth0", &index, &err));
        assert_ok(link_read(nl, index, &info, &err));
        assert_true(info.is_running);
        assert_ok(holder_link("rear-right", &gateway, device, &err));
        assert_string_equal(device, "eth1");
        assert_int_equal(holder_netns("trunk", &none, &err), -ENOENT);
        assert_string_equal(
                err.text, "the testbed has no node named trunk; expected front-left, rear-right, central-hpc, gateway");
        assert_int_equal(holder_link("\"}{", &none, device, &err), -ENOENT);
        assert_int_equal(holder_netns("\xff", &none, &err), -EINVAL);
        assert_int_equal(none.fd, -1);
}

static void degraded_says_with_what(void **state)
{
        _cleanup_netns_ struct netns gateway = NETNS_INIT;
        _cleanup_netlink_ struct netlink *nl = NULL;
        struct err err = {0};
        int index;

        up(NULL, "one", 0);
        assert_ok(holder_netns("gateway", &gateway, &err));
        assert_ok(netlink_open(&gateway, &nl, &err));
        assert_ok(link_find(nl, "eth0", &index, &err));
        assert_ok(link_set_up(nl, index, false, &err));
        assert_status(HOLDER_DEGRADED, "link front-left: its end in front-left carries no packets\n"
                                       "link front-left: its end in gateway is down\n");
        up(NULL, "one", 1); /* degraded or not, it stands */
}

/* The number of a program on the gateway's first link: it is there as long as the link, so as the namespace. */
static int query_program(void *userdata, struct err *err)
{
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = 3, .attach_point = BPF_TC_INGRESS);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1);

        if (bpf_tc_query(&hook, &opts) < 0)
                return err_set(err, ERR_ENVIRONMENT, ENOENT, "no program");
        *(uint32_t *)userdata = opts.prog_id;
        return 0;
}

static bool has_program(uint32_t id)
{
        int fd = bpf_prog_get_fd_by_id(id);

        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static void killed_holder_leaves_nothing(void **state)
{
        int64_t end = clock_now_ns(CLOCK_MONOTONIC) + LONG_NS;
        struct netns gateway = NETNS_INIT;
        struct err err = {0};
        uint32_t program = 0;

        up(NULL, "one", 0);
        assert_ok(holder_netns("gateway", &gateway, &err));
        if (has_bpf())
                assert_ok(netns_run(&gateway, query_program, &program, &err));
        netns_done(&gateway);
        assert_int_equal(program != 0, has_bpf());
        assert_true(program == 0 || has_program(program));

        end_process(assert_status(HOLDER_UP, ""), SIGKILL);
        assert_true(has_socket());
        assert_status(HOLDER_DOWN, "");
        assert_false(has_socket());
        while (program != 0 && has_program(program)) { /* the kernel takes namespaces down in the background */
                assert_true(clock_now_ns(CLOCK_MONOTONIC) < end);
                poll(NULL, 0, 5);
        }
        up(NULL, "two", 0);
}

static void terminated_holder_tidies_up(void **state)
{
        up(NULL, "one", 0);
        end_process(assert_status(HOLDER_UP, ""), SIGTERM);
        assert_false(has_socket());
        assert_status(HOLDER_DOWN, "");
}

/* A limit that no testbed fits in; kept for status until the next attempt or `down`. */
static void failure_is_kept(void **state)
{
        _cleanup_topology_ struct topology *t = topology_of(NULL);
        struct rlimit before, tight;
        struct err err = {0};

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        tight = before;
        tight.rlim_cur = 9;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        assert_int_equal(holder_up(t, "one", &err), -EMFILE);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_non_null(strstr(err.text, "Too many open files"));
        assert_status(HOLDER_FAILED, err.text);
        assert_status(HOLDER_FAILED, err.text);
        assert_false(has_socket());
        assert_int_equal(holder_down(&err), 1);
        assert_status(HOLDER_DOWN, "");
}

static void folder_has_to_be_private(void **state)
{
        char path[128];
        struct err err = {0};

        snprintf(path, sizeof(path), "%s/assay", folder);
        assert_status(HOLDER_DOWN, "");
        assert_int_equal(chmod(path, 0755), 0);
        assert_int_equal(holder_down(&err), -EPERM);
        assert_non_null(strstr(err.text, "has to belong to this user and to nobody else"));
        assert_int_equal(chmod(path, 0700), 0);
}

/* ---- the socket ---- */

static int connect_raw(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct timeval patience = {.tv_sec = 20};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/assay/testbed.sock", folder);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        return fd;
}

static void assert_answer(const char *request, size_t len, const char *answer)
{
        int fd = connect_raw();
        char buf[4096];
        ssize_t n;

        assert_true(fd >= 0);
        assert_int_equal(send(fd, request, len, 0), len);
        n = recv(fd, buf, sizeof(buf) - 1, 0);
        assert_true(n > 0);
        buf[n] = '\0';
        if (!strstr(buf, answer))
                fail_msg("%s", buf);
        close(fd);
}

static void bad_requests_are_answered(void **state)
{
        char long_request[1024];
        int silent;
        pid_t pid;

        memset(long_request, ' ', sizeof(long_request));
        up(NULL, "one", 0);
        pid = assert_status(HOLDER_UP, "");
        assert_answer("", 1, "\"error\"");
        assert_answer("down", 4, "\"error\"");
        assert_answer("{}", 2, "\"error\"");
        assert_answer("{\"op\":1}", 8, "\"error\"");
        assert_answer("{\"op\":\"erase\",\"name\":\"\"}", 24, "unknown request");
        assert_answer("{\"op\":\"netns\"}", 14, "\"error\"");
        assert_answer(long_request, sizeof(long_request), "too long");
        silent = connect_raw(); /* says nothing and keeps the holder waiting for a moment, not for ever */
        assert_int_equal(assert_status(HOLDER_UP, ""), pid);
        close(silent);
}

/* The folder keeps strangers out; if it did not, the holder would. */
static void strangers_are_refused(void **state)
{
        char path[128];
        pid_t child;
        int status;

        if (getuid() != 0)
                skip();
        up(NULL, "one", 0);
        snprintf(path, sizeof(path), "%s/assay", folder);
        assert_int_equal(chmod(folder, 0755) | chmod(path, 0755), 0);
        snprintf(path, sizeof(path), "%s/assay/testbed.sock", folder);
        assert_int_equal(chmod(path, 0666), 0);
        child = fork();
        if (child == 0) {
                char buf[256] = "";
                int fd;

                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(77); /* no such user in this user namespace */
                fd = connect_raw();
                if (fd < 0 || send(fd, "{\"op\":\"down\"}", 13, 0) != 13 || recv(fd, buf, sizeof(buf) - 1, 0) <= 0)
                        _exit(1);
                _exit(strstr(buf, "the testbed belongs to another user") ? 0 : 2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        snprintf(path, sizeof(path), "%s/assay", folder);
        assert_int_equal(chmod(path, 0700), 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(status, 0);
        assert_status(HOLDER_UP, "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(up_and_down_are_idempotent, take_down),
                cmocka_unit_test_teardown(holder_stands_alone, take_down),
                cmocka_unit_test_teardown(status_says_what_stands, take_down),
                cmocka_unit_test_teardown(namespaces_are_handed_out, take_down),
                cmocka_unit_test_teardown(degraded_says_with_what, take_down),
                cmocka_unit_test_teardown(killed_holder_leaves_nothing, take_down),
                cmocka_unit_test_teardown(terminated_holder_tidies_up, take_down),
                cmocka_unit_test_teardown(failure_is_kept, take_down),
                cmocka_unit_test_teardown(folder_has_to_be_private, take_down),
                cmocka_unit_test_teardown(bad_requests_are_answered, take_down),
                cmocka_unit_test_teardown(strangers_are_refused, take_down),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
