/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/kernel-verifier.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

#define LOG_STATISTICS 4
#define LOG_BYTES      4096
#define SLOT_BYTES     8

int kernel_verifier_time_of_log(const char *log, int64_t *ret_time_ns)
{
        static const char before[] = "verification time ", after[] = " usec";
        const char *number = strstr(log, before);
        int64_t usec, ns;
        size_t len;

        if (!number)
                return -ENODATA;
        number += strlen(before);
        len = strspn(number, "0123456789");
        if (strncmp(number + len, after, strlen(after)) != 0 || number_parse_i64(span_of(number, len), &usec) < 0 ||
            __builtin_mul_overflow(usec, NSEC_PER_USEC, &ns))
                return -ENODATA;
        *ret_time_ns = ns;
        return 0;
}

static int explain(int r, struct err *err)
{
        switch (-r) {
        case EPERM:
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                               "the kernel's verifier: loading a program needs CAP_BPF in the initial user namespace: "
                               "run as root");
        case ENOSYS:
                return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP, "the kernel's verifier: this kernel has no bpf(2)");
        case EACCES:
        case EINVAL:
        case E2BIG:
                return err_set_errno(err, ERR_ENVIRONMENT, EINVAL, "the kernel's verifier refuses the program");
        default:
                return err_set_errno(err, ERR_ENVIRONMENT, -r, "the kernel's verifier: loading a program failed");
        }
}

int kernel_verifier_measure(struct span slots, int64_t *ret_time_ns, struct err *err)
{
        char log[LOG_BYTES] = "";
        LIBBPF_OPTS(bpf_prog_load_opts, options, .log_level = LOG_STATISTICS, .log_buf = log, .log_size = sizeof(log));
        int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "Apache-2.0", (const struct bpf_insn *)slots.data,
                               slots.len / SLOT_BYTES, &options);

        if (fd < 0)
                return explain(fd, err);
        close(fd);
        if (kernel_verifier_time_of_log(log, ret_time_ns) < 0)
                return err_set(
                        err, ERR_UNSUPPORTED, EOPNOTSUPP,
                        "the kernel's verifier: this kernel does not report how long it took (log level 4, since "
                        "Linux 5.2)");
        return 0;
}

int kernel_verifier_missing(struct err *err)
{
        static const uint8_t least[] __attribute__((aligned(8))) = {0xb7, 0, 0, 0, 0, 0, 0, 0,  /* r0 = 0 */
                                                                    0x95, 0, 0, 0, 0, 0, 0, 0}; /* exit */
        int64_t time_ns;

        return kernel_verifier_measure(span_of(least, sizeof(least)), &time_ns, err);
}
