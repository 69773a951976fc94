// Tables of kernels that a source compiled once per instruction set defines in each copy.
#pragma once
#include "rhea/base/cpu_features.h"

// To stand outside of namespaces. Declares `table` of all copies and defines, in rhea::ops,
// `const Table& choose(Isa)`: the one that a CPU with `isa` runs. Elsewhere than on x86 there is
// the plain one.
#if defined(__x86_64__)
#define RHEA_TABLE_PER_ISA(Table, table, choose)                  \
  namespace rhea::isa_plain {                                     \
  extern const ops::Table table;                                  \
  }                                                               \
  namespace rhea::isa_avx2 {                                      \
  extern const ops::Table table;                                  \
  }                                                               \
  namespace rhea::isa_avx512 {                                    \
  extern const ops::Table table;                                  \
  }                                                               \
  namespace rhea::isa_avx512_bf16 {                               \
  extern const ops::Table table;                                  \
  }                                                               \
  namespace rhea::ops {                                           \
  const Table& choose(Isa isa) {                                  \
    if (isa >= Isa::avx512_bf16) return isa_avx512_bf16::table;   \
    if (isa >= Isa::avx512) return isa_avx512::table;             \
    return isa >= Isa::avx2 ? isa_avx2::table : isa_plain::table; \
  }                                                               \
  }
#else
#define RHEA_TABLE_PER_ISA(Table, table, choose)        \
  namespace rhea::isa_plain {                           \
  extern const ops::Table table;                        \
  }                                                     \
  namespace rhea::ops {                                 \
  const Table& choose(Isa) { return isa_plain::table; } \
  }
#endif
