/* SPDX-License-Identifier: Apache-2.0 */
#include "campaign/cpu.h"

#include "base/macro.h"
#include "sys/sched.h"

#define CPUS_MAX 1024

int cpu_missing(const char *where, int64_t cpu, struct err *err)
{
        int cpus[CPUS_MAX], n;

        n = sched_cpus(cpus, CPUS_MAX);
        if (n < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, -n, "cannot find out which processors may be used");
        for (int i = 0; i < MIN(n, CPUS_MAX); i++)
                if (cpus[i] == cpu)
                        return 0;
        return err_set(err, ERR_UNSUPPORTED, EOPNOTSUPP,
                       "%s wants processor %lld, which is not one of the %d that this process may use", where,
                       (long long)cpu, n);
}
