/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "wire/dns.h"

#define DNS_FLAG_RESPONSE            0x8000
#define DNS_FLAG_TRUNCATED           0x0200
#define DNS_FLAG_RECURSION_DESIRED   0x0100
#define DNS_FLAG_RECURSION_AVAILABLE 0x0080
#define DNS_FLAG_CHECKING_DISABLED   0x0010
#define DNS_OPCODE_SHIFT             11
#define DNS_RCODE_MASK               0xf

#define DNS_LABEL_MAX     63
#define DNS_NAME_WIRE_MAX 255

#define DNS_OPTION_EXTENDED_ERROR 15
