/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/file.h"

#define SELF "/proc/thread-self/ns/net"

int netns_open(const char *path, struct netns *ret, struct err *err)
{
        _cleanup_close_ int fd = -1;
        struct statfs fs;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open the network namespace %s", path);
        if (fstatfs(fd, &fs) < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot examine %s", path);
        if (fs.f_type != NSFS_MAGIC || ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
                return err_set(err, ERR_ENVIRONMENT, EINVAL, "%s is not a network namespace", path);

        ret->fd = TAKE_FD(fd);
        return 0;
}

int netns_open_self(struct netns *ret, struct err *err)
{
        return netns_open(SELF, ret, err);
}

void netns_done(struct netns *ns)
{
        close_cleanup(&ns->fd);
        ns->fd = -1;
}

int netns_inode(const struct netns *ns, uint64_t *ret)
{
        struct stat st;

        if (fstat(ns->fd, &st) < 0)
                return -errno;
        *ret = st.st_ino;
        return 0;
}

int netns_enter(const struct netns *ns, struct err *err)
{
        if (setns(ns->fd, CLONE_NEWNET) == 0)
                return 0;
        if (errno == EPERM)
                return err_set(err, ERR_UNSUPPORTED, EPERM,
                               "entering a network namespace needs CAP_SYS_ADMIN over it: run as root, or inside "
                               "`unshare --user --map-root-user --net`");
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot enter a network namespace");
}

/* Entering the namespace that one is in already asks for the same rights as coming back to it later. */
static int open_way_back(struct netns *ret, struct err *err)
{
        _cleanup_netns_ struct netns here = NETNS_INIT;
        int r;

        r = netns_open_self(&here, err);
        if (r < 0)
                return r;
        r = netns_enter(&here, err);
        if (r < 0)
                return r;
        ret->fd = TAKE_FD(here.fd);
        return 0;
}

static int go_back(const struct netns *here, int result, struct err *err)
{
        if (setns(here->fd, CLONE_NEWNET) == 0)
                return result;
        return err_set_errno(err, ERR_BUG, errno, "cannot return to the network namespace that the thread came from");
}

static int set_not_created(struct err *err, int errnum)
{
        if (errnum == ENOSPC)
                return err_set(err, ERR_UNSUPPORTED, errnum,
                               "no more network namespaces may be created here: raise the sysctl "
                               "user.max_net_namespaces");
        return err_set_errno(err, errnum == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errnum,
                             "cannot create a network namespace");
}

int netns_new(struct netns *ret, struct err *err)
{
        _cleanup_netns_ struct netns here = NETNS_INIT, created = NETNS_INIT;
        int r;

        r = open_way_back(&here, err);
        if (r < 0)
                return r;
        if (unshare(CLONE_NEWNET) < 0)
                return set_not_created(err, errno);
        r = go_back(&here, netns_open_self(&created, err), err);
        if (r < 0)
                return r;
        ret->fd = TAKE_FD(created.fd);
        return 0;
}

int netns_run(const struct netns *ns, int (*fn)(void *userdata, struct err *err), void *userdata, struct err *err)
{
        _cleanup_netns_ struct netns here = NETNS_INIT;
        int r;

        r = open_way_back(&here, err);
        if (r < 0)
                return r;
        r = netns_enter(ns, err);
        if (r < 0)
                return r;
        return go_back(&here, fn(userdata, err), err);
}

struct socket_request {
        int domain, type, protocol;
        int fd;
};

static int open_socket(void *userdata, struct err *err)
{
        struct socket_request *q = userdata;

        q->fd = socket(q->domain, q->type | SOCK_CLOEXEC, q->protocol);
        if (q->fd < 0 && errno == EPERM && q->domain == AF_PACKET)
                return err_set(err, ERR_UNSUPPORTED, EPERM,
                               "seeing frames as they are on a wire (a packet socket) needs CAP_NET_RAW");
        if (q->fd < 0)
                return err_set_errno(err, errno == EPERM ? ERR_UNSUPPORTED : ERR_ENVIRONMENT, errno,
                                     "cannot open a socket (domain %d, type %d, protocol %d)", q->domain, q->type,
                                     q->protocol);
        return 0;
}

int netns_socket(const struct netns *ns, int domain, int type, int protocol, struct err *err)
{
        struct socket_request q = {.domain = domain, .type = type, .protocol = protocol, .fd = -1};
        _cleanup_close_ int fd = -1;
        int r;

        r = netns_run(ns, open_socket, &q, err);
        fd = q.fd;
        return r < 0 ? r : TAKE_FD(fd);
}

struct sysctl_request {
        char path[192];
        const char *value; /* NULL: read into @buf */
        char *buf;
        size_t size;
};

static int set_sysctl_refused(struct err *err, int errnum, const char *path)
{
        if (errnum == EPERM || errnum == EACCES || errnum == EROFS)
                return err_set_errno(err, ERR_UNSUPPORTED, errnum,
                                     "writing to %s needs CAP_NET_ADMIN over its network namespace, and /proc/sys "
                                     "mounted for writing",
                                     path);
        return err_set_errno(err, ERR_ENVIRONMENT, errnum, "cannot write to %s", path);
}

static int transfer_sysctl(void *userdata, struct err *err)
{
        struct sysctl_request *q = userdata;
        _cleanup_close_ int fd = -1;
        ssize_t n;
        int r;

        fd = open(q->path, (q->value ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (fd < 0 && q->value)
                return set_sysctl_refused(err, errno, q->path);
        if (fd < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot open %s", q->path);
        if (q->value) {
                r = file_write_all(fd, q->value, strlen(q->value));
                return r < 0 ? set_sysctl_refused(err, -r, q->path) : 0;
        }
        n = read(fd, q->buf, q->size - 1);
        if (n < 0)
                return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot read %s", q->path);
        q->buf[n] = '\0';
        q->buf[strcspn(q->buf, "\n")] = '\0';
        return 0;
}

static int run_sysctl(const struct netns *ns, const char *name, struct sysctl_request *q, struct err *err)
{
        if (!file_is_beneath(name) ||
            snprintf(q->path, sizeof(q->path), "/proc/sys/net/%s", name) >= (int)sizeof(q->path))
                return err_set(err, ERR_BUG, EINVAL, "\"%s\" is no name of a network setting", name);
        return netns_run(ns, transfer_sysctl, q, err);
}

int netns_sysctl_write(const struct netns *ns, const char *name, const char *value, struct err *err)
{
        struct sysctl_request q = {.value = value};

        return run_sysctl(ns, name, &q, err);
}

int netns_sysctl_read(const struct netns *ns, const char *name, char *ret, size_t size, struct err *err)
{
        struct sysctl_request q = {.buf = ret, .size = size};

        return run_sysctl(ns, name, &q, err);
}
