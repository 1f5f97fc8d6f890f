/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* holder_find - which process below @top has a socket
 * @inode: as /proc/PID/fd shows it
 *
 * Looks through the descriptors of @top's descendants, of the first 1024, and at no more than 16384 descriptors and
 * threads. Return: a process; 0 where none has it, it is not to be seen, or this kernel does not tell the children of a
 * process (CONFIG_PROC_CHILDREN).
 */
pid_t holder_find(pid_t top, uint32_t inode);
