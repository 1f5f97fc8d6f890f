/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "archive/archive.h"
#include "base/err.h"
#include "evidence/kind.h"
#include "evidence/manifest.h"
#include "evidence/plan.h"

/* reload_derive - make the plan of an archive again, from its own manifest, inputs and stored options
 * @ret_manifest, @ret_plan: the plan borrows the manifest
 *
 * Return: 0, or a negative errno where a file is missing or not as its format says. Whether the plan is the stored one
 * is not looked at.
 */
int reload_derive(struct archive *archive, const struct kinds *kinds, struct manifest **ret_manifest,
                  struct plan **ret_plan, struct err *err);

/* reload_plan - reload_derive(), and compare with what is stored
 *
 * Return: 0; -EBADMSG, kind integrity, where the plan that comes out is not, byte by byte, the one that is stored;
 * another negative errno where a file is missing or not as its format says.
 */
int reload_plan(struct archive *archive, const struct kinds *kinds, struct manifest **ret_manifest,
                struct plan **ret_plan, struct err *err);
