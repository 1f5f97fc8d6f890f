#include "campaign/kind-udp-load.h"
const struct workload_ops udp_load_ops;
