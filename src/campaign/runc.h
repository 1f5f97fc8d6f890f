/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"
#include "campaign/command.h"

/* Containers of runc, each made of a bundle of our own: this host's files to read, its network, and namespaces of its
 * own for everything else.
 *
 * runc keeps what it knows of a container in files, and its processes in control groups; neither goes when it is
 * killed. Both bear the name of one folder in /run, which is locked as long as its process lives: so runc_up() finds
 * what nobody holds any more, and ends it. */
struct runc {
        int dirfd;       /* of the folder, which is locked by it */
        unsigned n;      /* bundles in it */
        char folder[32]; /* its path; "": there is none */
};

#define RUNC_INIT                                                                                                      \
        {                                                                                                              \
                .dirfd = -1                                                                                            \
        }

/* runc_up - end and remove what others left, and make a folder for bundles. Return: 0 or a negative errno with the
 * reason.
 */
int runc_up(struct runc *runc, struct err *err);

/* runc_wrap - make a bundle that runs @line, which becomes the command that runs the bundle
 *
 * It can be run again and again, one run after the other.
 */
int runc_wrap(struct runc *runc, struct command_line *line, struct err *err);

/* runc_down - end what still runs in its containers, and remove all of it; accepts RUNC_INIT, and may be called twice
 */
void runc_down(struct runc *runc);
