/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Filters of system calls, assembled in memory: no library to start, and the same bytes for the same calls, so that a
 * digest of them says which filter was in force.
 *
 * A filter is a list of rules, tried in order; a call that none names is allowed. Arguments are compared as the 32 bits
 * that the kernel itself takes of an int or an unsigned. */

#define SECCOMP_CODE_MAX 512

struct seccomp_filter {
        size_t n;
        bool is_full; /* more was added than has place */
        struct sock_filter code[SECCOMP_CODE_MAX];
};

/* seccomp_filter_begin - kill the process that calls by another ABI than this program's own (on x86-64: i386, x32) */
void seccomp_filter_begin(struct seccomp_filter *f);

/* seccomp_refuse - call @number fails with @errnum */
void seccomp_refuse(struct seccomp_filter *f, int number, int errnum);

/* seccomp_refuse_from - every call with a number of @number or more fails with @errnum */
void seccomp_refuse_from(struct seccomp_filter *f, int number, int errnum);

/* seccomp_refuse_bits - call @number fails with @errnum where argument @argument has any of @bits */
void seccomp_refuse_bits(struct seccomp_filter *f, int number, unsigned argument, uint32_t bits, int errnum);

/* seccomp_refuse_value - call @number fails with @errnum where argument @argument, of its @mask bits, is @value */
void seccomp_refuse_value(struct seccomp_filter *f, int number, unsigned argument, uint32_t mask, uint32_t value,
                          int errnum);

/* One kind of socket: a domain, with the types (without SOCK_CLOEXEC and SOCK_NONBLOCK) and protocols that it may have;
 * the lists end in -1. */
struct seccomp_socket {
        int domain;
        const int *types;
        const int *protocols;
};

/* seccomp_allow_sockets - call @number (socket, socketpair) is allowed for @n kinds; another domain fails with
 * EAFNOSUPPORT, another type with ESOCKTNOSUPPORT, another protocol with EPROTONOSUPPORT */
void seccomp_allow_sockets(struct seccomp_filter *f, int number, const struct seccomp_socket *kinds, size_t n);

/* seccomp_ask - call @number waits until whoever holds the listener has answered */
void seccomp_ask(struct seccomp_filter *f, int number);

/* seccomp_ask_pointer - as seccomp_ask(), where argument @argument is not NULL */
void seccomp_ask_pointer(struct seccomp_filter *f, int number, unsigned argument);

/* seccomp_filter_end - allow the rest */
void seccomp_filter_end(struct seccomp_filter *f);

/* seccomp_install - put the filter in force for this process and what it starts; there is no way back
 *
 * Needs PR_SET_NO_NEW_PRIVS. Return: 0; a negative errno, kind unsupported, where the kernel has no seccomp.
 */
int seccomp_install(const struct seccomp_filter *f, struct err *err);

/* seccomp_install_asking - as seccomp_install(), of a filter with seccomp_ask(); each caller is to be answered through
 * @ret_listener_fd, by another process. When that is closed everywhere, the calls fail with ENOSYS. */
int seccomp_install_asking(const struct seccomp_filter *f, int *ret_listener_fd, struct err *err);

/* A call that waits for an answer. */
struct seccomp_question {
        uint64_t id;
        pid_t pid; /* the calling thread, as the receiver's PID namespace counts; 0 where it is not in there */
        int number;
        uint64_t args[6];
};

/* seccomp_question_receive - the next question; poll the listener for EPOLLIN first
 *
 * Return: 0; -ENOENT where the caller was killed meanwhile; -EAGAIN; another negative errno.
 */
int seccomp_question_receive(int listener_fd, struct seccomp_question *ret);

/* seccomp_question_stands - whether the caller still waits. What was read of its memory before is worth something only
 * if it does: else the number may be another process's by now. */
bool seccomp_question_stands(int listener_fd, const struct seccomp_question *question);

/* seccomp_answer - let the call go on as it is (@errnum 0) or fail
 *
 * The memory that its arguments point to may have been changed since it was read: what goes on must be harmless
 * whatever it points to. Return: 0; -ENOENT where the caller was killed meanwhile; another negative errno.
 */
int seccomp_answer(int listener_fd, const struct seccomp_question *question, int errnum);
