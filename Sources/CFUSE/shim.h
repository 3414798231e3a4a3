#ifndef PV_CFUSE_SHIM_H
#define PV_CFUSE_SHIM_H

#define FUSE_USE_VERSION 312
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <fuse_lowlevel.h>

#endif
