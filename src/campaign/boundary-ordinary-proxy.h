/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "campaign/adapter.h"
#include "config/key.h"

/* The boundary `ordinary-proxy`: an HTTP proxy of others between client and origin, as a peer. Nothing keeps a command
 * from going around it. */

extern const struct key_table boundary_ordinary_proxy_table;
extern const struct boundary_ops boundary_ordinary_proxy_ops;

/* boundary_ordinary_proxy_missing - as kinds_missing() wants it: the program's name where it is not installed */
int boundary_ordinary_proxy_missing(const struct node *config, struct err *err);
