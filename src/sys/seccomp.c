/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "no seccomp filter for this architecture yet"
#endif

#define X32_BIT   0x40000000u
#define TYPE_BITS 0xfu /* of a socket's type; the others are flags */

static void add(struct seccomp_filter *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
        if (f->n == SECCOMP_CODE_MAX)
                f->is_full = true;
        else
                f->code[f->n++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void load(struct seccomp_filter *f, size_t offset)
{
        add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void load_number(struct seccomp_filter *f)
{
        load(f, offsetof(struct seccomp_data, nr));
}

/* The lower half, which is all that the kernel looks at of an int. */
static void load_argument(struct seccomp_filter *f, unsigned argument)
{
        size_t at = offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);

        load(f, at + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0));
}

static void give(struct seccomp_filter *f, uint32_t action)
{
        add(f, BPF_RET | BPF_K, action, 0, 0);
}

static void fail(struct seccomp_filter *f, int errnum)
{
        give(f, SECCOMP_RET_ERRNO | ((uint32_t)errnum & SECCOMP_RET_DATA));
}

/* The next instructions are for values equal to @k only; close_case() ends them. */
static size_t open_case(struct seccomp_filter *f, uint32_t k)
{
        add(f, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 0);
        return f->n;
}

static void close_case(struct seccomp_filter *f, size_t start)
{
        size_t len = f->n - start;

        if (start == 0 || len > UINT8_MAX)
                f->is_full = true;
        else
                f->code[start - 1].jf = (uint8_t)len;
}

void seccomp_filter_begin(struct seccomp_filter *f)
{
        f->n = 0;
        f->is_full = false;
        load(f, offsetof(struct seccomp_data, arch));
        add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
        give(f, SECCOMP_RET_KILL_PROCESS);
        load_number(f);
#ifdef __x86_64__
        add(f, BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1);
        give(f, SECCOMP_RET_KILL_PROCESS);
#endif
}

void seccomp_refuse(struct seccomp_filter *f, int number, int errnum)
{
        size_t start = open_case(f, (uint32_t)number);

        fail(f, errnum);
        close_case(f, start);
}

void seccomp_refuse_from(struct seccomp_filter *f, int number, int errnum)
{
        add(f, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)number, 0, 1);
        fail(f, errnum);
}

void seccomp_refuse_bits(struct seccomp_filter *f, int number, unsigned argument, uint32_t bits, int errnum)
{
        size_t start = open_case(f, (uint32_t)number);

        load_argument(f, argument);
        add(f, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
        fail(f, errnum);
        load_number(f);
        close_case(f, start);
}

void seccomp_refuse_value(struct seccomp_filter *f, int number, unsigned argument, uint32_t mask, uint32_t value,
                          int errnum)
{
        size_t start = open_case(f, (uint32_t)number);

        load_argument(f, argument);
        add(f, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
        add(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        fail(f, errnum);
        load_number(f);
        close_case(f, start);
}

/* Goes on where the value is one of @values, else fails. */
static void demand(struct seccomp_filter *f, const int *values, int errnum)
{
        size_t n = 0;

        while (values[n] >= 0)
                n++;
        for (size_t i = 0; i < n; i++)
                add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)values[i], (uint8_t)(n - i), 0);
        fail(f, errnum);
}

void seccomp_allow_sockets(struct seccomp_filter *f, int number, const struct seccomp_socket *kinds, size_t n)
{
        size_t start = open_case(f, (uint32_t)number);

        load_argument(f, 0);
        for (size_t i = 0; i < n; i++) {
                size_t kind = open_case(f, (uint32_t)kinds[i].domain);

                load_argument(f, 1);
                add(f, BPF_ALU | BPF_AND | BPF_K, TYPE_BITS, 0, 0);
                demand(f, kinds[i].types, ESOCKTNOSUPPORT);
                load_argument(f, 2);
                demand(f, kinds[i].protocols, EPROTONOSUPPORT);
                give(f, SECCOMP_RET_ALLOW);
                close_case(f, kind);
        }
        fail(f, EAFNOSUPPORT);
        close_case(f, start);
}

void seccomp_ask(struct seccomp_filter *f, int number)
{
        size_t start = open_case(f, (uint32_t)number);

        give(f, SECCOMP_RET_USER_NOTIF);
        close_case(f, start);
}

void seccomp_ask_pointer(struct seccomp_filter *f, int number, unsigned argument)
{
        size_t start = open_case(f, (uint32_t)number), at = offsetof(struct seccomp_data, args) + argument * 8;

        load(f, at);
        add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
        load(f, at + 4);
        add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        give(f, SECCOMP_RET_USER_NOTIF);
        load_number(f);
        close_case(f, start);
}

void seccomp_filter_end(struct seccomp_filter *f)
{
        give(f, SECCOMP_RET_ALLOW);
}

static int install(const struct seccomp_filter *f, unsigned flags, struct err *err)
{
        struct sock_fprog program = {.len = (unsigned short)f->n, .filter = (struct sock_filter *)f->code};
        long r;

        if (f->is_full)
                return err_set(err, ERR_BUG, E2BIG, "the filter of system calls is too long");
        r = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
        if (r < 0)
                return err_set_errno(err, ERR_UNSUPPORTED, errno, "cannot filter system calls (seccomp)");
        return (int)r;
}

int seccomp_install(const struct seccomp_filter *f, struct err *err)
{
        return install(f, 0, err);
}

int seccomp_install_asking(const struct seccomp_filter *f, int *ret_listener_fd, struct err *err)
{
        int fd = install(f, SECCOMP_FILTER_FLAG_NEW_LISTENER, err);

        if (fd < 0)
                return fd;
        *ret_listener_fd = fd;
        return 0;
}

/* A newer kernel may write more than this program's structure has place for; what it adds comes at the end. */
union room {
        struct seccomp_notif question;
        struct seccomp_notif_resp answer;
        char bytes[512];
};

int seccomp_question_receive(int listener_fd, struct seccomp_question *ret)
{
        union room room = {0};

        if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &room) < 0)
                return errno == EINTR ? -EAGAIN : -errno;
        *ret = (struct seccomp_question){
                .id = room.question.id,
                .pid = (pid_t)room.question.pid,
                .number = room.question.data.nr,
        };
        memcpy(ret->args, room.question.data.args, sizeof(ret->args));
        return 0;
}

bool seccomp_question_stands(int listener_fd, const struct seccomp_question *question)
{
        uint64_t id = question->id;

        return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int seccomp_answer(int listener_fd, const struct seccomp_question *question, int errnum)
{
        union room room = {0};

        room.answer.id = question->id;
        room.answer.error = -errnum;
        room.answer.flags = errnum == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
        return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &room) < 0 ? -errno : 0;
}
