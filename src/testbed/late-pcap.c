/* SPDX-License-Identifier: Apache-2.0 */
#include <pcap/pcap.h>

#include "base/late.h"

/* libpcap, with eight more libraries behind it. */

static struct late_library pcap = {"libpcap.so.0.8", NULL};

LATE_FUNCTION(pcap, pcap_t *, pcap_create, (const char *device, char *why), (device, why))
LATE_FUNCTION(pcap, void, pcap_close, (pcap_t * p), (p))
LATE_FUNCTION(pcap, char *, pcap_geterr, (pcap_t * p), (p))
LATE_FUNCTION(pcap, int, pcap_set_snaplen, (pcap_t * p, int bytes), (p, bytes))
LATE_FUNCTION(pcap, int, pcap_set_buffer_size, (pcap_t * p, int bytes), (p, bytes))
LATE_FUNCTION(pcap, int, pcap_set_immediate_mode, (pcap_t * p, int is_on), (p, is_on))
LATE_FUNCTION(pcap, int, pcap_set_tstamp_precision, (pcap_t * p, int precision), (p, precision))
LATE_FUNCTION(pcap, int, pcap_activate, (pcap_t * p), (p))
LATE_FUNCTION(pcap, int, pcap_setnonblock, (pcap_t * p, int is_on, char *why), (p, is_on, why))
LATE_FUNCTION(pcap, int, pcap_get_selectable_fd, (pcap_t * p), (p))
LATE_FUNCTION(pcap, int, pcap_dispatch, (pcap_t * p, int n, pcap_handler handler, u_char *user), (p, n, handler, user))
LATE_FUNCTION(pcap, pcap_dumper_t *, pcap_dump_fopen, (pcap_t * p, FILE *file), (p, file))
LATE_FUNCTION(pcap, void, pcap_dump, (u_char * user, const struct pcap_pkthdr *header, const u_char *bytes),
              (user, header, bytes))
LATE_FUNCTION(pcap, int, pcap_dump_flush, (pcap_dumper_t * dumper), (dumper))
