/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"

/* The boundary `wrapper`: a program of others that runs a command in namespaces. */

extern const struct key_table boundary_wrapper_table;
extern const struct boundary_ops boundary_wrapper_ops;

/* boundary_wrapper_check - as kinds.c wants it */
int boundary_wrapper_check(const struct node *boundary, struct err *err);

/* boundary_wrapper_missing - as kinds_missing() wants it: the program's name where it is not installed */
int boundary_wrapper_missing(const struct node *config, struct err *err);

/* boundary_wrapper_has_network - whether commands in it reach the network, by its configuration */
bool boundary_wrapper_has_network(const struct node *boundary);
