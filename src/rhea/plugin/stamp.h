// Included by plugin.h. The stamp that every plugin carries in a section of its own: which Rhea it
// was compiled against and by what. The loader reads it from the file, before anything of the
// plugin runs.
#pragma once
#include <cstddef>

#include "rhea/plugin/build_id.h"

#define RHEA_STAMP_TEXT_(x) #x
#define RHEA_STAMP_TEXT(x) RHEA_STAMP_TEXT_(x)

#if defined(__clang__)
#define RHEA_STAMP_COMPILER "Clang " RHEA_STAMP_TEXT(__clang_major__)
#else
#define RHEA_STAMP_COMPILER "GCC " RHEA_STAMP_TEXT(__GNUC__)
#endif

#if defined(_LIBCPP_VERSION)
#define RHEA_STAMP_LIBRARY ", libc++"
#elif defined(_GLIBCXX_DEBUG)
#define RHEA_STAMP_LIBRARY ", libstdc++ with _GLIBCXX_DEBUG"
#elif _GLIBCXX_USE_CXX11_ABI
#define RHEA_STAMP_LIBRARY ", libstdc++"
#else
#define RHEA_STAMP_LIBRARY ", libstdc++ of the old ABI"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define RHEA_STAMP_SANITIZER ", address sanitizer"
#elif defined(__SANITIZE_THREAD__)
#define RHEA_STAMP_SANITIZER ", thread sanitizer"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RHEA_STAMP_SANITIZER ", address sanitizer"
#elif __has_feature(thread_sanitizer)
#define RHEA_STAMP_SANITIZER ", thread sanitizer"
#endif
#endif
#ifndef RHEA_STAMP_SANITIZER
#define RHEA_STAMP_SANITIZER ""
#endif

// Lines of the stamp; a file of another layout has another first line.
#define RHEA_PLUGIN_STAMP                                         \
  "rhea plugin 1\n" RHEA_PLUGIN_VERSION "\n" RHEA_PLUGIN_BUILD_ID \
  "\n" RHEA_STAMP_COMPILER RHEA_STAMP_LIBRARY RHEA_STAMP_SANITIZER "\n"
