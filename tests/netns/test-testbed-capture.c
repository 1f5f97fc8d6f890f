/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed-support.h"

#include <signal.h>
#include <unistd.h>

#include "testbed/capture.h"

/* A proof sends this many packets over front-left's link: both ways, two families, four each. */
#define N_FRAMES 16

static size_t n_seen, n_whole;

static void see(int64_t when_ns, struct span frame, size_t wire_bytes, void *userdata)
{
        n_seen++;
        n_whole += frame.len == wire_bytes && when_ns > 0 && get_be16(frame.data + 12) == 0x8100 &&
                   (get_be16(frame.data + 14) & 0xfff) == 10;
}

/* What another program reads of the file: VLAN, and whether it is UDP between the slice's addresses. */
static size_t count_by_tshark(const char *path, const char *filter)
{
        _cleanup_free_ char *command =
                text_format("tshark -r %s -Y '%s' -T fields -e frame.number 2>/dev/null", path, filter);
        FILE *out = popen(command, "r");
        size_t n = 0;
        char line[64];

        assert_non_null(out);
        while (fgets(line, sizeof(line), out))
                n++;
        assert_int_equal(pclose(out), 0);
        return n;
}

static void tags_are_in_the_file(void **state)
{
        _cleanup_capture_ struct capture *c = NULL;
        char path[] = "/tmp/assay-capture-XXXXXX";
        int stop = 0, fd = mkstemp(path);
        FILE *file = fdopen(fd, "w");
        struct err err = {0};
        struct bed b;
        bool has_tags;

        assert_non_null(file);
        bed_up(&b, NULL);
        has_tags = testbed_mechanism(b.tb).tagger != TESTBED_TAGGER_NONE;
        assert_ok(capture_open(testbed_netns(b.tb, GATEWAY), "eth0", &c, &err));
        assert_path(&b, NULL);
        assert_ok(capture_run(c, file, see, NULL, N_FRAMES, &stop, &err));
        fclose(file);
        bed_down(&b);

        assert_int_equal(n_seen, N_FRAMES);
        assert_int_equal(n_whole, has_tags ? N_FRAMES : 0);
        if (system("tshark --version >/dev/null 2>&1") == 0) {
                assert_int_equal(count_by_tshark(path, "frame"), N_FRAMES);
                assert_int_equal(count_by_tshark(path, has_tags ? "vlan.id == 10 && udp" : "!vlan && udp"), N_FRAMES);
                assert_int_equal(count_by_tshark(path, "ip.ttl == 255 || ipv6.hlim == 255"), N_FRAMES / 2);
                assert_int_equal(count_by_tshark(path, "ip.ttl == 254 || ipv6.hlim == 254"), N_FRAMES / 2);
        }
        unlink(path);
}

static void stops_when_told(void **state)
{
        _cleanup_capture_ struct capture *c = NULL;
        int stop = SIGINT;
        struct err err = {0};
        struct bed b;

        bed_up(&b, NULL);
        assert_ok(capture_open(testbed_netns(b.tb, GATEWAY), "eth0", &c, &err));
        assert_ok(capture_run(c, NULL, NULL, NULL, 0, &stop, &err));
        bed_down(&b);
}

static void faults_are_named(void **state)
{
        _cleanup_capture_ struct capture *c = NULL, *none = NULL;
        FILE *full = fopen("/dev/full", "w");
        struct err err = {0};
        struct bed b;

        bed_up(&b, NULL);
        assert_true(capture_open(testbed_netns(b.tb, GATEWAY), "eth9", &none, &err) < 0);
        assert_non_null(strstr(err.text, "cannot watch eth9: "));
        assert_ok(capture_open(testbed_netns(b.tb, GATEWAY), "eth0", &c, &err));
        assert_true(capture_run(c, full, NULL, NULL, 1, NULL, &err) < 0);
        assert_int_equal(err.kind, ERR_IO);
        fclose(full);
        bed_down(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tags_are_in_the_file),
                cmocka_unit_test(stops_when_told),
                cmocka_unit_test(faults_are_named),
        };
        struct err err = {0};

        if (can_make_netns(&err) < 0)
                return test_skip("netns", err.text);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
